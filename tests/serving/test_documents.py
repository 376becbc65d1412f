"""Writing over HTTP: durable once acknowledged, seen by the next search, and each write answered for itself."""

import asyncio
import concurrent.futures
import errno
import resource
import threading
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.figures import children_of
from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.writing import Changes, add, build
from repconc.records import Document
from repconc.serving import served
from repconc.serving.scribe import Scribe
from repconc.serving.writes import Removal, Upsert, plan_of
from tests.indexes.conftest import additive_codecs, batches, make_codes
from tests.serving.conftest import text_documents, text_index, vector_index, vector_of
from tests.serving.running import TOKEN, running
from tests.serving.test_served import drive
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)


def row(id: str, number: int, **more):
    return {"id": id, "text": f"text {number}", "vector": vector_of(number), **more}


def write(server, *rows, **more):
    return server.ask("/v1/documents", {"documents": list(rows)}, token=TOKEN, **more)


def test_the_life_of_a_document(vector_server):
    index = Index(vector_server.log.parent / "index")
    reply = write(vector_server, row("life/of a ü", 1, title="T", metadata={"year": 2024}))
    assert reply.json == {"index": "index", "version": reply.json["version"], "added": 1, "replaced": 0, "removed": 0}
    found = vector_server.ask("/v1/documents/life%2Fof%20a%20%C3%BC").json
    assert found == {"id": "life/of a ü", "title": "T", "text": "text 1", "metadata": {"year": 2024}}
    assert Index(index.folder).get("life/of a ü") == Document("life/of a ü", "text 1", "T", {"year": 2024})
    assert write(vector_server, row("life/of a ü", 2)).json["replaced"] == 1
    assert vector_server.ask("/v1/documents/life/of%20a%20%C3%BC").json["text"] == "text 2"
    removed = vector_server.ask("/v1/documents/life%2Fof%20a%20%C3%BC", method="DELETE", token=TOKEN)
    assert removed.status == 200 and removed.json["removed"] == 1
    for method in ("GET", "DELETE"):
        gone = vector_server.ask("/v1/documents/life%2Fof%20a%20%C3%BC", method=method, token=TOKEN)
        assert gone.status == 404 and gone.code == "unknown_document"


def test_a_search_sees_what_was_acknowledged(vector_server):
    for number in range(5):
        assert write(vector_server, row("seen", 50 + number, metadata={"turn": number})).status == 200
        asked = {"vector": vector_of(50 + number), "filter": f"turn = {number}", "k": 3}
        found = vector_server.ask("/v1/search", asked).json["results"][0]["hits"]
        assert [hit["id"] for hit in found] == ["seen"]


def test_texts_are_coded_by_the_model(tmp_path, tiny_static):  # noqa: F811
    folder = text_index(tmp_path / "index", tiny_static, text_documents())
    with running(folder, folder=tmp_path) as server:
        rows = [{"id": f"new{n}", "text": "a river of gold and a bird", "metadata": {"n": n}} for n in range(40)]
        assert write(server, *rows).json["added"] == 40
        found = server.ask("/v1/search", {"query": "a river of gold and a bird", "k": 40}).json["results"][0]["hits"]
        assert {hit["id"] for hit in found} == {f"new{n}" for n in range(40)}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], "invalid_request"),
        ([row("a", 1), row("a", 2)], "invalid_request"),
        ([{"id": "a", "text": "x"}], "needs_vectors"),
        ([row("", 1)], "invalid_request"),
        ([{"id": "a", "text": "x", "vector": [1.0]}], "invalid_vector"),
        ([row("a", 1), {"id": "b", "text": "x"}], "invalid_vector"),
        ([row("a", 1, text=None)], "invalid_request"),
        ([row("a", 1, text="x" * 100_001)], "invalid_request"),
        ([row("a", 1, other=1)], "invalid_request"),
        ([row("a" * 501, 1)], "invalid_request"),
        ([row("a", 1, metadata={"n": {"n": {"n": {"n": [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]}}}})], "invalid_request"),
        ([row("a", 1, metadata={f"field{n}": n for n in range(501)})], "invalid_document"),
    ],
)
def test_what_is_refused(vector_server, rows, code):
    before = vector_server.ask("/v1/index").json["documents"]
    reply = write(vector_server, *rows)
    assert reply.status == 422 and reply.code == code, reply.body
    assert vector_server.ask("/v1/index").json["documents"] == before
    assert str(vector_server.log.parent) not in reply.body.decode()


@pytest.mark.parametrize("id", ["a\nb", "a\x00b", "\x1b[31m", "tab\there", "\x7f", "\r"])
def test_ids_hold_no_control_characters(vector_server, id):
    """They would get into run files, terminals and logs, where a line break makes another line."""
    reply = write(vector_server, row(id, 1))
    assert reply.status == 422 and "documents.0.id" in reply.json["error"]["message"]
    for method in ("GET", "DELETE"):
        asked = vector_server.ask(f"/v1/documents/{quote(id, safe='')}", method=method, token=TOKEN)
        assert asked.status == 404
    assert not any(character in vector_server.log.read_text() for character in "\x00\x1b\x7f\t\r")


def test_one_bad_write_among_many_fails_alone(vector_server):
    """They are committed together; the culprit must not take the others with it."""
    many = {f"field{n}": n for n in range(501)}
    rows = [row(f"group{n}", n, metadata=many if n == 7 else {}) for n in range(16)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = [reply.status for reply in pool.map(lambda one: write(vector_server, one), rows)]
    assert statuses == [422 if n == 7 else 200 for n in range(16)]
    assert [vector_server.ask(f"/v1/documents/group{n}").status for n in range(16)] == [
        404 if n == 7 else 200 for n in range(16)
    ]


def test_another_writer_is_a_conflict_and_its_work_is_seen(vector_server):
    from repconc.files import locked
    from repconc.indexes.manifest import MANIFEST

    folder = vector_server.log.parent / "index"
    with locked(folder / MANIFEST):
        reply = write(vector_server, row("busy", 1))
        assert reply.status == 409 and reply.code == "index_busy" and reply.headers["retry-after"]
    assert write(vector_server, row("busy", 1)).status == 200


def test_additive_codes_with_lengths_are_served_and_take_documents(tmp_path):
    coding, scoring = additive_codecs()
    coding = coding.with_lengths(make_codes(range(300)))
    folder = build(tmp_path / "index", batches(range(300)), coding=coding, scoring=scoring, lists=12).folder
    with running(folder, folder=tmp_path) as server:
        assert write(server, *(row(f"new{number}", number) for number in range(20))).json["added"] == 20
        reply = server.ask("/v1/search", {"vectors": [vector_of(n) for n in range(20)], "k": 30, "probes": 12})
    index = Index(folder)
    hits = index.search(np.array([vector_of(n) for n in range(20)], np.float32), 30, probes=12)
    served = [[(hit["id"], hit["score"]) for hit in result["hits"]] for result in reply.json["results"]]
    assert served == [[(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in found] for found in hits]
    assert sum(f"new{n}" in {id for id, _ in found} for n, found in enumerate(served)) > 15, "chance brings two"


def test_segments_do_not_pile_up(tmp_path):
    folder = vector_index(tmp_path / "index", range(100))
    with running(folder, folder=tmp_path) as server:
        for number in range(70):
            assert write(server, row(f"new{number}", number)).status == 200
            assert server.ask("/v1/index").json["segments"] <= 4, "also while writes come without a pause"
        assert server.ask("/v1/index").json["documents"] == 170
    index = Index(folder)
    index.verify()
    assert {f"new{n}" for n in range(70)} <= {hit.id for hit in index.search(vector_of(1), 170, probes=12)[0]}


def test_a_write_is_acknowledged_before_segments_are_merged_that_it_does_not_take_along(tmp_path, monkeypatch):
    folder = vector_index(tmp_path / "index", range(100))
    for number in range(100, 110):
        add(folder, batches([number]))
    merging, go, plain = threading.Event(), threading.Event(), Scribe.merge

    def slow(*arguments, **named):
        merging.set()
        go.wait(20)
        return plain(*arguments, **named)

    monkeypatch.setattr(Scribe, "merge", slow)

    async def scenario(index):
        await asyncio.wait_for(index.change(Removal("d5")), 5)
        before = len(index.snapshot.index.segments)
        await asyncio.to_thread(merging.wait, 5)
        go.set()
        while len(index.snapshot.index.segments) > 4:
            await asyncio.sleep(0.05)
        return before

    assert drive(folder, scenario) > 4 and merging.is_set()
    index = Index(folder)
    index.verify()
    assert len(index) == 109 and "d109" in index and "d5" not in index


def test_faults_of_the_server_are_not_blamed_on_the_document(tmp_path):
    """No file may grow beyond 64 KB for a while, as if there were no room."""
    folder = vector_index(tmp_path / "index")
    with running(folder, folder=tmp_path) as server:
        assert write(server, row("first", 1)).status == 200
        limit, (process,) = resource.RLIMIT_FSIZE, children_of(server.process.pid)
        soft, hard = resource.prlimit(process, limit)
        resource.prlimit(process, limit, (1 << 16, hard))
        reply = write(server, row("large", 1) | {"text": "line\nforged " * 8000})
        assert (reply.status, reply.code) == (503, "write_failed") and reply.headers["retry-after"]
        assert str(folder) not in reply.body.decode()
        (line,) = [line for line in server.log.read_text().splitlines() if "writing to index 'index' failed" in line]
        assert "forged" not in line
        assert write(server, row("small", 1)).status == 200
        resource.prlimit(process, limit, (soft, hard))
        assert write(server, row("large", 1) | {"text": "word " * 20_000}).status == 200
    Index(folder).verify()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 507, "storage_full"),
        (OSError(errno.EIO, "Input/output error"), 503, "write_failed"),
        (RepconcError("a file\nis damaged"), 503, "write_failed"),
    ],
)
def test_what_is_told_of_a_fault(tmp_path, monkeypatch, caplog, error, status, code):
    def fails(*_):
        raise error

    monkeypatch.setattr(served, "commit", fails)

    async def scenario(index):
        return await asyncio.gather(*(index.change(Removal(f"d{n}")) for n in range(3)), return_exceptions=True)

    refusals = drive(vector_index(tmp_path / "index"), scenario)
    assert [(refusal.status, refusal.code) for refusal in refusals] == [(status, code)] * 3
    assert all(record.getMessage().startswith("writing to index 'index' failed: ") for record in caplog.records)
    assert caplog.records and not [record for record in caplog.records if "\n" in record.getMessage()]


changes = st.lists(
    st.one_of(
        st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True),
        st.integers(0, 6).map(lambda number: -1 - number),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 6)), changes)
def test_a_batch_of_writes_does_what_they_would_do_one_by_one(known, batch):
    state, expected, asked = {f"d{n}": "old" for n in known}, [], []
    for turn, change in enumerate(batch):
        if isinstance(change, int):
            id = f"d{-1 - change}"
            expected.append(Changes(removed=int(id in state)))
            state.pop(id, None)
            asked.append(Removal(id))
            continue
        documents = [Document(f"d{n}", f"turn {turn}") for n in change]
        replaced = sum(document.id in state for document in documents)
        expected.append(Changes(added=len(documents) - replaced, replaced=replaced))
        state |= {document.id: document.text for document in documents}
        asked.append(Upsert(documents, None))
    plan = plan_of({f"d{n}" for n in known}, asked)
    assert plan.outcomes == expected
    after = {f"d{n}": "old" for n in known if f"d{n}" not in plan.gone}
    after |= {id: document.text for id, (document, _) in plan.documents.items()}
    assert after == state and not plan.gone & plan.documents.keys()

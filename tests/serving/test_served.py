"""An index that is served, without HTTP around it: lanes, and what a snapshot shares with the one before."""

import asyncio
import threading

import numpy as np
import pytest

from repconc.indexes.ivf import Index
from repconc.indexes.writing import remove
from repconc.serving import served as module
from repconc.serving.answering import Asked, Wanted
from repconc.serving.refusals import Refusal
from repconc.serving.served import Served
from repconc.serving.settings import Limits, Source
from repconc.serving.snapshot import open_snapshot
from repconc.serving.writes import Removal
from tests.serving.conftest import vector_index, vector_of

WANTED = Wanted(3, None, None, False, False)


def asked(count: int, **changes) -> Asked:
    return Asked(None, np.array([vector_of(n) for n in range(count)], np.float32), WANTED._replace(**changes))


def drive(folder, scenario, **limits):
    async def run():
        served = Served(Source(name="index", folder=folder), Limits(**limits))
        served.start()
        try:
            return await scenario(served)
        finally:
            await served.close()

    return asyncio.run(asyncio.wait_for(run(), 30))


def test_a_large_request_does_not_stop_small_ones(tmp_path, monkeypatch):
    go, plain = threading.Event(), module.Batch.answer

    def slow(batch, tickets):
        if tickets[0].item.weight > module.WIDE:
            go.wait()
        return plain(batch, tickets)

    monkeypatch.setattr(module.Batch, "answer", slow)

    async def scenario(served):
        large = asyncio.create_task(served.ask(asked(100)))
        await asyncio.sleep(0.1)
        for _ in range(5):
            assert len((await asyncio.wait_for(served.ask(asked(1)), 5)).hits) == 1
        assert not large.done()
        go.set()
        return len((await large).hits)

    assert drive(vector_index(tmp_path / "index"), scenario) == 100


def test_what_is_wrong_with_one_question_does_not_touch_the_others(tmp_path):
    async def scenario(served):
        questions = [asked(1), asked(1, filter="colour = 1"), asked(2, k=5), asked(1, exact=True)]
        questions.append(Asked(None, np.ones((1, 3), np.float32), WANTED))
        questions.append(Asked(["a text"], None, WANTED))
        return await asyncio.gather(*map(served.ask, questions), return_exceptions=True)

    first, field, second, *others = drive(vector_index(tmp_path / "index"), scenario, wait=0.01)
    assert [len(hits) for hits in first.hits] == [3] and [len(hits) for hits in second.hits] == [5, 5]
    assert [error.code for error in (field, *others)] == [
        "invalid_filter",
        "no_vectors",
        "invalid_vector",
        "needs_vectors",
    ]


def test_too_many_queries_are_refused(tmp_path, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(module.Batch, "answer", lambda *_: go.wait() and [Refusal(500, "x", "x")])

    async def scenario(served):
        tasks = [asyncio.create_task(served.ask(asked(4)))]
        await asyncio.sleep(0.1)
        tasks.append(asyncio.create_task(served.ask(asked(8))))
        await asyncio.sleep(0.1)
        with pytest.raises(Refusal) as refused:
            await served.ask(asked(4))
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return refused.value.status

    assert drive(vector_index(tmp_path / "index"), scenario, queries=10) == 429


def test_a_new_snapshot_shares_what_stayed(tmp_path):
    folder = vector_index(tmp_path / "index")
    source = Source(name="index", folder=folder)
    before = open_snapshot(source)
    remove(folder, ["d3"])
    after = open_snapshot(source, before)
    assert after.described.documents == 299 and before.described.documents == 300
    assert after.index.segments[0].codes is before.index.segments[0].codes


def test_a_write_is_seen_by_the_next_question(tmp_path):
    async def scenario(served):
        best = (await served.ask(asked(1))).hits[0][0].id
        changes, version = await served.change(Removal(best))
        answer = await served.ask(asked(1))
        assert changes.removed == 1 and answer.version == version == 2
        return best in {hit.id for hit in answer.hits[0]}

    assert drive(vector_index(tmp_path / "index"), scenario) is False


def test_a_link_that_turns_while_documents_are_written_harms_neither_index(tmp_path, monkeypatch):
    folders = [vector_index(tmp_path / name) for name in ("one", "two")]
    link, plain = tmp_path / "current", module.commit
    link.symlink_to("one")

    def turned(*arguments):
        link.unlink()
        link.symlink_to("two")
        return plain(*arguments)

    monkeypatch.setattr(module, "commit", turned)

    async def scenario(served):
        with pytest.raises(Refusal) as refused:
            await served.change(Removal("d1"))
        return refused.value.status

    assert drive(link, scenario) == 409
    for folder in folders:
        index = Index(folder)
        index.verify()
        assert "d1" in index


def test_what_is_written_is_acknowledged_also_where_it_cannot_be_opened_again(tmp_path, monkeypatch):
    folder = vector_index(tmp_path / "index")

    async def scenario(served):
        def fails(*arguments):
            raise OSError("too many open files")

        monkeypatch.setattr(module, "open_snapshot", fails)
        return await served.change(Removal("d1"))

    changes, version = drive(folder, scenario)
    assert changes.removed == 1
    assert version == Index(folder).manifest.version
    assert "d1" not in Index(folder)

"""The process that writes: what it says of faults, and that it neither outlives the server nor takes it along."""

import errno
import os
import random
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from benchmarks.figures import children_of
from repconc.errors import BusyError, DamagedError, DocumentError, RepconcError, ReplacedError
from repconc.files import locked
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.records import Document
from repconc.serving import scribe as module
from repconc.serving.scribe import Scribe
from tests.serving.conftest import vector_index, vector_of
from tests.serving.running import TOKEN, running, wait_for


@pytest.fixture
def scribe():
    scribe = Scribe(2)
    yield scribe
    scribe.close()


def document(id: str, text: str = "", **metadata) -> Document:
    return Document(id, text, "a title", metadata)


def coded(index: Index, *documents: Document):
    codes = index.coding.encode(np.array([vector_of(number) for number in range(len(documents))], np.float32))
    return [(list(documents), codes)]


def test_what_was_asked_for_is_what_is_written(tmp_path, scribe):
    index = Index(vector_index(tmp_path / "index"))
    new = document("new", 'two\nlines, "quoted" and \u2028 odd \U0001f600', year=2020, share=0.1, tags=["a", None])
    assert scribe.write(index, index.folder, coded(index, new, document("d7")), ["d1", "nobody"]) == 2
    after = Index(index.folder)
    after.verify()
    assert after.get("new") == new and after.get("d7") == document("d7") and "d1" not in after
    assert len(after) == len(index)
    assert scribe.write(after, index.folder, [], ["new"]) == 3
    for number in range(4):
        scribe.write(after, index.folder, coded(after, document(f"m{number}")), [])
    scribe.merge(after)
    assert len(Index(index.folder).segments) == 2 and "m3" in Index(index.folder)


def test_errors_keep_their_kind(tmp_path, scribe):
    index = Index(vector_index(tmp_path / "index"))
    with pytest.raises(DocumentError, match="half of a character"):
        scribe.write(index, index.folder, coded(index, document("new", "\ud800")), [])
    with locked(index.folder / MANIFEST, wait=False), pytest.raises(BusyError):
        scribe.write(index, index.folder, [], ["d1"])
    other = Index(vector_index(tmp_path / "other"))
    with pytest.raises(ReplacedError):
        scribe.write(index, other.folder, [], ["d1"])
    other.manifest = other.manifest.model_copy(update={"files": {}})  # as of an index with another codec
    with pytest.raises(ReplacedError):
        scribe.write(other, other.folder, [], ["d1"])
    index.folder = tmp_path / "nothing"
    with pytest.raises(RepconcError, match="holds no index"):
        scribe.write(index, index.folder, [], ["d1"])
    for folder in (tmp_path / "index", other.folder):
        assert "d1" in Index(folder) and Index(folder).manifest.version == 1


def test_small_segments_go_along_and_past_files_are_removed_after_the_answer(tmp_path, scribe):
    index = Index(vector_index(tmp_path / "index"))
    for number in range(12):
        version = scribe.write(index, index.folder, coded(index, document(f"m{number}")), [f"d{number}"])
        after = Index(index.folder)
        assert version == after.manifest.version == number + 2, "one commit each"
        assert len(after.segments) <= 2
    wait_for(lambda: {path.name for path in index.folder.glob("0*")} == after.manifest.names())
    after.verify()
    assert len(after) == len(index) and all(f"m{number}" in after for number in range(12))


def test_a_damaged_small_segment_stays_and_others_are_written(tmp_path, scribe):
    index = Index(vector_index(tmp_path / "index"))
    scribe.write(index, index.folder, coded(index, document("m0", "a text")), [])
    scribe.close()  # who has read a small file needs it no more; the next process reads it again
    path = index.folder / Index(index.folder).segments[1].segment.files["codes"].name
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    for number in (1, 2):
        scribe.write(index, index.folder, coded(index, document(f"m{number}")), [])
    after = Index(index.folder)
    assert "m1" in after and "m2" in after and path.exists()
    with pytest.raises(DamagedError):
        after.verify()


def test_killed_at_any_moment_it_has_written_what_it_answered_for(tmp_path, scribe):
    index, chance, cut = Index(vector_index(tmp_path / "index")), random.Random(0), 0
    longest = 0.03  # until it is killed; adapted, so that about half of the writes are cut off on any machine
    state: dict[str, str | None] = dict.fromkeys(["m0", "m1", "m2"])
    for number in range(24):
        id, text, killed = chance.choice(list(state)), f"text {number}", number % 2 == 1
        killer = threading.Timer(chance.uniform(0, longest), scribe.kill)
        if killed:  # the process runs: the write before this one was left in peace
            killer.start()
        try:
            scribe.write(index, index.folder, coded(index, document(id, text)), [])
            possible = {text}
            longest *= 0.7 if killed else 1
        except RepconcError:
            assert killed
            possible, cut = {text, state[id]}, cut + 1
            longest *= 1.2
        if killed:
            killer.join()
            scribe.close()
        after = Index(index.folder)
        after.verify()
        found = {id: after.get(id) for id in state}
        texts = {id: document.text if document else None for id, document in found.items()}
        assert texts[id] in possible and texts == state | {id: texts[id]}
        state = texts
    assert cut > 3 and len(after.segments) <= 2


def _full_sqlite() -> RepconcError:
    cause = sqlite3.OperationalError("database or disk is full")
    cause.sqlite_errorcode = sqlite3.SQLITE_FULL
    error = RepconcError("it could not be written")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "number"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), OSError, errno.ENOSPC),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), OSError, errno.ENOSPC),
        (_full_sqlite(), OSError, errno.ENOSPC),
        (OSError(errno.EIO, "Input/output error"), RepconcError, None),
        (ZeroDivisionError("a defect"), RuntimeError, None),
    ],
)
def test_a_disk_that_is_full_is_told_from_other_faults(tmp_path, monkeypatch, error, kind, number):
    def fails(*_, **__):
        raise error

    index = Index(vector_index(tmp_path / "index"))
    monkeypatch.setattr(module, "add", fails)
    scribe = Scribe(2)
    monkeypatch.setattr(scribe, "_exchange", lambda head, documents: module._answer(head, documents, None)[1])
    with pytest.raises(kind) as raised:
        scribe.write(index, index.folder, [], ["d1"])
    assert getattr(raised.value, "errno", None) == number


def delete(server, id: str):
    return server.ask(f"/v1/documents/{id}", method="DELETE", token=TOKEN)


def test_one_that_was_killed_is_started_again(tmp_path):
    folder = vector_index(tmp_path / "index")
    with running(folder, folder=tmp_path) as server:
        assert children_of(server.process.pid) == [], "reading needs none"
        assert delete(server, "d1").status == 200
        (process,) = children_of(server.process.pid)
        os.kill(process, signal.SIGTERM)  # as the one who stops a whole service does: it is left to the server
        assert delete(server, "d2").status == 200
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: not _runs(process))
        assert delete(server, "d3").status == 200, "it had nothing to do"
        (process,) = children_of(server.process.pid)
        os.kill(process, signal.SIGSTOP)
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(delete, server, "d4")
            time.sleep(0.5)
            os.kill(process, signal.SIGKILL)
            reply = asked.result()
        assert (reply.status, reply.code) == (503, "write_failed")
        assert "has ended" in server.log.read_text()
        assert delete(server, "d4").status == 200
    assert not any(id in Index(folder) for id in ("d1", "d2", "d3", "d4"))


def test_what_a_dead_server_asked_for_is_not_done(tmp_path, monkeypatch):
    """The next one may have acknowledged something newer."""
    index = Index(vector_index(tmp_path / "index"))
    monkeypatch.setattr(module.os, "getpid", lambda: 1)  # not the parent of the process
    scribe = Scribe(2)
    with pytest.raises(RepconcError, match="has ended"):
        scribe.write(index, index.folder, coded(index, document("d1", "old")), ["d2"])
    scribe.close()
    assert Index(index.folder).manifest.version == 1


def test_neither_a_chatty_library_nor_signals_at_the_start_harm_a_write(tmp_path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys, time; print('hello'); time.sleep(0.5)")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    index, scribe = Index(vector_index(tmp_path / "index")), Scribe(2)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(scribe.write, index, index.folder, [], ["d1"])
        wait_for(lambda: scribe._process is not None)
        os.kill(scribe._process.pid, signal.SIGTERM)
        os.kill(scribe._process.pid, signal.SIGINT)
        assert asked.result() == 2
    assert scribe.write(index, index.folder, [], ["d2"]) == 3
    scribe.close()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def test_it_ends_in_the_middle_of_a_merge_where_it_takes_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ENDING_SECONDS", 0.2)
    index, scribe = Index(vector_index(tmp_path / "index")), Scribe(2)
    assert scribe.write(index, index.folder, [], ["d1"]) == 2
    process = scribe._process
    os.kill(process.pid, signal.SIGSTOP)  # as if it were busy
    scribe.close()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_server(tmp_path, number):
    with running(vector_index(tmp_path / "index"), folder=tmp_path) as server:
        assert server.ask("/v1/documents/d1", method="DELETE", token=TOKEN).status == 200
        (process,) = children_of(server.process.pid)
        server.process.send_signal(number)
        server.process.wait(30)
        wait_for(lambda: not _runs(process), 10)


def _runs(process: int) -> bool:
    """Not one that has ended with all its threads, and that nobody has collected yet."""
    folder = Path(f"/proc/{process}")
    try:
        ended = folder.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        return not ended or len(list(folder.joinpath("task").iterdir())) > 1
    except OSError:
        return False

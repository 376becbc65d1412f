"""Flipped bytes, cut files, full disks, two writers: the index is whole, or says that it is not."""

import os
import random
import resource
import signal
import threading
import weakref
from contextlib import suppress
from pathlib import Path

import pytest

from repconc.errors import RepconcError
from repconc.files import locked
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import add, build, compact, remove
from tests.indexes.conftest import batches, codecs
from tests.indexes.states import FORK, QUERY, State, batch, contents, operation


def test_many_segments_and_many_readers_need_few_files(folder):
    for number in range(300, 312):
        add(folder, batches([number]))
    before = len(list(Path("/proc/self/fd").iterdir()))
    readers = [Index(folder) for _ in range(5)]
    readers[0].search(QUERY, 10, filter="year > 2000")
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 20
    opened = weakref.ref(readers[0])
    readers.clear()
    assert opened() is None, "what nobody holds is closed at once, without the help of the garbage collector"


@pytest.fixture
def changed(tmp_path) -> Path:
    """An index of two segments with removals."""
    coding, scoring = codecs()
    state: State = {f"d{number}": 0 for number in range(200)}
    build(tmp_path / "index", batch(state), coding=coding, scoring=scoring, lists=6)
    add(tmp_path / "index", batch({f"d{number}": 1 for number in range(190, 230)}), replace=True)
    remove(tmp_path / "index", ["d5", "d6"])
    return tmp_path / "index"


def everything(folder: Path):
    """All that one can ask of an index."""
    index = Index(folder)
    everyone = index.search(QUERY, 500, probes=6, documents=True)
    return everyone, index.search(QUERY, 500, filter="version = 1"), [index.get(f"d{n}") for n in range(0, 235, 5)]


def test_a_flipped_byte_anywhere_is_found_and_never_a_wrong_answer(changed, tmp_path):
    answers, chance = everything(changed), random.Random(0)
    for path in sorted(changed.glob("[!.]*")):
        content = path.read_bytes()
        places = {0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(5))}
        for place in places:
            flipped = bytearray(content)
            flipped[place] ^= 1 << chance.randrange(8)
            path.write_bytes(flipped)
            with pytest.raises(RepconcError):
                Index(changed).verify()
            with suppress(RepconcError):
                assert everything(changed) == answers, (path.name, place)
                # Rows vouch for themselves there, so that bytes between them may go unseen until a check.
                assert path.suffix == ".documents", (path.name, place)
        path.write_bytes(content)
    assert everything(changed) == answers


def test_a_file_that_is_cut_or_missing_is_found(changed):
    for path in sorted(changed.glob("[!.]*")):
        content = path.read_bytes()
        for wrong in (content[:-1], content[: len(content) // 2], b"", content + b"\0"):
            path.write_bytes(wrong)
            with pytest.raises(RepconcError):
                Index(changed)
        path.unlink()
        with pytest.raises(RepconcError, match=r"is missing|holds no index"):
            Index(changed)
        path.write_bytes(content)


@pytest.mark.parametrize("limit", [0, 100, 1000, 5000, 9000, 20000, 40000])
def test_a_full_disk_leaves_the_old_index(changed, limit):
    """The system refuses to write more than so many bytes into a file."""
    before = contents(Index(changed))
    names = {path.name for path in changed.iterdir()}

    def write() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            add(changed, batch({f"d{number}": 0 for number in range(1000, 2500)}))
        except (RepconcError, OSError) as error:  # the command line makes one sentence of either
            os._exit(7 if "File too large" in str(error) or "could not be written" in str(error) else 8)
        os._exit(0)

    process = FORK.Process(target=write)
    process.start()
    process.join()
    assert process.exitcode == 7
    assert contents(Index(changed)) == before
    assert {path.name for path in changed.iterdir()} == names


def test_files_and_folder_are_synced_before_the_rename(changed, monkeypatch):
    synced, real_sync, real_replace, commits = set(), os.fsync, Path.replace, []

    def sync(descriptor) -> None:
        synced.add(Path(f"/proc/self/fd/{descriptor}").resolve())
        real_sync(descriptor)

    def replace(self, target):
        if Path(target).name == MANIFEST:
            commits.append(set(synced))
            files = {path for path in changed.resolve().glob("0*") if path.suffix != ".spool"}
            assert files - before <= synced and {self, changed.resolve()} <= synced
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    for change in (
        lambda: add(changed, batch({"d900": 0, "d3": 9}), replace=True),
        lambda: remove(changed, ["d900"]),
        lambda: add(changed, batch({"d901": 0, "d4": 9}), replace=True, at_most=2),
        lambda: compact(changed),
    ):
        before = set(changed.resolve().glob("0*"))
        synced.clear()
        change()
    assert len(commits) == 4


def test_a_new_folder_is_synced_into_those_above_it(tmp_path, monkeypatch):
    synced, real_sync = set(), os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda number: (synced.add(Path(f"/proc/self/fd/{number}").resolve()), real_sync(number))
    )
    coding, scoring = codecs()
    build(tmp_path / "a" / "b" / "index", batches(range(60)), coding=coding, scoring=scoring)
    assert {tmp_path.resolve(), (tmp_path / "a").resolve(), (tmp_path / "a" / "b").resolve()} <= synced


def test_the_second_writer_is_told_so(changed):
    with locked(changed / MANIFEST), pytest.raises(RepconcError, match="Another process is writing"):
        compact(changed)


def test_readers_see_the_old_or_the_new_state(changed):
    """One thread opens and reads all the time while another one changes the index."""
    states, failures, over = [contents(Index(changed))], [], threading.Event()
    planned, chance, state = [], random.Random(1), states[0]
    for number in range(25):
        change, state = operation(state, chance, fresh=5000 + 100 * number)
        planned.append(change)
        states.append(state)

    def read() -> None:
        seen = 0
        try:
            while not over.is_set():
                found = contents(Index(changed))
                assert found in states[seen:], "a state that never was, or that is past"
                seen = states.index(found, seen)
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for change in planned:
        change(changed)
    over.set()
    reader.join()
    assert not failures, failures[0]
    assert contents(Index(changed)) == states[-1]


def test_a_build_that_was_killed_is_begun_anew(tmp_path):
    coding, scoring = codecs()
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "000001.spool").write_bytes(b"half a code")
    (folder / "000001.documents").write_bytes(b"half a document")
    assert len(build(folder, batches(range(60)), coding=coding, scoring=scoring)) == 60
    assert not (folder / "000001.spool").exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    coding, scoring = codecs()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "20240101.jpg").write_text("precious")
    with pytest.raises(RepconcError, match=r"holds other things, such as 20240101.jpg"):
        build(tmp_path / "photos", batches(range(60)), coding=coding, scoring=scoring)
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["20240101.jpg"]
    with pytest.raises(RepconcError, match="cannot fill"):
        build(tmp_path / "new", batches(range(9)), coding=coding, scoring=scoring, lists=99)
    assert not (tmp_path / "new").exists()


def test_a_newer_format_is_refused(changed):
    path = changed / MANIFEST
    path.write_text(path.read_text().replace('"format": 1', '"format": 2', 1))
    with pytest.raises(RepconcError, match="format 2, newer than this version reads"):
        Index(changed)

"""Files are whole or not there."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from repconc.errors import RepconcError
from repconc.files import atomic_directory, atomic_write, cache_directory, sha256_of, together


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path, "w") as file:
        file.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_folder_leaves_nothing_and_an_existing_one_is_not_replaced(tmp_path):
    folder = tmp_path / "folder"
    with pytest.raises(RuntimeError), atomic_directory(folder) as partial:
        (partial / "b").write_text("2")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    with atomic_directory(folder) as partial:
        (partial / "a").write_text("1")
    with pytest.raises(RepconcError, match="is there already"), atomic_directory(folder):
        pass
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [folder]


def test_links_are_followed_and_pipes_written_to(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with atomic_write(tmp_path / "link", "w") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(tmp_path / "pipe", "w") as file:
        file.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    with pytest.raises(RepconcError, match="is a folder"), atomic_write(tmp_path):
        pass


def test_a_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    code = (
        "import os, signal, pathlib; from repconc.files import atomic_write\n"
        f"with atomic_write(pathlib.Path({str(path)!r}), 'w') as file:\n"
        "    file.write('new' * 100000); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert path.read_text() == "old"


def test_files_are_synced_before_the_rename(tmp_path, monkeypatch):
    events = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (events.append("sync"), real_sync(descriptor))[1])
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda self, target: (events.append("rename"), real_replace(self, target))[1]
    )
    with atomic_write(tmp_path / "file") as file:
        file.write(b"x")
    assert events == ["sync", "rename", "sync"]


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("REPCONC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "repconc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "repconc"


def test_sha256_is_that_of_the_bytes(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert sha256_of(tmp_path / "empty").startswith("e3b0c44298fc1c14")


def test_files_are_written_also_by_a_thread_that_outlives_the_program(tmp_path):
    """Python begins no more threads then, for pools least of all."""
    code = (
        "import sys, threading, time\nfrom pathlib import Path\nfrom repconc.files import together\n"
        "def work():\n    threading.main_thread().join()\n    time.sleep(0.2)\n"
        "    together(Path.unlink, [Path(name) for name in sys.argv[1:]])\n"
        "threading.Thread(target=work).start()"
    )
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.touch()
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True, timeout=60)
    assert not any(path.exists() for path in paths)


def test_all_are_done_before_an_error_is_told(tmp_path):
    done = []

    def work(path):
        if path.name == "0":
            raise OSError("no")
        time.sleep(0.05)
        done.append(path.name)

    with pytest.raises(OSError, match="no"):
        together(work, [tmp_path / str(number) for number in range(40)])
    assert len(done) == 39


def test_what_could_not_begin_is_not_done_later(tmp_path, monkeypatch):
    """As where a process has as many threads as it may have: the pool fails and keeps the work in its queue."""
    pool, start, done = ThreadPoolExecutor(1), threading.Thread.start, []

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("repconc.files._threads", lambda: pool)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    together(done.append, [tmp_path / name for name in "abc"])
    monkeypatch.setattr(threading.Thread, "start", start)
    together(lambda path: None, [tmp_path, tmp_path])
    pool.shutdown()
    assert sorted(path.name for path in done) == ["a", "b", "c"]

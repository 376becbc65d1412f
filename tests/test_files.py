"""Files are whole or not there."""

import os
import subprocess
import sys

import pytest

from repconc.errors import RepconcError
from repconc.files import atomic_directory, atomic_write, cache_directory, sha256_of


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

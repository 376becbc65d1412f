"""Files are whole or not there."""

import os
import subprocess
import sys

import pytest

from repconc.files import atomic_directory, atomic_write, cache_directory, sha256_of


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path, "w") as file:
        file.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_folder_leaves_the_old_folder_and_nothing_else(tmp_path):
    folder = tmp_path / "folder"
    with atomic_directory(folder) as partial:
        (partial / "a").write_text("1")
    with pytest.raises(RuntimeError), atomic_directory(folder) as partial:
        (partial / "b").write_text("2")
        raise RuntimeError
    assert [path.name for path in folder.iterdir()] == ["a"]
    with atomic_directory(folder) as partial:
        (partial / "c").write_text("3")
    assert [path.name for path in folder.iterdir()] == ["c"]
    assert list(tmp_path.iterdir()) == [folder]


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

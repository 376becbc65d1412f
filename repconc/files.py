"""Files that are either whole or not there, and where the cache lives."""

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel, ValidationError

from repconc.errors import RepconcError

Model = TypeVar("Model", bound=BaseModel)


def cache_directory() -> Path:
    """Where downloaded data and encoders live: $REPCONC_CACHE, else repconc/ in the user's cache folder."""
    if chosen := os.environ.get("REPCONC_CACHE"):
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "repconc"
    except RuntimeError as error:
        raise RepconcError("There is no home folder to keep a cache in: set REPCONC_CACHE to a folder.") from error


@contextmanager
def atomic_write(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Write beside `path`, sync, then rename: a reader or a crash sees the old file or the new one, nothing between.

    A link is followed; a device or a pipe is written to as it is.
    """
    encoding = None if "b" in mode else "utf-8"
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open(mode, encoding=encoding) as handle:
            yield handle
        return
    with atomic_path(path) as partial, partial.open(mode, encoding=encoding) as handle:
        yield handle


@contextmanager
def atomic_path(path: Path, after: Sequence[Path] = ()) -> Iterator[Path]:
    """The same for a library that wants a name and not a file: what it writes there is synced and renamed.

    after: other files and folders that have to be on the disk before the rename; they are synced at the same time.
    """
    path = path.resolve()
    if path.is_dir():
        raise RepconcError(f"{path} is a folder; give the name of a file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(path)
    try:
        yield partial
        together(sync, [partial, *after])
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Fill a folder beside `path`, sync it, then rename it to `path`, which must be empty or not there."""
    path = path.resolve()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RepconcError(f"{path} is there already; remove it first, or choose another name.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(path)
    partial.mkdir()
    try:
        yield partial
        for file in partial.rglob("*"):
            sync(file)
        sync(partial)
        partial.rename(path)
        sync(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock of `path`, a file beside it; without `wait`, BlockingIOError where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _beside(path: Path) -> Path:
    """A new hidden name; several machines may write into one folder, so a process id would not do."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")


def remove_partials(folder: Path, of: str = "") -> None:
    """Remove what killed writers left in a folder, or what they left `of` one name. Only where nobody writes now."""
    ours = re.compile(rf"\.{re.escape(of) if of else '.+'}\.[0-9a-f]{{12}}\.partial")
    for partial in folder.iterdir():
        if ours.fullmatch(partial.name):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink(missing_ok=True)


def remove_whole(folder: Path) -> None:
    """Remove a folder; a kill on the way leaves nothing under its name, only what `remove_partials` knows."""
    partial = folder.rename(_beside(folder))
    shutil.rmtree(partial)


def write_model(path: Path, model: BaseModel) -> None:
    """Settings or a manifest as JSON."""
    with atomic_write(path) as file:
        file.write(as_json(model))


def as_json(model: BaseModel) -> bytes:
    return model.model_dump_json(indent=2).encode() + b"\n"


def read_model(path: Path, kind: type[Model]) -> Model:
    """Read what `write_model` wrote. A file of a newer format says so, whatever else is new in it."""
    return parse_model(path.read_bytes(), path, kind)


def parse_model(content: bytes, path: Path, kind: type[Model]) -> Model:
    """The same for content that was read already."""
    try:
        newest, found = kind.model_fields.get("format"), json.loads(content).get("format", 0)
        if newest is not None and isinstance(found, int) and found > newest.default:
            raise RepconcError(f"{path} has format {found}, newer than this version reads; update repconc.")
        return kind.model_validate_json(content)
    except (ValueError, AttributeError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "not a JSON object"}
        field = ".".join(map(str, first["loc"])) or "the file"
        raise RepconcError(f"{path}: {field} is not as this program writes it ({first['msg']}).") from error


def make_directory(path: Path) -> None:
    """Make a folder and those above it, so that a power cut does not undo them."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)


def sync(path: Path) -> None:
    """Make the content of a file durable, or the names in a folder, without which a power cut may undo a rename."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def together(work: Callable[[Path], None], paths: Sequence[Path]) -> None:
    """Something to many files at once; one by one, each waits for the disk and then, on a busy machine, for a turn."""
    futures: list[Future[None]] = []
    over = threading.Event()

    def in_time(path: Path) -> None:
        """A pool that could not begin a thread has queued the work all the same: later it must not be done again."""
        if not over.is_set():
            work(path)

    with suppress(RuntimeError):  # no more threads, as where Python ends: the rest is done here
        for path in paths[1:]:
            futures.append(_threads().submit(in_time, path))
    try:
        for path in (*paths[:1], *paths[1 + len(futures) :]):
            work(path)
    finally:
        wait(futures)  # also where one has failed: nothing goes on behind our back
        over.set()
    for future in futures:
        future.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(16, "repconc-disk")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads stay behind in the parent


def sha256_of(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()

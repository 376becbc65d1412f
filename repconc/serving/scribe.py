"""The process that writes. Commits and merges are long for the interpreter, which the searches of the server need.

The server sends a line of JSON for each change, and one for each of its documents; the process answers with one.
Documents come with their codes, so that it needs no model. It ends when the server does, for then its input ends.
"""

import base64
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from repconc.errors import BusyError, DamagedError, DocumentError, RepconcError, ReplacedError, first_line
from repconc.indexes.folder import remove_past
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import IndexManifest, read_manifest
from repconc.indexes.writing import add, merge_small
from repconc.records import Document
from repconc.serving.logs import tell_failure

Coded = Sequence[tuple[Sequence[Document], np.ndarray]]
"""Documents with their codes [n, M]."""

KINDS: dict[str, type[RepconcError]] = {
    kind.__name__: kind for kind in (BusyError, DocumentError, ReplacedError, RepconcError)
}
FULL, DEFECT = "full", "defect"
ENDING_SECONDS = 3.0
SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Scribe:
    """The server's end, for one thread. The process starts with the first change, and again where it has died."""

    def __init__(self, at_most: int) -> None:
        """at_most: segments, past which small ones are merged."""
        self._at_most = at_most
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: IO[bytes]

    def write(self, index: Index, served: Path, coded: Coded, gone: Collection[str]) -> int:
        """Add or replace documents and remove others, in one commit; gives the version that holds it.

        served: the path that the index is known by, which may be a link.
        """
        codes = b"".join(codes.tobytes() for _, codes in coded)
        head = {"served": str(served.absolute()), "codes": base64.b64encode(codes).decode(), "gone": sorted(gone)}
        return self._ask(index, head, [document for documents, _ in coded for document in documents])

    def merge(self, index: Index) -> None:
        """Merge the smallest segments, also those that are too large to be merged by a write on its way."""
        self._ask(index, {}, [])

    def close(self) -> None:
        """It has a while to do what it was asked for."""
        if self._process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=ENDING_SECONDS)
        self.kill()
        self._process.wait()
        self._answers.close()
        self._process = None

    def kill(self) -> None:
        """At once, from any thread: what is half written does not count."""
        process = self._process  # which another thread may let go meanwhile
        if process is not None:
            process.kill()

    def _ask(self, index: Index, head: dict[str, Any], documents: Sequence[Document]) -> int:
        head |= {
            "server": os.getpid(),
            "folder": str(index.folder),
            "files": _files(index.manifest),
            "at_most": self._at_most,
            "documents": len(documents),
        }
        try:
            answer = self._exchange(head, documents)
            result, sentence = answer["result"], answer["sentence"]
        except Exception as error:  # whatever it is: what comes next from the process would be another's answer
            self.kill()
            self.close()
            sentence = "The process that writes has ended; what it was asked for may be written or not."
            raise RepconcError(sentence) from error
        if result == FULL:
            raise OSError(errno.ENOSPC, sentence)
        if result == DEFECT:
            raise RuntimeError(sentence)
        if result in KINDS:
            raise KINDS[result](sentence)
        return int(result)

    def _exchange(self, head: dict[str, Any], documents: Sequence[Document]) -> Any:
        if self._process is not None and self._process.poll() is not None:  # it died while it had nothing to do
            self.close()
        if self._process is None:
            self._process, self._answers = _start()
        assert self._process.stdin is not None
        for line in (head, *map(_fields, documents)):
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._answers.readline())


def _start() -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The same Python with the same packages, whatever lies in the folder that it is started in.

    Answers have a pipe of their own, for who knows what prints to standard output. Signals are for the server, also
    where they are sent to all of a service or a terminal: a thread's mask of them is handed down.
    """
    reader, writer = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "repconc.serving.scribe", str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(writer,),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(place or "." for place in sys.path)},
        )
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process, os.fdopen(reader, "rb")


def main(answers: IO[bytes]) -> None:
    """The end that writes: until the server closes its input, or dies."""
    opened: Index | None = None
    lines = iter(sys.stdin.buffer.readline, b"")
    for line in lines:
        try:
            head = json.loads(line)
            documents = [Document(**json.loads(next(lines))) for _ in range(head["documents"])]
        except (ValueError, StopIteration):  # the server died in the middle of it
            return
        opened, answer = _answer(head, documents, opened)
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except OSError:
            return
        opened = _tidied(opened)


def _answer(
    head: dict[str, Any], documents: list[Document], opened: Index | None
) -> tuple[Index | None, dict[str, Any]]:
    """What was opened for it, and the version it led to, or what went wrong."""
    try:
        folder = Path(head["folder"])
        if opened is None or opened.folder != folder or _files(opened.manifest) != head["files"]:
            opened = Index(folder, opened)
        if "codes" in head:
            _write(opened, head, documents)
        else:
            merge_small(folder, head["at_most"], like=opened)
        return opened, {"result": read_manifest(folder).version, "sentence": ""}
    except Exception as error:  # whatever it is: the server has to hear of it, and the next change may succeed
        return opened, _failure(error)


def _failure(error: Exception) -> dict[str, str]:
    if _is_full(error):
        return {"result": FULL, "sentence": first_line(error)}
    if not isinstance(error, RepconcError | OSError | sqlite3.Error):
        tell_failure("writing failed", error)
        return {"result": DEFECT, "sentence": f"{type(error).__name__} in the process that writes"}
    kind = next((name for name, kind in KINDS.items() if isinstance(error, kind)), RepconcError.__name__)
    return {"result": kind, "sentence": first_line(error)}


def _write(index: Index, head: dict[str, Any], documents: list[Document]) -> None:
    if _files(index.manifest) != head["files"]:
        raise ReplacedError(f"Another index took the place of {index.folder}; open it again.")
    codes = np.frombuffer(base64.b64decode(head["codes"]), np.uint8).reshape(-1, index.manifest.bytes)

    def batches() -> Iterator[tuple[Sequence[Document], np.ndarray]]:
        """Under the lock. What is written into a folder that the name no longer leads to would never be seen; and what
        a dead server asked for might undo what the next one has acknowledged."""
        if Path(head["served"]).resolve() != index.folder:
            raise ReplacedError(f"{head['served']} leads to another index now.")
        if os.getppid() != head["server"]:
            raise RepconcError("The server has ended.")
        yield documents, codes

    write = partial(add, index.folder, replace=True, without=head["gone"], like=index, tidy=False)
    try:
        write(batches(), at_most=head["at_most"])
    except DamagedError:  # a small segment that would have gone along; who writes need not suffer for it
        write(batches())


def _tidied(opened: Index | None) -> Index | None:
    """As the last change left it, so that the next one has only to open what is newer than that."""
    if opened is None:
        return None
    try:
        remove_past(opened.folder)
        return Index(opened.folder, opened)
    except Exception:  # the next change opens it, and tells what is wrong with it
        return None


def _fields(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in ("id", "text", "title", "metadata")}


def _files(manifest: IndexManifest) -> dict[str, Any]:
    """What tells an index from another that took its place: codes of one are no codes of the other."""
    return {name: entry.model_dump(mode="json") for name, entry in manifest.files.items()}


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if isinstance(error, sqlite3.Error) and error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            return True
        error = error.__cause__
    return False


if __name__ == "__main__":
    main(os.fdopen(int(sys.argv[1]), "wb"))

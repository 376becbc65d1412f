"""The folder of an index as its one writer sees it: the lock, and what does not belong to the index."""

import math
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from repconc.errors import BusyError, DocumentError, RepconcError, first_line
from repconc.files import locked, make_directory, remove_partials, sync, together
from repconc.indexes.manifest import MANIFEST, read_manifest, require_index

OURS = re.compile(
    r"(\d{6,})\.(codec|centroids|codes|offsets|numbers|ids|ends|hashes|owners|documents|fields|removed|spool)"
)
"""The names of our files, with their numbers; everything else in the folder belongs to the user."""


@contextmanager
def writing(folder: Path, new: bool = False) -> Iterator[ExitStack]:
    """Hold the lock, and clean up before and after: what no manifest names was never finished, or is not needed.

    Gives what will be done at the end, for those who would rather leave it to `remove_past`.
    """
    fresh = new and not folder.exists()
    if new:
        refuse_foreign(folder)
        make_directory(folder)
    else:
        require_index(folder)
    try:
        with locked(folder / MANIFEST, wait=False), ExitStack() as cleaning:
            if fresh:
                cleaning.callback(_remove_unbuilt, folder)
            cleaning.callback(_clean, folder)
            _clean(folder)
            try:
                yield cleaning
            except UnicodeEncodeError as error:
                raise DocumentError(f"A document holds half of a character ({first_line(error)}); mend it.") from error
            except sqlite3.DataError as error:  # longer than SQLite can hold
                raise DocumentError(f"A document cannot be kept ({first_line(error)}); shorten it.") from error
            except sqlite3.Error as error:
                raise RepconcError(f"{folder} could not be written ({first_line(error)}); it is as it was.") from error
    except BlockingIOError as error:
        raise BusyError(f"Another process is writing to {folder}; wait for it, then try again.") from error


def refuse_foreign(folder: Path) -> None:
    """A folder for a new index is new, empty, or holds what a build that was killed left there."""
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise RepconcError(f"{folder} is there already and no folder; choose another name.")
    for path in folder.iterdir() if folder.exists() else ():
        if not OURS.fullmatch(path.name) and MANIFEST not in path.name:
            raise RepconcError(f"{folder} holds other things, such as {path.name}; choose another name.")


def remove_past(folder: Path) -> None:
    """Remove what was in the index and is not any more. No lock: nobody gives a number twice, or names these again.

    The manifest may be another writer's, who has not synced its rename yet: a power cut must not bring back the last.
    """
    manifest = read_manifest(folder)
    sync(folder)
    _remove_others(folder, manifest.names(), manifest.next_number)


def _clean(folder: Path) -> None:
    _remove_others(folder, read_manifest(folder).names() if (folder / MANIFEST).exists() else set())
    remove_partials(folder, of=MANIFEST)


def _remove_unbuilt(folder: Path) -> None:
    if not (folder / MANIFEST).exists():
        shutil.rmtree(folder)


def _remove_others(folder: Path, names: Collection[str], below: float = math.inf) -> None:
    """Our files that have none of these names, and a number below that."""
    found = [(path, OURS.fullmatch(path.name)) for path in folder.iterdir() if path.name not in names]
    others = [path for path, ours in found if ours and int(ours[1]) < below]
    together(partial(Path.unlink, missing_ok=True), others)


def refuse_inside(folder: Path, output: Path) -> None:
    """What is written beside an index must not lie in it: it could take the place of its files."""
    if output.resolve().is_relative_to(folder.resolve()):
        raise RepconcError(f"{output} lies in the folder of the index itself; choose another place.")

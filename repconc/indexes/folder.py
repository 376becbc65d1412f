"""The folder of an index as its one writer sees it: the lock, and what does not belong to the index."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repconc.errors import BusyError, DocumentError, RepconcError, first_line
from repconc.files import locked, make_directory, remove_partials
from repconc.indexes.manifest import MANIFEST, read_manifest, require_index

OURS = re.compile(
    r"\d{6,}\.(codec|centroids|codes|offsets|numbers|ids|ends|hashes|owners|documents|fields|removed|spool)"
)
"""The names of our files; everything else in the folder belongs to the user."""


@contextmanager
def writing(folder: Path, new: bool = False) -> Iterator[None]:
    """Hold the lock, and clean up before and after: what no manifest names was never finished, or is not needed."""
    fresh = new and not folder.exists()
    if new:
        refuse_foreign(folder)
        make_directory(folder)
    else:
        require_index(folder)
    try:
        with locked(folder / MANIFEST, wait=False):
            _clean(folder)
            try:
                yield
            except UnicodeEncodeError as error:
                raise DocumentError(f"A document holds half of a character ({first_line(error)}); mend it.") from error
            except sqlite3.DataError as error:  # longer than SQLite can hold
                raise DocumentError(f"A document cannot be kept ({first_line(error)}); shorten it.") from error
            except sqlite3.Error as error:
                raise RepconcError(f"{folder} could not be written ({first_line(error)}); it is as it was.") from error
            finally:
                _clean(folder)
                if fresh and not (folder / MANIFEST).exists():
                    shutil.rmtree(folder)
    except BlockingIOError as error:
        raise BusyError(f"Another process is writing to {folder}; wait for it, then try again.") from error


def refuse_foreign(folder: Path) -> None:
    """A folder for a new index is new, empty, or holds what a build that was killed left there."""
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise RepconcError(f"{folder} is there already and no folder; choose another name.")
    for path in folder.iterdir() if folder.exists() else ():
        if not OURS.fullmatch(path.name) and MANIFEST not in path.name:
            raise RepconcError(f"{folder} holds other things, such as {path.name}; choose another name.")


def _clean(folder: Path) -> None:
    names = read_manifest(folder).names() if (folder / MANIFEST).exists() else set()
    for path in folder.iterdir():
        if path.name not in names and OURS.fullmatch(path.name):
            path.unlink()
    remove_partials(folder, of=MANIFEST)


def refuse_inside(folder: Path, output: Path) -> None:
    """What is written beside an index must not lie in it: it could take the place of its files."""
    if output.resolve().is_relative_to(folder.resolve()):
        raise RepconcError(f"{output} lies in the folder of the index itself; choose another place.")

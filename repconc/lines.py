"""Lines of text files, plain or gzipped, each with its place; what is not UTF-8 or cut is named, not guessed at."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from repconc.errors import RepconcError


class Place(NamedTuple):
    """Where a record stands: a file and the line in it."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Problem(NamedTuple):
    """What is wrong with the input, and where."""

    place: Place
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


class InputError(RepconcError):
    """Input that cannot be used."""


Report = Callable[[Problem], None]
"""What a reader does with a line that it cannot use. It goes on to the next line if this returns."""


def refuse(problem: Problem) -> NoReturn:
    """The strict way to report: stop at the first problem."""
    raise InputError(str(problem))


def read_lines(path: Path, report: Report = refuse) -> Iterator[tuple[Place, str]]:
    """Non-empty lines. Lines end at a line feed only: some texts hold other separators inside a line."""
    place = Place(str(path), 0)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                place = Place(str(path), number)
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    report(
                        Problem(place, f"byte {error.start + 1} of the line is not UTF-8; convert the file to UTF-8.")
                    )
                    continue
                if line.strip():
                    yield place, line
    except FileNotFoundError:
        report(Problem(Place(str(path), 0), "the file is missing."))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        report(Problem(place, "the gzip file is broken or cut here; fetch it again."))
    except OSError as error:
        report(Problem(place, f"the file cannot be read: {error.strerror or error}."))


def is_id(text: str) -> bool:
    """Whether a text can name a document or query: evaluation tools in C stop at a control character."""
    return bool(text) and not any(character < " " or character == "\x7f" for character in text)


def plain_or_gzipped(path: Path) -> Path:
    """`path`, or `path.gz` where only that exists."""
    gzipped = path.with_name(path.name + ".gz")
    return gzipped if gzipped.exists() and not path.exists() else path

"""What a search may cost: it is given up once nobody waits for it, or when it brings more than can be sent."""

from collections.abc import Callable

from repconc.errors import RepconcError


class StoppedError(RepconcError):
    """A search that was given up because nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__("The search was given up; ask for less, or allow more time.")


class TooLargeError(RepconcError):
    """The documents of a search are larger than allowed."""


class Bounds:
    """Asked in between; one for each search."""

    def __init__(self, stop: Callable[[], bool] = lambda: False, characters: int | None = None) -> None:
        """stop: whether to give up; asked from the thread that searches. characters: of all documents together."""
        self.stop, self._limit, self._taken = stop, characters, 0

    def go_on(self) -> None:
        if self.stop():
            raise StoppedError

    def take(self, characters: int) -> None:
        """Some more characters of documents."""
        self._taken += characters
        if self._limit is not None and self._taken > self._limit:
            raise TooLargeError(f"The documents have more than {self._limit:,} characters; ask for fewer.")

"""What a client is told when a request is not answered: a status, a code for machines and a sentence for people."""

import json
from collections.abc import Mapping
from typing import Any

RETRY_SECONDS = 1


class Refusal(Exception):  # noqa: N818 (it is no error of ours)
    """A request that is not answered."""

    def __init__(self, status: int, code: str, message: str, *, close: bool = False) -> None:
        """close: whether the connection ends, because what follows on it is not known."""
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = {"connection": "close"} if close else {}
        if status in (409, 429, 503, 507):
            self.headers["retry-after"] = str(RETRY_SECONDS)

    @property
    def body(self) -> bytes:
        """In ASCII, so that half characters of a request can be named too."""
        return json.dumps({"error": {"code": self.code, "message": self.message}}).encode()


def too_many() -> Refusal:
    return Refusal(429, "too_many_requests", "The server is busy; try again in a second.")


def answer_too_large(most: int) -> Refusal:
    sentence = f"The answer is larger than {most:,} bytes; lower k, ask fewer queries at a time, or leave out the text."
    return Refusal(413, "answer_too_large", sentence)


def shutting_down() -> Refusal:
    return Refusal(503, "shutting_down", "The server is shutting down; ask another one.", close=True)


def too_late(seconds: float) -> Refusal:
    return Refusal(504, "timed_out", f"This took longer than {seconds:g} seconds; ask for less at a time.")


def too_slow(seconds: float) -> Refusal:
    return Refusal(
        408, "too_slow", f"The request did not arrive within {seconds:g} seconds; send it again.", close=True
    )


def invalid(message: str, code: str = "invalid_request") -> Refusal:
    return Refusal(422, code, message)


def misunderstood(problem: Mapping[str, Any]) -> Refusal:
    """The first thing that is wrong with a request, as pydantic tells it."""
    place = ".".join(str(part) for part in problem["loc"] if part != "body")[:200]
    return invalid(f"{place}: {problem['msg']}." if place else f"{problem['msg']}.")


def internal() -> Refusal:
    return Refusal(500, "internal_error", "Something went wrong in the server; its log says what.")

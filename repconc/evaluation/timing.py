"""How fast a system answers."""

import time
from collections.abc import Callable, Sequence
from typing import Any


def queries_per_second(search: Callable[[Sequence[str], int], Any], texts: Sequence[str], k: int = 10) -> float:
    """Questions answered a second, from text to ids, one after the other; the first ten warm up."""
    for text in texts[:10]:
        search([text], k)
    start = time.perf_counter()
    for text in texts:
        search([text], k)
    return len(texts) / (time.perf_counter() - start)

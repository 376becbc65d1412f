"""Documents with versions, whose whole state can be read back from an index: for tests that change it or break it."""

import multiprocessing
import random

import numpy as np

from repconc.codec import score
from repconc.indexes.ivf import Index
from repconc.indexes.writing import add, compact, remove
from repconc.records import Document, Hit, in_order

FORK = multiprocessing.get_context("fork")
QUERY = np.random.default_rng(3).normal(size=15).astype(np.float32)

State = dict[str, int]  # id -> version: all that there is to know of a document


def document(id: str, version: int) -> Document:
    return Document(id, f"text of {id}, version {version}", metadata={"version": version})


def code(id: str, version: int) -> np.ndarray:
    return np.random.default_rng([int(id[1:]), version]).integers(0, 16, 4).astype(np.uint8)


def batch(state: State):
    yield [document(*item) for item in state.items()], np.array([code(*item) for item in state.items()])


def contents(index: Index) -> State:
    """What the index holds, read back through a search for everything; answers must be those of its documents."""
    hits = index.search(QUERY, 10_000, probes=index.manifest.lists, documents=True)[0]
    state = {hit.id: hit.document.metadata["version"] for hit in hits}
    codes = np.array([code(*item) for item in state.items()], np.uint8).reshape(-1, 4)
    scores = score(index.scoring.tables(QUERY)[0], codes)
    expected = in_order(Hit(id, float(value)) for id, value in zip(state, scores, strict=True))
    assert [hit._replace(document=None) for hit in hits] == expected
    assert [hit.document for hit in hits] == [document(*item) for item in state.items()]
    return state


def operation(state: State, chance: random.Random, fresh: int):
    """A random change: what it does to a folder, and the state after it."""
    known = sorted(state)
    some = {id: state[id] + 1 for id in chance.sample(known, min(len(known), chance.randint(1, 15)))}
    new = {f"d{number}": 0 for number in range(fresh, fresh + chance.randint(1, 20))}
    kind = chance.choice(["add", "update", "remove", "compact"])
    options = {"at_most": chance.choice([None, 2]), "tidy": chance.random() < 0.5}
    if kind == "add" or not known:
        return (lambda folder: add(folder, batch(new), **options)), state | new
    if kind == "update":
        return (lambda folder: add(folder, batch(some | new), replace=True, **options)), state | some | new
    if kind == "remove":
        return (lambda folder: remove(folder, list(some))), {id: state[id] for id in known if id not in some}
    return compact, state

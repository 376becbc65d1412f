"""From what is given to what is learned from: the mode, the queries that are held out, and who should find what.

documents    nothing else is there: documents, a little off, stand in for queries; the uncompressed ranking teaches
queries      real queries; the uncompressed ranking teaches (Distill-VQ's idea; the paper leaves it to future work)
labels       queries and who is relevant: the paper's objective

Real queries are few beside documents, and soon learned by heart. So they are joined by stand-ins for other documents,
which are made of them: what a query says beyond its document is moved to another document (`moved`).
"""

from typing import Literal, NamedTuple

import numpy as np
import torch

from repconc.compression.given import Given, Sample, lengths_of, refuse_length
from repconc.errors import RepconcError
from repconc.maps import unit
from repconc.models.inputs import CachedVectors
from repconc.records import Qrels
from repconc.training.examples import Examples, Validation
from repconc.training.negatives import FixedVectors, top

Mode = Literal["documents", "queries", "labels"]
TAUGHT = 10
"""Documents that the uncompressed ranking calls right."""
SHARE, DEV, TEST = 0.1, 500, 1000
"""Of the queries, how many are held out: a tenth, or so many, for choosing the checkpoint and for the report each."""
FEWEST = 30
QUERIES = 100_000
"""Queries that are used at most."""
STAND_INS = 20_000
NEIGHBOURS = 16
"""Documents that are near a document, one of which is mixed into its stand-in."""


class Asked(NamedTuple):
    """Some queries."""

    ids: list[str]
    vectors: np.ndarray  # [Q, D]

    def at(self, places: np.ndarray) -> "Asked":
        return Asked([self.ids[place] for place in places.tolist()], self.vectors[places])


class Splits(NamedTuple):
    """Queries to learn from, to choose the checkpoint with, and to report on."""

    train: Asked
    dev: Asked
    test: Asked


def mode_of(given: Given, forced: Mode | None) -> Mode:
    """The highest step of the ladder that there is input for, or the one that is asked for."""
    reached: Mode = "documents" if given.queries is None else "queries" if given.qrels is None else "labels"
    ladder = ["documents", "queries", "labels"]
    if forced is not None and forced not in ladder:
        raise RepconcError(f"mode is {forced!r}; it is one of {', '.join(ladder)}.")
    if forced is not None and ladder.index(forced) > ladder.index(reached):
        raise RepconcError(f"Mode {forced} needs more than is given: with what is there, {reached} is possible.")
    return forced or reached


def choose_queries(given: Given, mode: Mode, seed: int) -> np.ndarray:
    """The rows of the queries that are used: with labels, those that have some; of very many, a random part."""
    if given.queries is None or mode == "documents":
        return np.empty(0, np.int64)
    usable = np.arange(len(given.queries))
    if mode == "labels":
        assert given.qrels is not None
        if unknown := given.qrels.keys() - set(given.query_ids):
            raise RepconcError(f"The labels speak of the query {sorted(unknown)[0]!r}, which has no vector.")
        usable = np.array([row for row, id in enumerate(given.query_ids) if relevant_to(given, id)], np.int64)
    return np.sort(np.random.default_rng(seed).permutation(usable)[:QUERIES])


def relevant_to(given: Given, query: str) -> list[str]:
    """What people marked as relevant."""
    return [id for id, grade in (given.qrels or {}).get(query, {}).items() if grade > 0]


def split_queries(given: Given, sample: Sample, mode: Mode, rows: np.ndarray, seed: int) -> Splits:
    """Deal out the queries of some rows, or stand-ins.

    Equal ones go to the same side, so that what is held out was never learned, and there each counts once.
    """
    random = np.random.default_rng(seed)
    asked = stand_ins(sample, STAND_INS, random) if mode == "documents" else _real_queries(given, sample, rows)
    _, first, group = np.unique(asked.vectors, axis=0, return_index=True, return_inverse=True)
    if len(first) < FEWEST:
        what = (
            "different documents to stand in for queries"
            if mode == "documents"
            else "different queries that can be used"
        )
        raise RepconcError(
            f"There are {len(first)} {what}; at least {FEWEST} are needed, because some are held out to measure with."
        )
    order = random.permutation(len(first))  # of the groups
    dev, test = (min(round(SHARE * len(first)), most) for most in (DEV, TEST))
    learned = np.isin(group, order[dev + test :])
    return Splits(
        train=asked.at(np.flatnonzero(learned)),
        dev=asked.at(np.sort(first[order[:dev]])),
        test=asked.at(np.sort(first[order[dev : dev + test]])),
    )


def stand_ins(sample: Sample, count: int, random: np.random.Generator) -> Asked:
    """Documents of the sample, each mixed with a near one: what a query for it might be, where no query is known."""
    places = random.permutation(len(sample.ids))[:count]
    documents = sample.vectors[places]
    near = exact(documents, sample.vectors, NEIGHBOURS + 1)[:, -NEIGHBOURS:]  # itself comes first
    other = near[np.arange(len(places)), random.integers(near.shape[1], size=len(places))]
    mixed = documents + random.random((len(places), 1), np.float32) * sample.vectors[other]
    return Asked([sample.ids[place] for place in places.tolist()], unit(mixed) if sample.unit else mixed)


def moved(asked: np.ndarray, answers: np.ndarray, sample: Sample, count: int, random: np.random.Generator) -> Asked:
    """Stand-ins for documents of the sample, made of real queries [Q, D] and documents that answer them [Q, D].

    A query is its share along its answer and a rest across it, q = a d + r. For another document e it becomes
    a e + r', where r' is what of r is across e, at its old length: as near to e as q is to d, and off in a way in which
    real queries are off.
    """
    places = random.permutation(len(sample.ids))[:count]
    pairs = random.integers(len(asked), size=len(places))
    q, d, e = asked[pairs], unit(answers[pairs]), sample.vectors[places]
    along = (q * d).sum(axis=1, keepdims=True)  # a |d|
    rest = q - along * d
    direction = unit(e)
    across = rest - (rest * direction).sum(axis=1, keepdims=True) * direction
    made = along * direction + unit(across) * np.linalg.norm(rest, axis=1, keepdims=True)
    return Asked([sample.ids[place] for place in places.tolist()], made.astype(np.float32))


def make_examples(given: Given, sample: Sample, splits: Splits, mode: Mode, seed: int) -> Examples:
    """What the phases of training read."""
    number_of = {id: number for number, id in enumerate(sample.ids)}
    everything = np.arange(len(sample.ids))
    if mode == "labels":
        assert given.qrels is not None
        qrels: Qrels = {id: given.qrels[id] for id in splits.dev.ids}
        relevant = [np.array([number_of[id] for id in relevant_to(given, query)]) for query in splits.train.ids]
    else:
        qrels = nearest_of(splits.dev, sample)
        relevant = list(exact(splits.train.vectors, sample.vectors, TAUGHT))
    if mode == "documents":
        extra = Asked([], np.empty((0, sample.vectors.shape[1]), np.float32))
    else:
        answers = sample.vectors[[row[0] for row in relevant]]
        extra = moved(splits.train.vectors, answers, sample, STAND_INS, np.random.default_rng([seed, 1]))
    sources = [np.array([number_of[id]]) for id in extra.ids]
    dev = Validation(
        query_ids=splits.dev.ids,
        queries=CachedVectors([splits.dev.vectors]),
        qrels=qrels,
        relevance=1,
        documents=everything,
        measure="MRR@10" if mode == "labels" else f"R@{TAUGHT}",
    )
    return Examples(
        document_ids=sample.ids,
        documents=CachedVectors([sample.vectors]),
        queries=CachedVectors([part for part in (splits.train.vectors, extra.vectors) if len(part)]),
        relevant=[np.sort(row) for row in relevant] + sources,
        labelled=len(splits.train.ids),
        validation=dev,
        judged=mode == "labels",
    )


def nearest_of(asked: Asked, sample: Sample) -> Qrels:
    """What uncompressed vectors put among their first ten."""
    numbers = exact(asked.vectors, sample.vectors, TAUGHT)
    return {id: {sample.ids[n]: 1 for n in row.tolist()} for id, row in zip(asked.ids, numbers, strict=True)}


def exact(queries: np.ndarray, documents: np.ndarray, count: int) -> np.ndarray:
    """[Q, count]: the numbers of the best documents by inner product."""
    held = torch.from_numpy(documents)
    return top(torch.from_numpy(queries), FixedVectors(lambda: held), min(count, len(documents)))[1].numpy()


def _real_queries(given: Given, sample: Sample, rows: np.ndarray) -> Asked:
    assert given.queries is not None
    vectors = given.queries.rows(rows)
    lengths = lengths_of(vectors)
    if len(rows):
        refuse_length(float(lengths.max()), int(rows[lengths.argmax()]), given.queries.source, sample.unit)
    if sample.unit:
        if len(zero := np.flatnonzero(lengths == 0)):
            raise RepconcError(f"Row {rows[zero[0]]} of {given.queries.source} is all zeros; leave it out.")
        vectors = unit(vectors)
    return Asked([given.query_ids[row] for row in rows.tolist()], vectors)

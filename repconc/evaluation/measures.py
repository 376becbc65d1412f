"""Measures of a run against judgements, by the ir-measures package.

Three things are settled here so that they cannot differ between systems: every judged query counts, one that brought
nothing back as zero; results stand in the one order of ties; binary measures use the data set's relevance threshold.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from repconc.errors import RepconcError, first_line
from repconc.packages import Progress
from repconc.records import Hit, Qrels, Query, Run, in_order

MEASURES = ("MRR@10", "MRR@100", "nDCG@10", "R@100", "R@1000")
QUERIES_AT_A_TIME = 256

Search = Callable[[Sequence[str], int], list[list[Hit]]]
"""What can be measured: questions and k in, hits out."""


@dataclass(frozen=True)
class Evaluation:
    """What a run is worth, query by query."""

    query_ids: list[str]
    values: dict[str, np.ndarray]
    """Measure -> one value per query, in the order of query_ids."""
    tied: float
    """The share of the first ten results whose score another result of the same query has too."""

    @property
    def means(self) -> dict[str, float]:
        return {measure: float(values.mean()) for measure, values in self.values.items()}


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str] = MEASURES, relevance: int = 1) -> Evaluation:
    """Measure a run. `relevance` is the lowest grade that counts as relevant in binary measures."""
    if not qrels:
        raise RepconcError("There are no judgements to measure with.")
    if not run.keys() & qrels.keys():
        raise RepconcError("The run answers none of the judged queries; was it made for another data set or split?")
    import ir_measures

    parsed = parse_measures(measures, relevance)
    query_ids = sorted(qrels)
    row = {query_id: number for number, query_id in enumerate(query_ids)}
    values = {name: np.zeros(len(query_ids)) for name in measures}
    ranked = _ranked(run, qrels)
    try:
        metrics = list(ir_measures.iter_calc(list(parsed.values()), qrels, ranked))
    except Exception as error:  # a provider may need a program that is not here, or refuse the input in its own way
        raise RepconcError(f"ir-measures cannot compute {', '.join(measures)} here: {first_line(error)}") from error
    for metric in metrics:
        for name in (name for name, measure in parsed.items() if measure == metric.measure):
            values[name][row[metric.query_id]] = metric.value
    return Evaluation(query_ids, values, tied_share(run))


def answer(search: Search, queries: Sequence[Query], k: int = 1000, progress: Progress | None = None) -> Run:
    """The run of a search function over queries."""
    run: Run = {}
    for start in range(0, len(queries), QUERIES_AT_A_TIME):
        batch = queries[start : start + QUERIES_AT_A_TIME]
        run |= zip((query.id for query in batch), search([query.text for query in batch], k), strict=True)
        if progress:
            progress(len(run), len(queries))
    return run


def tied_share(run: Run, depth: int = 10) -> float:
    """The share of the first `depth` results that share their score with another result of the same query."""
    tied = total = 0
    for hits in run.values():
        scores = np.array([hit.score for hit in in_order(hits)], dtype=np.float32)
        equal = np.concatenate([[False], scores[1:] == scores[:-1], [False]])
        tied += int((equal[:-1] | equal[1:])[:depth].sum())
        total += min(depth, len(hits))
    return tied / total if total else 0.0


def _ranked(run: Run, qrels: Qrels) -> dict[str, dict[str, float]]:
    """The run with scores that fall by rank: providers of measures break ties in different ways, and now find none."""
    for query_id, hits in run.items():
        if any(math.isnan(hit.score) for hit in hits):
            raise RepconcError(f"The run holds a score that is not a number, for query {query_id!r}.")
    return {
        query_id: {hit.id: float(len(hits) - rank) for rank, hit in enumerate(in_order(hits))}
        for query_id, hits in run.items()
        if query_id in qrels
    }


def parse_measures(names: Sequence[str], relevance: int = 1) -> dict[str, Any]:
    """Measures by name, or a sentence about the first that is none."""
    if not names:
        raise RepconcError("No measure is named.")
    return {name: _parse(name, relevance) for name in names}


def _parse(name: str, relevance: int) -> Any:
    """A measure by its name; MRR is what ir-measures calls RR."""
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name.removeprefix("M") if name.startswith("MRR") else name)
        if int(measure.params.get("cutoff", 1)) < 1 or measure.params.keys() - measure.SUPPORTED_PARAMS.keys():
            raise ValueError("a cutoff below 1 or an unknown parameter")
    except Exception as error:  # what a parser raises at odd text is of many kinds
        raise RepconcError(f"{name!r} is not a measure that ir-measures knows; try {', '.join(MEASURES)}.") from error
    threshold = measure.SUPPORTED_PARAMS.get("rel")
    if threshold is not None and threshold.default == 1 and "rel" not in measure.params:
        measure = measure(rel=relevance)
    return measure

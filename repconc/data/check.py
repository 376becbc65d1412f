"""Everything that can be wrong with a data set, found in one pass over it and named by file and line.

Memory stays at 8 bytes a document: ids are kept as 64-bit hashes, and only ids whose hashes meet are compared.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from repconc.data.dataset import RetrievalDataset, Source, duplicate_judgement
from repconc.lines import Place, Problem, Report, refuse
from repconc.packages import Progress
from repconc.records import Document, Query

Observe = Callable[[Document], None]
"""Called with each document on the way, by those who want to hash them in the same pass."""


class Counts(NamedTuple):
    """What a sound data set holds."""

    documents: int
    queries: dict[str, int]
    judgements: dict[str, int]


def ensure_sound(
    dataset: RetrievalDataset,
    splits: Iterable[str] | None = None,
    observe: Observe | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Stop at the first problem of the corpus and of the given splits (all of them by default)."""
    chosen = tuple(dataset.splits if splits is None else splits)
    return _check(dataset.source, chosen, refuse, _counting(dataset, progress, observe))


def find_problems(dataset: RetrievalDataset, progress: Progress | None = None) -> tuple[Counts, list[Problem]]:
    """All problems at once."""
    problems: list[Problem] = []
    counts = _check(dataset.source, dataset.splits, problems.append, _counting(dataset, progress, None))
    if not dataset.splits:
        problems.append(Problem(Place(dataset.name, 0), "there are no judgements, so nothing can be measured on it."))
    return counts, problems


def _counting(dataset: RetrievalDataset, progress: Progress | None, observe: Observe | None) -> Observe | None:
    """The observer, with progress every so many documents."""
    if progress is None:
        return observe
    seen, expected = 0, dataset.card.documents or 0

    def count(document: Document) -> None:
        nonlocal seen
        seen += 1
        if seen % 10_000 == 0:
            progress(seen, max(seen, expected))
        if observe:
            observe(document)

    return count


def _check(source: Source, splits: tuple[str, ...], report: Report, observe: Observe | None) -> Counts:
    report = _once(report)
    documents = _unique_ids("document", source.documents, report, observe)
    if not len(documents):
        report(Problem(Place(source.file_of(None), 0), "the corpus is empty; there is nothing to search."))
    counts = Counts(len(documents), {}, {})
    for split in splits:
        counts.queries[split], counts.judgements[split] = _check_split(source, split, documents, report)
    _compare_with_card(source, counts, report)
    return counts


def _once(report: Report) -> Report:
    """Report each problem once, although the queries of all splits may stand in one file that is read again."""
    seen: set[Problem] = set()

    def report_new(problem: Problem) -> None:
        if problem not in seen:
            seen.add(problem)
            report(problem)

    return report_new


def _compare_with_card(source: Source, counts: Counts, report: Report) -> None:
    """A card that says more or less than there is means a file that was cut or mixed up."""
    said = {"documents": source.card.documents} | {f"queries of {split}": n for split, n in source.card.queries.items()}
    found = {"documents": counts.documents} | {f"queries of {split}": n for split, n in counts.queries.items()}
    for what, number in said.items():
        if number is not None and found.get(what, number) != number:
            report(
                Problem(Place(source.card.name, 0), f"the card says {number:,} {what} and there are {found[what]:,}.")
            )


def _check_split(source: Source, split: str, documents: np.ndarray, report: Report) -> tuple[int, int]:
    """Judgements must name known queries and documents, once each. Gives how many queries they judge, and how many."""
    queries = _unique_ids("query", lambda r: source.queries(split, r), report)
    judged, pairs = set[str](), set[int]()
    for place, judgement in source.judgements(split, report):
        judged.add(judgement.query_id)
        if not _contains(documents, judgement.document_id):
            report(Problem(place, f"the judged document {judgement.document_id!r} is not in the corpus."))
        if not _contains(queries, judgement.query_id):
            report(Problem(place, f"the judged query {judgement.query_id!r} is not among the queries."))
        pair = hash((judgement.query_id, judgement.document_id))
        if pair in pairs:
            report(duplicate_judgement(place, judgement))
        pairs.add(pair)
    if not judged:
        report(Problem(Place(source.file_of(split), 0), f"split {split!r} has no judgements."))
    return len(judged), len(pairs)


Read = Callable[[Report], Iterator[tuple[Place, Document]]] | Callable[[Report], Iterator[tuple[Place, Query]]]


def _unique_ids(kind: str, read: Read, report: Report, observe: Observe | None = None) -> np.ndarray:
    """The sorted hashes of all ids, duplicates reported with the place of the second and of the first."""
    collected = array("q")
    for _, record in read(report):
        collected.append(hash(record.id))
        if observe and isinstance(record, Document):
            observe(record)
    hashes = np.sort(np.frombuffer(collected, dtype=np.int64)) if collected else np.empty(0, np.int64)
    suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if suspects:
        first: dict[str, Place] = {}
        for place, record in read(lambda _: None):
            if hash(record.id) in suspects:
                if record.id in first:
                    report(Problem(place, f"the {kind} id {record.id!r} is there already, at {first[record.id]}."))
                first.setdefault(record.id, place)
    return hashes


def _contains(hashes: np.ndarray, id: str) -> bool:
    position = int(np.searchsorted(hashes, hash(id)))
    return position < len(hashes) and int(hashes[position]) == hash(id)

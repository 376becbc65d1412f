"""TREC run files: `query Q0 document rank score tag`, one result a line, blank-separated."""

import math
import struct
from pathlib import Path

from repconc.errors import RepconcError
from repconc.files import atomic_write
from repconc.lines import Place, Problem, is_id, read_lines, refuse
from repconc.records import Hit, Run, in_order


def read_run(path: Path | str) -> Run:
    """Read a run file, plain or gzipped. As in trec_eval the score decides the order and the rank is not looked at."""
    hits: dict[str, dict[str, float]] = {}
    for place, line in read_lines(Path(path)):
        query_id, document_id, score = _parse(place, line)
        found = hits.setdefault(query_id, {})
        if document_id in found:
            refuse(Problem(place, f"document {document_id!r} is there twice for query {query_id!r}."))
        found[document_id] = score
    if not hits:
        raise RepconcError(f"{path} holds no results; a run file has 'query Q0 document rank score tag' on each line.")
    return {query_id: in_order(Hit(id, score) for id, score in found.items()) for query_id, found in hits.items()}


def _parse(place: Place, line: str) -> tuple[str, str, float]:
    fields = line.split()
    if len(fields) != 6:
        refuse(Problem(place, f"a line of a run has 6 fields (query Q0 document rank score tag), not {len(fields)}."))
    try:
        score = struct.unpack("f", struct.pack("f", float(fields[4])))[0]  # as float32, the one precision of scores
    except OverflowError:
        score = math.copysign(math.inf, float(fields[4]))
    except ValueError:
        score = math.nan
    if not is_id(fields[0]) or not is_id(fields[2]):
        refuse(Problem(place, "an id holds a control character."))
    if math.isnan(score):
        refuse(Problem(place, f"the score {fields[4]!r} is not a number."))
    return fields[0], fields[2], score


def write_run(path: Path | str, run: Run, tag: str = "repconc") -> None:
    """Write a run file. Nine digits bring every float32 score back to the bit, so that ties stay ties."""
    for id in [*run, *(hit.id for hits in run.values() for hit in hits), tag]:
        if not id or id.split() != [id]:
            raise RepconcError(f"The id {id!r} is empty or holds a blank, which a run file cannot carry; rename it.")
    with atomic_write(Path(path), "w") as file:
        for query_id, hits in run.items():
            for rank, hit in enumerate(in_order(hits), 1):
                file.write(f"{query_id} Q0 {hit.id} {rank} {hit.score:.9g} {tag}\n")

"""BEIR folders: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv, and our card.json where `repconc data get` wrote one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from repconc.data.dataset import Card
from repconc.files import atomic_directory, read_model, write_model
from repconc.lines import Place, Problem, Report, is_id, plain_or_gzipped, read_lines, refuse
from repconc.records import Document, Judgement, Qrels, Query

QRELS_HEADER = "query-id\tcorpus-id\tscore"


class BeirFolder:
    """A reader of one BEIR folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def recognises(folder: Path) -> bool:
        return plain_or_gzipped(folder / "corpus.jsonl").exists()

    @cached_property
    def card(self) -> Card:
        path = self.folder / "card.json"
        if not path.exists():
            return Card(name=self.folder.resolve().name)
        return read_model(path, Card)

    @cached_property
    def splits(self) -> tuple[str, ...]:
        files = [*self.folder.glob("qrels/*.tsv"), *self.folder.glob("qrels/*.tsv.gz")]
        names = {path.name.removesuffix(".gz").removesuffix(".tsv") for path in files if path.name[0] != "."}
        usual = [name for name in ("train", "dev", "test") if name in names]
        return (*usual, *sorted(names - set(usual)))

    def file_of(self, split: str | None) -> str:
        path = self.folder / "corpus.jsonl" if split is None else self.folder / "qrels" / f"{split}.tsv"
        return str(plain_or_gzipped(path))

    def documents(self, report: Report) -> Iterator[tuple[Place, Document]]:
        return read_documents(self.folder / "corpus.jsonl", report)

    def queries(self, split: str, report: Report) -> Iterator[tuple[Place, Query]]:
        """All queries: a BEIR folder keeps those of every split in one file."""
        for place, row in _read_objects(self.folder / "queries.jsonl", report):
            id, text = _id(row), row.get("text")
            if id is None:
                report(Problem(place, "the field '_id' is missing, empty or not a string of printable characters."))
            elif not isinstance(text, str):
                report(Problem(place, f"query {id!r} has no field 'text' that is a string."))
            elif _sound(place, report, id, text):
                yield place, Query(id, text)

    def judgements(self, split: str, report: Report) -> Iterator[tuple[Place, Judgement]]:
        return read_judgements(Path(self.file_of(split)), report)


def read_documents(path: Path, report: Report) -> Iterator[tuple[Place, Document]]:
    """A corpus of JSON lines: _id, text and, where there are any, title and metadata."""
    for place, row in _read_objects(path, report):
        id, text, title = _id(row), row.get("text"), row.get("title") or ""
        metadata = row.get("metadata") or {}
        if id is None:
            report(Problem(place, "the field '_id' is missing, empty or not a string of printable characters."))
        elif not isinstance(text, str) or not isinstance(title, str):
            report(Problem(place, f"document {id!r} has no field 'text' that is a string, or a title that is none."))
        elif not isinstance(metadata, Mapping):
            report(Problem(place, f"document {id!r} has a 'metadata' that is not an object."))
        elif _sound(place, report, id, text, title, json.dumps(metadata, ensure_ascii=False)):
            yield place, Document(id, text, title, metadata)


def read_judgements(path: Path, report: Report) -> Iterator[tuple[Place, Judgement]]:
    """Lines of query, document and score, between tabs; the first may name them."""
    for place, line in read_lines(path, report):
        fields = line.split("\t")
        if place.line == 1 and fields[0] in {"query-id", "query_id", "qid"}:
            continue
        if len(fields) != 3:
            sentence = f"a judgement has 3 tab-separated fields (query, document, score), not {len(fields)}."
            report(Problem(place, sentence))
        elif (relevance := grade(fields[2])) is None:
            report(Problem(place, f"the score {fields[2]!r} is not a whole number below 1,000."))
        else:
            yield place, Judgement(fields[0], fields[1], relevance)


def read_trec_judgements(path: Path, report: Report) -> Iterator[tuple[Place, Judgement]]:
    """TREC qrels: query, an unused field, document, grade, between blanks."""
    for place, line in read_lines(path, report):
        parts = line.split()
        if len(parts) != 4:
            report(Problem(place, f"a TREC judgement has 4 fields (query, 0, document, grade), not {len(parts)}."))
        elif (relevance := grade(parts[3])) is None:
            report(Problem(place, f"the grade {parts[3]!r} is not a whole number below 1,000."))
        else:
            yield place, Judgement(parts[0], parts[2], relevance)


def read_qrels(path: Path) -> Qrels:
    """Judgements of either form, by themselves: that of BEIR where a line has three fields between tabs."""
    first = next((line for _, line in read_lines(path)), "")
    read = read_judgements if len(first.split("\t")) == 3 else read_trec_judgements
    qrels: Qrels = {}
    for _, judgement in read(path, refuse):
        qrels.setdefault(judgement.query_id, {})[judgement.document_id] = judgement.relevance
    return qrels


def write_beir(
    folder: Path,
    documents: Iterable[Document],
    queries: Iterable[Query],
    judgements: Mapping[str, Iterable[Judgement]],
    card: Card,
) -> None:
    """Write a whole BEIR folder, or none of it."""
    with atomic_directory(folder) as partial:
        _write_objects(partial / "corpus.jsonl", ({"_id": d.id, "title": d.title, "text": d.text} for d in documents))
        _write_objects(partial / "queries.jsonl", ({"_id": query.id, "text": query.text} for query in queries))
        (partial / "qrels").mkdir()
        for split, rows in judgements.items():
            lines = (f"{row.query_id}\t{row.document_id}\t{row.relevance}\n" for row in rows)
            with (partial / "qrels" / f"{split}.tsv").open("w", encoding="utf-8") as file:
                file.write(QRELS_HEADER + "\n")
                file.writelines(lines)
        write_model(partial / "card.json", card)


def grade(text: str) -> int | None:
    """A relevance grade: a whole number that evaluation tools can hold. Some tools write 1.0 for 1."""
    return int(text.split(".")[0]) if re.fullmatch(r"-?[0-9]{1,3}(\.0*)?", text) else None


def _read_objects(path: Path, report: Report) -> Iterator[tuple[Place, dict[str, Any]]]:
    for place, line in read_lines(plain_or_gzipped(path), report):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            report(Problem(place, f"the line is not JSON ({reason}); each line must hold one object."))
            continue
        if isinstance(row, dict):
            yield place, row
        else:
            report(Problem(place, "the line is JSON but not an object."))


def _write_objects(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _id(row: dict[str, Any]) -> str | None:
    id = row.get("_id", row.get("id"))
    if isinstance(id, int) and not isinstance(id, bool):
        return str(id)
    return id if isinstance(id, str) and is_id(id) else None


def _sound(place: Place, report: Report, *texts: str) -> bool:
    """False for text with half of a surrogate pair, which JSON can spell and no file can hold."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        report(Problem(place, "the text holds half of a surrogate pair, which is not a character; mend the escape."))
        return False
    return True

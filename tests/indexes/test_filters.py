"""Filters: what they let pass, against plain Python; what they refuse."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.indexes.filters import condition_of, fields_of, parse_filter
from repconc.indexes.writing import build
from repconc.records import Document
from tests.indexes.conftest import codecs, make_codes

ROWS = [
    {"year": 2020, "lang": "en", "draft": True},
    {"year": 2021.5, "lang": 'it\'s "odd"'},
    {"year": "2022", "lang": "de", "draft": False},
    {"lang": ""},
    {"year": -3},
]
COLUMNS = {"year": "field_0", "lang": "field_1", "draft": "field_2"}


@pytest.fixture(scope="module")
def database():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE fields (number INTEGER PRIMARY KEY, field_0, field_1, field_2)")
    rows = [(number, row.get("year"), row.get("lang"), row.get("draft")) for number, row in enumerate(ROWS)]
    database.executemany("INSERT INTO fields VALUES (?, ?, ?, ?)", rows)
    return database


def passing(database, text):
    condition, values = condition_of(parse_filter(text), COLUMNS)
    return [row[0] for row in database.execute(f"SELECT number FROM fields WHERE {condition} ORDER BY number", values)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("year >= 2020", [0, 1]),
        ('year = "2022"', [2]),
        ("year < 0 or lang = 'de'", [2, 4]),
        ("not year >= 2020", [2, 3, 4]),
        ('year > 2020 and lang != "en"', [1]),
        ('lang in ("en", "de", "xx")', [0, 2]),
        ("draft = true", [0]),
        ("draft = false", [2]),
        ("NOT (draft = TRUE OR year <= -3)", [1, 2, 3]),
        ('lang = "it\'s \\"odd\\""', [1]),
        ("lang = 'it\\'s \"odd\"'", [1]),
        ("year=-3", [4]),
        ('not lang in ("en", 3)', [1, 2, 3, 4]),
        ("year in (2020, 2021.5, -3, 99999999999999999999999)", [0, 1, 4]),
        ("lang in (" + ", ".join(f'"{n}"' for n in range(5000)) + ', "de")', [2]),
        ("year < " + "9" * 5000, [0, 1, 4]),
        ("year >= 2e3", [0, 1]),
        ('"lang" = ""', [3]),
        ("unknown = 3", []),
        ("not unknown = 3", [0, 1, 2, 3, 4]),
    ],
)
def test_what_passes(database, text, numbers):
    assert passing(database, text) == numbers


@pytest.mark.parametrize(
    "text",
    ["", "  ", "year", "year =", "= 3", "year = = 3", "year 3", "(year = 3", "year = 3)", "year = 3 lang = 4", "in (3)",
     "lang in ()", "lang in (1,)", "year = 3; DROP TABLE fields", "year = lang", "year = 2020.5.6",
     "lang = \"open", "and"],
)  # fmt: skip
def test_what_is_refused(text):
    with pytest.raises(RepconcError, match="cannot be read at"):
        parse_filter(text)


def test_depth_is_bounded():
    with pytest.raises(RepconcError, match="nested"):
        parse_filter("(" * 5000 + "a = 1" + ")" * 5000)
    with pytest.raises(RepconcError, match="nested"):
        parse_filter("not " * 500 + "a = 1")


comparisons = st.tuples(
    st.sampled_from(["year", "lang", "draft"]),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.one_of(st.integers(-5, 2025), st.floats(-5, 2025), st.text("abcde \"\\'", max_size=3)),
)
trees = st.recursive(
    comparisons,
    lambda inner: st.one_of(st.tuples(st.just("not"), inner), st.tuples(inner, st.sampled_from(["and", "or"]), inner)),
    max_leaves=8,
)


def written(tree) -> str:
    match tree:
        case ("not", inner):
            return f"not ({written(inner)})"
        case (left, ("and" | "or") as word, right):
            return f"({written(left)}) {word} ({written(right)})"
    field, operator, value = tree
    if isinstance(value, str):
        value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{field} {operator} {value}"


def holds(tree, row) -> bool:
    match tree:
        case ("not", inner):
            return not holds(inner, row)
        case (left, "and", right):
            return holds(left, row) and holds(right, row)
        case (left, "or", right):
            return holds(left, row) or holds(right, row)
    field, operator, value = tree
    here = row.get(field)
    if here is None or isinstance(here, str) != isinstance(value, str):
        return False
    return {
        "=": here == value, "!=": here != value, "<": here < value,
        "<=": here <= value, ">": here > value, ">=": here >= value,
    }[operator]  # fmt: skip


@settings(deadline=None)
@given(tree=trees)
def test_any_filter_means_what_python_means(database, tree):
    text = written(tree)
    assert passing(database, text) == [number for number, row in enumerate(ROWS) if holds(tree, row)]
    assert fields_of(parse_filter(text)) <= set(COLUMNS)


def test_numbers_of_64_bits_are_compared_as_they_are(tmp_path):
    """As floats, neighbours of nineteen digits would be the same."""
    coding, scoring = codecs()
    big = 1_234_567_890_123_456_789
    documents = [Document(f"d{n}", "", metadata={"number": big + n}) for n in range(20)]
    index = build(tmp_path / "index", [(documents, make_codes(range(20)))], coding=coding, scoring=scoring)
    for text, expected in ((f"number = {big + 3}", {"d3"}), (f"number >= {big + 18}", {"d18", "d19"})):
        hits = index.search(np.ones(15, np.float32), 20, filter=text)[0]
        assert {hit.id for hit in hits} == expected

"""Run files."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.evaluation.runs import read_run, write_run
from repconc.records import Hit, in_order

ids = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)
scores = st.floats(width=32, allow_nan=False)


@given(st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_run_comes_back_with_every_score_to_the_bit(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("runs") / "a.run"
    written = {query: in_order(Hit(id, score) for id, score in hits.items()) for query, hits in run.items()}
    write_run(path, written)
    assert read_run(path) == written


def test_float32_ties_survive_the_file(tmp_path):
    score = float(np.float32(1) / np.float32(3))
    write_run(
        tmp_path / "run",
        {
            "q": [
                Hit("a", score),
                Hit("b", score),
                Hit("c", float(np.nextafter(np.float32(score), 1, dtype=np.float32))),
            ]
        },
    )
    hits = read_run(tmp_path / "run")["q"]
    assert [hit.id for hit in hits] == ["c", "b", "a"]
    assert hits[1].score == hits[2].score < hits[0].score


def test_score_decides_and_not_the_rank_column(tmp_path):
    (tmp_path / "run").write_text("q Q0 a 1 0.5 tag\nq Q0 b 2 1e400 tag\nq Q0 c 3 0.75 tag\n")
    assert [hit.id for hit in read_run(tmp_path / "run")["q"]] == ["b", "c", "a"]


def test_gzipped_runs_are_read(tmp_path):
    with gzip.open(tmp_path / "run.gz", "wt") as file:
        file.write("q Q0 a 1 0.5 tag\n")
    assert read_run(tmp_path / "run.gz") == {"q": [Hit("a", 0.5)]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("q Q0 a 1 0.5\n", r"run:1: a line of a run has 6 fields .* not 5"),
        ("q Q0 a 1 high tag\n", r"run:1: the score 'high' is not a number"),
        ("q Q0 a 1 nan tag\n", r"run:1: the score 'nan' is not a number"),
        ("q Q0 a 1 1 tag\n\nq Q0 a 2 0 tag\n", r"run:3: document 'a' is there twice for query 'q'"),
        ("", "holds no results"),
    ],
)
def test_a_wrong_run_is_refused_with_file_and_line(tmp_path, content, sentence):
    (tmp_path / "run").write_text(content)
    with pytest.raises(RepconcError, match=sentence):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("id", ["two words", "", "tab\there"])
def test_an_id_that_a_run_file_cannot_carry_is_refused(tmp_path, id):
    with pytest.raises(RepconcError, match="holds a blank"):
        write_run(tmp_path / "run", {"q": [Hit(id, 1.0)]})
    assert not (tmp_path / "run").exists()

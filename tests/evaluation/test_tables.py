"""One table in four forms."""

import json

from repconc.evaluation.tables import Table

TABLE = Table(["name", "MRR@10"], [["a_b & c", "0.5"], ["x|y", "10.25**"]], note="50 % of it")


def test_text_is_aligned():
    assert TABLE.render("text").splitlines() == [
        "name      MRR@10",
        "────────────────",
        "a_b & c      0.5",
        "x|y      10.25**",
        "50 % of it",
    ]


def test_markdown_escapes_bars():
    assert TABLE.render("markdown").splitlines()[:4] == [
        "| name | MRR@10 |",
        "| --- | ---: |",
        "| a_b & c | 0.5 |",
        "| x\\|y | 10.25** |",
    ]


def test_latex_escapes_what_is_special_to_it():
    lines = TABLE.render("latex").splitlines()
    assert lines[0] == "% 50 % of it"
    assert lines[1] == r"\begin{tabular}{@{}lr@{}}"
    assert r"a\_b \& c & 0.5 \\" in lines


def test_json_is_a_list_of_rows():
    assert json.loads(TABLE.render("json"))[1] == {"name": "x|y", "MRR@10": "10.25**"}

"""One table in three forms."""

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

"""Tables, goals and figures of the comparison from lines that nobody measured, all of them or some."""

import re

import numpy as np
import pytest

from benchmarks import methods_tables, paper, pictures, tables
from benchmarks.methods_goals import better_than, goals, p_value, pooled_p_value
from benchmarks.methods_pictures import STYLES, against_memory, against_ratio
from benchmarks.methods_tables import KINDS, ablation_table, by_ratio_table, costs_table, latex, main_table
from benchmarks.structures_table import structures_table
from repconc.baselines.registry import methods
from tests.benchmarks.made_up import QUESTIONS, line, made_up


@pytest.fixture(scope="module")
def lines() -> list[dict]:
    return [one for name in ("hotpotqa", "insuranceqa") for one in made_up("static", name, (0, 1))]


def test_every_method_has_its_place_also_one_that_somebody_adds(lines):
    assert {name for names in KINDS.values() for name in names} <= set(methods())
    new = [line("static", "hotpotqa", 0, "PQ", size) | {"method": "mine"} for size in (16, 8)]
    assert main_table(lines + new, "static").rows[-1][:3] == ["other: mine", "16", "64x"]
    assert "mine" in [text.get_text() for text in against_ratio(lines + new, "static").legends[0].get_texts()]
    marks = [(style.get("marker"), style.get("linestyle")) for style in STYLES.values()]
    assert len(set(marks)) == len(marks), "in black and white there is nothing else to tell them apart"


def test_the_main_table_has_all_methods_with_means_stars_and_seeds(lines):
    table = main_table(lines, "static")
    rows = {row[0].split(": ")[1]: row for row in table.rows}
    assert set(rows) == set(methods())
    assert rows["PQ"][1:3] == ["16", "64x"] and rows["uncompressed"][1:3] == ["1,024", "1x"]
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}\*\*", rows["PQ"][3])
    assert "*" not in rows["RepCONC"][3] and "*" not in rows["uncompressed"][3], "stars are for what is worse than ours"
    assert rows["PQ"][6] == rows["PQ"][10] == "2"
    one = next(one for one in lines if one["method"] == "PQ" and one["bytes"] == 16)
    assert rows["PQ"][5] == f"{16 + one['shared_bytes'] / one['documents']:,.0f}", "with all that is beside codes"


def test_stars_need_every_seed():
    ranks = np.ones(QUESTIONS, int)
    ours = [line("static", "hotpotqa", seed, "RepCONC", 16) | {"ranks": "".join(map(str, ranks))} for seed in (0, 1)]
    worse, equal = ours[0] | {"ranks": "2" * (QUESTIONS - 1) + "1"}, ours[1]
    assert p_value([worse], ours) < 0.01
    assert p_value([worse, equal], ours) == 1.0
    assert p_value([worse | {"seed": 7}], ours) == 1.0, "another seed is no pair"


def test_others_are_better_by_one_test_over_all_seeds_in_any_measure():
    """In each seed for itself the difference could be chance; over both it could not."""
    random = np.random.default_rng(0)
    ours, theirs = [], []
    for seed in (0, 1):
        recalls = random.random(QUESTIONS)
        shift = np.where(random.random(QUESTIONS) < 0.5, 0.05, -0.04)
        same = {"ranks": "1" * QUESTIONS}
        ours.append(line("static", "hotpotqa", seed, "RepCONC", 16) | same | {"recalls": list(recalls)})
        theirs.append(line("static", "hotpotqa", seed, "MoPQ", 16) | same | {"recalls": list(recalls + shift)})
    each = [p_value([one], [other], "R@100") for one, other in zip(ours, theirs, strict=True)]
    assert pooled_p_value(ours, theirs, "R@100") < min(each)
    better = theirs[0] | {"recalls": [value + 0.1 * (n % 2) for n, value in enumerate(ours[0]["recalls"])]}
    assert better_than("RepCONC", {"RepCONC": ours, "MoPQ": [better]}) == ["MoPQ (R@100)"]
    assert pooled_p_value(ours, [better | {"seed": 9}], "R@100") == 1.0, "another seed is no pair"
    assert pooled_p_value([better], ours[:1], "R@100") == 1.0, "what is worse is not better"


def test_additive_codes_win_from_some_size_of_the_corpus_on():
    def of(method: str, size: int, value: float, shared: int) -> dict:
        own: dict = {"measures": {"MRR@10": value, "R@100": value}, "bytes_per_document": size, "documents": 1000}
        own["milliseconds_a_query"] = size / 4
        made = line("static", "hotpotqa", 0, method, size) | own
        rotation = 4 * made["dimensions"] ** 2 if method == "RepCONC" else 0  # is not counted
        return made | {"shared_bytes": shared // 2 + rotation}  # an index has two sets of codebooks

    product = [of("RepCONC", 8, 0.4, 99_000), of("RepCONC", 16, 0.6, 198_000)]
    table = structures_table([*product, of("RepCONC with additive codes", 8, 0.5, 999_000)])
    # Product codes would need 12 bytes for as much: 4 more, against 900,000 bytes of codebooks and, in that many
    # documents, 120 bytes for the classes of each of 850 lists.
    assert [row[:2] for row in table.rows] == [["hotpotqa, static", "8"]]
    figures = ["+25.0%", "107 and 1013", "2.00 and 2.00", "250,000 documents", "1"]
    assert table.rows[0][4:5] + table.rows[0][7:] == figures
    best = structures_table([*product, of("RepCONC with additive codes", 8, 0.7, 999_000)])
    worst = structures_table([*product, of("RepCONC with additive codes", 8, 0.3, 999_000)])
    last = structures_table([*product, of("RepCONC with additive codes", 16, 0.7, 1_099_000)])
    others = [one | {"seed": 1, "measures": {"MRR@10": 0.1, "R@100": 0.1}} for one in product[:1]]
    small = structures_table([*product, of("RepCONC with additive codes", 8, 0.5, 60_000)])
    ends = [table.rows[0][-2] for table in (best, worst, last, small)]
    assert ends[3] == "any size", "its codebooks are no larger"
    assert ends[:3] == ["at most 120,000 documents", "never", ""], "nothing that was measured is as good as the last"
    longer = structures_table(
        [*product, of("RepCONC", 24, 0.6, 198_000), of("RepCONC with additive codes", 8, 0.6, 999_000)]
    )
    assert longer.rows[0][-2] == "120,000 documents", "of two sizes that rank as well the smaller one"
    again = structures_table([*product, *others, of("RepCONC with additive codes", 8, 0.5, 999_000)])
    assert again.rows == table.rows, "a seed that one size has alone does not count"
    short = of("RepCONC", 12, 0.1, 99_000) | {"seed": 1}
    both = [of("RepCONC with additive codes", 8, 0.5, 999_000) | {"seed": seed} for seed in (0, 1)]
    more = [one | {"seed": 1} for one in product]
    assert structures_table([*product, *more, short, *both]).rows[0][-2:] == ["250,000 documents", "2"], (
        "a size without all seeds is no rival"
    )
    assert structures_table(product).rows == []


def test_some_lines_make_some_of_a_table(lines):
    some = [one for one in lines if one["method"] in ("OPQ", "RepCONC") and one["bytes"] in (16, 4)]
    some = [one for one in some if one["seed"] == 0 or one["bytes"] == 16]
    some = [one for one in some if one["dataset"] == "hotpotqa" or one["method"] == "OPQ"]
    assert [row[0] for row in main_table(some, "static").rows] == ["unsupervised: OPQ", "supervised: RepCONC"]
    assert main_table(some, "static").rows[1][-4:] == [""] * 4, "not measured there"
    assert ablation_table(some, "static").columns[1:3] == ["hotpotqa, 16 bytes", "hotpotqa, 4 bytes"]
    row = by_ratio_table(some, "static", "hotpotqa").rows[0]
    assert row[1].endswith("(2)") and row[2].endswith("(1)"), "how many seeds"
    assert len(costs_table(some, "static", "hotpotqa").rows) == 2
    assert against_ratio(some, "static") is not None


def test_no_lines_make_nothing_and_no_failure(kept):
    for table in (main_table([], "static"), ablation_table([], "static"), by_ratio_table([], "static", "hotpotqa")):
        assert table.rows == []
    assert latex([]) == {} and list(goals([])) == []
    assert against_ratio([], "static") is None and against_memory([], "heads") is None
    assert tables.table("methods 64x heads") == "(Not measured yet.)"
    assert list(pictures.pictures()) == []
    assert len(paper.beside_table([]).rows) == len(paper.MAIN), "the paper's own figures stand without ours"


def test_the_papers_rows_stand_beside_ours(lines):
    table = paper.beside_table(lines)
    assert table.columns[-2:] == ["ours, hotpotqa, static", "ours, insuranceqa, static"]
    ours = next(row for row in table.rows if row[0] == "RepCONC")
    assert ours[1:4] == ["0.340", "0.864", "98%"]
    assert all(row[-1].endswith("%") for row in table.rows)


def test_latex_is_whole(lines):
    files = latex(lines)
    assert set(files) == {f"methods-static{end}.tex" for end in ("", "-ablation", "-hotpotqa", "-insuranceqa")}
    for text in files.values():
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
        body = text[text.index(r"\toprule") :]
        assert len({row.count("&") for row in body.splitlines() if row.endswith(r"\\")}) == 1
    assert methods_tables.NOTE in files["methods-static.tex"]


@pytest.mark.parametrize("draw", [against_ratio, against_memory])
def test_figures_are_drawn_in_both_forms_and_the_same_each_time(draw, lines, tmp_path):
    for folder in ("first", "second"):
        figure = draw(lines, "static")
        pictures.keep("figure", figure, tmp_path / folder)
        assert [axis.get_title() for axis in figure.axes] == ["hotpotqa", "insuranceqa"]
        assert len(figure.legends[0].get_texts()) >= 9
    for end in ("png", "svg"):
        first, second = ((tmp_path / folder / f"figure.{end}").read_bytes() for folder in ("first", "second"))
        assert first == second and len(first) > 10_000


def test_a_method_that_is_better_misses_the_goal(lines):
    found = list(goals(lines))
    assert {figure.figure.split(": ")[0] for figure in found} == {
        "methods better than RepCONC",
        "methods better than RepCONC with additive codes",
        "the paper's order does not hold",
    }
    assert not any("32 bytes" in figure.figure for figure in found), "from 64x on"
    better = [one | {"ranks": "1" * QUESTIONS} if one["method"] == "MoPQ" else one for one in lines]
    missed = [figure for figure in goals(better) if figure.figure.startswith("methods better") and not figure.met]
    assert missed and all(figure.rival == "MoPQ (MRR@10)" for figure in missed)

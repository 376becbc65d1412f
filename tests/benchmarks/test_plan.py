"""The order of the cells, and how long they are said to take."""

from benchmarks.plan import Cell, estimated, missing, plan

RECIPES, SETS = ("static", "heads"), ("hotpotqa", "insuranceqa")


def test_the_most_valuable_cells_come_first():
    cells = plan(RECIPES, SETS)
    assert len(cells) == len(set(cells)) == 2 * (3 + 3 + 2) + 2 * (3 + 3 + 5)
    first = {"static": 16, "heads": 24}
    assert all(cell.seed == 0 and cell.size == first[cell.recipe] for cell in cells[:4])
    assert {(cell.recipe, cell.dataset) for cell in cells[:4]} == {
        (recipe, name) for recipe in RECIPES for name in SETS
    }
    assert all(cell.size == first[cell.recipe] and cell.seed in (1, 2) for cell in cells[4:12])
    second = {"static": 8, "heads": 8}
    assert all(cell.size == second[cell.recipe] for cell in cells[12:24])
    assert all(cell.seed == 0 for cell in cells[24:])


def test_sizes_and_seeds_can_be_given():
    assert plan(["static"], ["squad"], [4], [7]) == [Cell("static", "squad", 4, 7)]


def line(method, bytes, seconds=100.0, fit=None):
    key = {"dataset": "hotpotqa", "recipe": "static", "seed": 0}
    return {"method": method, "bytes": bytes, "seconds": seconds, "fit_seconds": fit, **key}


def test_what_is_there_is_not_missing_and_a_fixed_size_is_measured_once():
    cell, other = Cell("static", "hotpotqa", 16, 0), Cell("static", "hotpotqa", 8, 0)
    lines = [line("OPQ", 16), line("BM25", None)]
    assert {"OPQ", "BM25"}.isdisjoint(missing(cell, lines))
    assert "OPQ" in missing(other, lines) and "BM25" not in missing(other, lines)
    first, second = estimated([cell, other], lines)
    assert "BPR" in first.names and "BPR" not in second.names, "its size is fixed: the first cell has measured it"


def test_an_estimate_follows_the_lines():
    cells = [Cell("static", "hotpotqa", 8, 0)]
    (guessed,) = estimated(cells, [], ["OPQ"])
    (known,) = estimated(cells, [line("OPQ", 16, 10.0, fit=70.0)], ["OPQ"])
    assert guessed.seconds > 0 and known.seconds == 70.0
    (done,) = estimated(cells, [line("OPQ", 8)], ["OPQ"])
    assert done.names == [] and done.seconds == 0

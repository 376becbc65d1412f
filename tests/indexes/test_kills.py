"""`kill -9` at any moment: the index holds the state before the operation or the one after it."""

import random
import time
from functools import partial
from pathlib import Path

import pytest

from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import build
from tests.indexes.conftest import codecs
from tests.indexes.states import FORK, State, batch, contents, operation


def drive(folder: Path, kills: int, seed: int) -> int:
    """Random operations, killed at random points; gives how many were really cut off."""
    chance, cut = random.Random(seed), 0
    coding, scoring = codecs()
    state: State = {f"d{number}": 0 for number in range(200)}

    def make(place: Path) -> None:
        build(place, batch(state), coding=coding, scoring=scoring, lists=6)

    began = time.perf_counter()
    whole = FORK.Process(target=partial(make, folder.with_name("whole")))
    whole.start()
    whole.join()
    longest = 1.2 * (time.perf_counter() - began)  # however fast or busy the machine is

    def start(work) -> int:
        """Run it in a process of its own, kill it soon; gives its exit code. In the long run half of them are cut."""
        nonlocal longest
        process = FORK.Process(target=work)
        process.start()
        time.sleep(chance.uniform(0, longest))
        process.kill()
        process.join()
        longest *= 1.2 if process.exitcode else 0.8
        return process.exitcode

    while start(partial(make, folder)):
        cut += 1
        if (folder / MANIFEST).exists():
            break
        with pytest.raises(RepconcError, match="holds no index"):
            Index(folder)
    for number in range(kills):
        change, after = operation(state, chance, fresh=1000 * (number + 1))
        code = start(lambda change=change: change(folder))
        cut += code != 0
        index = Index(folder)
        index.verify()
        found = contents(index)
        assert found in (state, after)
        assert found == after or code != 0, "what was finished is there"
        state = found
    return cut


def test_killed_anywhere_it_holds_the_state_before_or_after(tmp_path):
    assert drive(tmp_path / "index", 25, seed=0) > 5


@pytest.mark.slow
def test_a_build_that_is_killed_leaves_no_index_or_a_whole_one(tmp_path):
    state: State = {f"d{number}": 0 for number in range(200)}
    coding, scoring = codecs()
    chance, cut = random.Random(0), 0
    for number in range(60):
        folder = tmp_path / f"index{number}"
        make = partial(build, folder, batch(state), coding=coding, scoring=scoring, lists=6)
        process = FORK.Process(target=make)
        process.start()
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.join()
        if not (folder / MANIFEST).exists():
            cut += 1
            make()  # into the same folder
        index = Index(folder)
        index.verify()
        assert contents(index) == state
    assert cut > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_killed_anywhere_many_times(tmp_path, seed):
    assert drive(tmp_path / "index", 200, seed) > 50

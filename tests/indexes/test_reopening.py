"""What a service needs of an index: reopening that shares, merging of small segments, steps that are timed."""

import random
import shutil

import numpy as np
import pytest

from repconc.errors import BusyError, ReplacedError
from repconc.files import locked
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.stopwatch import Stopwatch
from repconc.indexes.writing import Changes, add, build, compact, merge_small, remove
from tests.indexes.conftest import batches, codecs
from tests.indexes.states import batch, contents, operation


def same(one: Index, other: Index, queries: np.ndarray) -> None:
    for options in ({}, {"filter": "year >= 2010"}, {"documents": True, "probes": 12}):
        assert one.search(queries, 20, **options) == other.search(queries, 20, **options)


def test_reopened_it_is_as_opened_anew(folder, queries):
    """Whatever happened in between; and files that stayed are not opened again."""
    chain = Index(folder)
    changes = [
        lambda: add(folder, batches(range(300, 340))),
        lambda: remove(folder, ["d1", "d2", "d310"]),
        lambda: add(folder, batches(range(5, 20)), replace=True),
        lambda: remove(folder, [f"d{n}" for n in range(300, 310)]),
        lambda: compact(folder),
        lambda: remove(folder, ["d100"]),
    ]
    for change in changes:
        chain.search(queries, 5, filter="year >= 2010")  # bitmaps are there, which must not outlive removals
        change()
        before, chain = chain, Index(folder, like=chain)
        same(chain, Index(folder), queries)
        assert chain.lists is before.lists
    chain.verify()


def test_removals_leave_the_files_of_a_segment_open(folder):
    before = Index(folder)
    remove(folder, ["d7"])
    after = Index(folder, like=before)
    assert after.segments[0].codes is before.segments[0].codes
    assert "d7" in before and "d7" not in after


def test_additions_and_removals_in_one_commit(folder):
    version = Index(folder).manifest.version
    changes = add(folder, batches(range(295, 305)), replace=True, without=["d0", "d1", "not there"])
    assert changes == Changes(added=5, replaced=5, removed=2)
    index = Index(folder)
    assert index.manifest.version == version + 1 and len(index) == 303 and "d0" not in index and "d304" in index
    assert add(folder, iter(()), without=["d2"]) == Changes(removed=1)
    assert add(folder, iter(()), without=["d2"]) == Changes()


def test_additions_over_what_is_open_already(folder, queries):
    """The writer opens only what is new; and codes for one index do not get into another that took its place."""
    opened = Index(folder)
    add(folder, batches(range(300, 310)))
    add(folder, batches(range(310, 320)), like=opened)
    assert len(Index(folder)) == 320
    merge_small(folder, 1, like=opened)
    same(Index(folder), Index(folder, like=opened), queries)
    shutil.rmtree(folder)
    coding, scoring = codecs(seed=1)
    build(folder, batches(range(50)), coding=coding, scoring=scoring, lists=12)
    with pytest.raises(ReplacedError, match="took the place"):
        add(folder, batches(range(320, 330)), like=opened)
    assert len(Index(folder)) == 50


@pytest.mark.parametrize("seed", range(3))
def test_merged_it_holds_the_same_and_few_segments(folder, seed):
    remove(folder, [f"d{n}" for n in range(300)][1:])  # one is left, so that states.py can take over
    add(folder, batch({f"d{n}": 0 for n in range(1000, 1100)}), without=["d0"])
    chance, state = random.Random(seed), {f"d{n}": 0 for n in range(1000, 1100)}
    for number in range(40):
        change, state = operation(state, chance, fresh=2000 + 100 * number)
        change(folder)
        before = Index(folder)
        changed = merge_small(folder, 4)
        after = Index(folder, like=before)
        assert len(after.segments) <= 4 and (changed == Changes()) <= (len(before.segments) <= 4)
        assert contents(after) == contents(before) == state


def test_small_additions_rewrite_a_document_a_few_times_only(folder):
    """Each is merged with its like; the large segment is left alone."""
    large = Index(folder).manifest.segments[0].files["codes"].name
    rewritten = 0
    for number in range(300, 400):
        add(folder, batches([number]))
        before = {segment.files["codes"].name for segment in Index(folder).manifest.segments}
        merge_small(folder, 8)
        after = Index(folder).manifest.segments
        rewritten += sum(segment.count for segment in after if segment.files["codes"].name not in before)
        assert large in {segment.files["codes"].name for segment in after}
    assert rewritten < 100 * 7


def test_a_second_writer_is_told_that_it_is_busy(folder):
    with locked(folder / MANIFEST), pytest.raises(BusyError, match="Another process is writing"):
        merge_small(folder, 1)


def test_steps_are_timed(index, queries):
    watch = Stopwatch()
    index.search(queries, 10, documents=True, stopwatch=watch)
    assert list(watch.seconds) == ["probe", "scan", "documents"] and all(watch.seconds.values())

"""Additions that take small segments along: in one commit, and the index holds what it would hold without."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.files import locked
from repconc.indexes import merging
from repconc.indexes.folder import remove_past
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import Changes, add, build, merge_small, remove
from tests.indexes.conftest import batches, codecs
from tests.indexes.states import QUERY, State, batch, contents

FIRST: State = {f"d{number}": 0 for number in range(20)}

ids = st.integers(0, 39).map("d{}".format)
writes = st.lists(st.tuples(st.sets(ids, max_size=6), st.sets(ids, max_size=3)), min_size=1, max_size=12)
"""Which documents are added or replaced, and which others removed."""


@contextmanager
def built(state: State) -> Iterator[Path]:
    coding, scoring = codecs()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "index"
        build(folder, batch(state), coding=coding, scoring=scoring, lists=3)
        yield folder


def after(state: State, upserts: set[str], removals: set[str]) -> tuple[State, Changes]:
    """What a write leads to, and what it has to say of it."""
    replaced, removed = upserts & state.keys(), (removals - upserts) & state.keys()
    rest = {id: version for id, version in state.items() if id not in removed}
    new = {id: state.get(id, 0) + 1 for id in upserts}
    return rest | new, Changes(len(upserts) - len(replaced), len(replaced), len(removed))


@settings(max_examples=40, deadline=None)
@given(writes, st.integers(1, 4), st.booleans())
def test_whatever_is_written_it_equals_an_index_that_is_built_anew(changes, at_most, tidy):
    with built(FIRST) as folder:
        state, opened = FIRST, Index(folder)
        for upserts, removals in changes:
            state_after, expected = after(state, upserts, removals)
            new = {id: state_after[id] for id in sorted(upserts)}
            options = {"without": removals - upserts, "at_most": at_most, "like": opened, "tidy": tidy}
            assert add(folder, batch(new) if new else (), replace=True, **options) == expected
            before, opened, state = opened, Index(folder, like=opened), state_after
            assert len(opened.segments) <= at_most
            assert opened.manifest.version - before.manifest.version == (expected != Changes())
        opened.verify()
        remove_past(folder)
        assert {path.name for path in folder.glob("0*")} == opened.manifest.names()
        assert contents(Index(folder)) == contents(opened) == state
        if state:
            with built(state) as fresh:
                for options in ({"documents": True}, {"filter": "version >= 1"}):
                    one, other = (index.search(QUERY, 50, probes=3, **options) for index in (opened, Index(fresh)))
                    assert one == other


def sizes(folder: Path) -> list[int]:
    return sorted(segment.count for segment in Index(folder).manifest.segments)


def test_small_additions_rewrite_a_document_a_few_times_only(folder):
    large = Index(folder).manifest.segments[0].files["codes"].name
    rewritten = 0
    for number in range(300, 400):
        before = Index(folder).manifest.names()
        add(folder, batches([number]), at_most=4)
        segments = Index(folder).manifest.segments
        rewritten += sum(segment.count for segment in segments if segment.files["codes"].name not in before)
        assert len(segments) <= 4 and large in {segment.files["codes"].name for segment in segments}
    assert rewritten < 100 * 7


def test_what_is_removed_from_a_segment_that_goes_along_is_not_noted_down(folder):
    add(folder, batches(range(300, 310)))
    assert add(folder, batches(range(305, 315)), replace=True, at_most=2, without=["d300"]) == Changes(5, 5, 1)
    assert sizes(folder) == [14, 300] and not list(folder.glob("*.removed"))
    assert "d300" not in Index(folder)


def test_removals_alone_rewrite_nothing(folder):
    add(folder, batches(range(300, 310)))
    assert add(folder, (), without=["d300"], at_most=1) == Changes(removed=1)
    assert sizes(folder) == [10, 300]


def test_large_segments_are_left_to_a_merge_of_their_own(folder, monkeypatch):
    monkeypatch.setattr(merging, "ABSORBED", 12)
    add(folder, batches(range(300, 320)))
    for number in range(320, 340):
        add(folder, batches([number]), at_most=2)
        assert len(sizes(folder)) <= 4, "those that are small enough go along all the same"
    assert sizes(folder)[-2:] == [20, 300]
    merge_small(folder, 2)
    assert sizes(folder) == [40, 300]


@pytest.mark.parametrize("replace", [False, True])
def test_what_is_refused_takes_nothing_along(folder, replace):
    for number in range(300, 304):
        add(folder, batches([number]))
    names = {path.name for path in folder.iterdir()}
    twice = [*batches([305]), *batches([305 if replace else 300])]
    with pytest.raises(Exception, match="comes twice" if replace else "is in the index already"):
        add(folder, twice, replace=replace, at_most=1, tidy=False)
    assert {path.name for path in folder.iterdir()} == names and sizes(folder) == [1, 1, 1, 1, 300]


def test_what_is_past_is_removed_while_another_process_writes(folder):
    """Files of numbers that are still to come may be those that it is writing."""
    add(folder, batches(range(300, 310)))
    add(folder, batches(range(310, 320)), at_most=2, tidy=False)
    add(folder, (), without=["d5"], tidy=False)
    remove(folder, ["d6"])
    add(folder, (), without=["d7"], tidy=False)
    index = Index(folder)
    written = f"{index.manifest.next_number:06d}.codes"
    for name in (written, "notes.txt"):
        (folder / name).touch()
    with locked(folder / MANIFEST):
        assert {path.name for path in folder.glob("0*")} > index.manifest.names() | {written}
        remove_past(folder)
        assert {path.name for path in folder.glob("[!.]*")} == index.manifest.names() | {written, "notes.txt", MANIFEST}
    Index(folder).verify()

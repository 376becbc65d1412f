"""The ladder of modes, the queries that are held out, and what they should find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.compression import learning
from repconc.compression.given import look_through, open_given
from repconc.compression.learning import choose_queries, exact, make_examples, mode_of, moved, split_queries
from repconc.errors import RepconcError
from repconc.maps import unit


def opened(world, mode):
    return open_given(
        world.documents,
        queries=None if mode == "documents" else world.queries,
        qrels=world.qrels if mode == "labels" else None,
    )


def sampled(given):
    return look_through(given, set(), None, 0, lambda done, total: None)


def split(given, sample, mode, seed):
    return split_queries(given, sample, mode, choose_queries(given, mode, seed), seed)


@pytest.mark.parametrize("mode", ["documents", "queries", "labels"])
def test_the_highest_step_that_there_is_input_for_is_chosen(world, mode):
    given = opened(world, mode)
    assert mode_of(given, None) == mode
    assert mode_of(given, "documents") == "documents"
    if mode != "labels":
        with pytest.raises(RepconcError, match=f"{mode} is possible"):
            mode_of(given, "labels")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), copies=st.integers(1, 4))
def test_what_is_held_out_was_never_learned_from(seed, copies):
    random = np.random.default_rng(0)
    documents = random.normal(size=(100, 6)).astype("f4")
    queries = np.tile(documents[:40], (copies, 1))
    opened = open_given(documents, queries=queries)
    splits = split(opened, sampled(opened), "queries", seed)
    parts = [{row.tobytes() for row in part.vectors} for part in splits]
    assert not parts[0] & (parts[1] | parts[2])
    assert not parts[1] & parts[2]
    assert all(parts)
    assert [len(part.ids) for part in splits] == [copies * 32, 4, 4], "what is held out counts once"


def test_queries_that_are_all_the_same_cannot_be_held_out(world):
    given = open_given(world.documents, queries=np.tile(world.queries[:1], (100, 1)))
    with pytest.raises(RepconcError, match="1 different queries"):
        split(given, sampled(given), "queries", 0)


def test_a_single_document_is_refused_with_a_sentence(world):
    given = open_given(world.documents[:1])
    with pytest.raises(RepconcError, match="1 different documents"):
        split(given, sampled(given), "documents", 0)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_queries_that_are_too_long_or_too_short_are_named(world, scale):
    given = open_given(world.documents, queries=world.queries * np.float32(scale))
    with pytest.raises(RepconcError, match="the array of queries is the longest"):
        split(given, sampled(given), "queries", 0)


def test_exact_search_is_exact(world):
    scores = world.queries @ world.documents.T
    np.testing.assert_array_equal(exact(world.queries, world.documents, 10), np.argsort(-scores, axis=1)[:, :10])


@pytest.mark.parametrize("mode", ["documents", "queries"])
def test_without_labels_the_uncompressed_ranking_says_what_is_right(world, mode):
    given = opened(world, mode)
    sample = sampled(given)
    splits = split(given, sample, mode, 0)
    examples = make_examples(given, sample, splits, mode, 0)
    assert not examples.judged
    for row, relevant in zip(splits.train.vectors, examples.relevant[: examples.labelled], strict=True):
        best = np.argsort(-(sample.vectors @ row))[: learning.TAUGHT]
        assert set(relevant.tolist()) == set(best.tolist())
    assert examples.validation.measure == "R@10"


def test_labels_are_what_people_marked_and_documents_stand_in_beside(world):
    given = opened(world, "labels")
    sample = sampled(given)
    splits = split(given, sample, "labels", 0)
    examples = make_examples(given, sample, splits, "labels", 0)
    assert examples.judged
    assert [sample.ids[row[0]] for row in examples.relevant[: examples.labelled]] == splits.train.ids
    assert len(examples.pieces) > 0
    assert len(examples.queries) == len(examples.relevant)


def test_labels_of_unknown_queries_are_named(world):
    given = open_given(world.documents, queries=world.queries, qrels={"nobody": {"0": 1}})
    with pytest.raises(RepconcError, match="'nobody', which has no vector"):
        split(given, sampled(given), "labels", 0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), is_unit=st.booleans())
def test_a_moved_query_is_as_near_to_its_document_as_the_real_one_to_its_own(seed, is_unit):
    random = np.random.default_rng(seed)
    documents, queries = (random.normal(size=(size, 12)).astype("f4") for size in (60, 1))
    documents, queries = (unit(documents), unit(queries)) if is_unit else (documents, queries)
    sample = sampled(open_given(documents))
    stand_ins = moved(queries, documents[:1], sample, 40, random)
    answers = documents[[int(id) for id in stand_ins.ids]]
    assert np.linalg.norm(stand_ins.vectors, axis=1) == pytest.approx(np.linalg.norm(queries[0]), rel=1e-4)
    cosine = (unit(stand_ins.vectors) * unit(answers)).sum(axis=1)
    assert cosine == pytest.approx(float((unit(queries) * unit(documents[:1])).sum()), abs=1e-4)
    assert len(set(stand_ins.ids)) == 40


def test_a_stand_in_without_queries_lies_between_its_document_and_a_near_one(world):
    sample = sampled(opened(world, "documents"))
    made = learning.stand_ins(sample, 50, np.random.default_rng(0))
    sources = sample.vectors[[sample.ids.index(id) for id in made.ids]]
    cosine = (unit(made.vectors) * unit(sources)).sum(axis=1)
    assert (cosine > 0.7).all(), "the document is the larger part"
    assert (cosine < 0.999).mean() > 0.5


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1.0, 1e20, 1e37])
def test_vectors_of_any_length_get_the_length_one(scale):
    x = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    x[2] = 0
    np.testing.assert_allclose(unit(x * np.float32(scale)), unit(x), rtol=1e-5)
    assert not unit(x)[2].any()
    mixed = np.vstack([x[:1], x[:1] * np.float32(scale)])
    assert (unit(mixed)[0] == unit(x[:1])[0]).all(), "others do not change it"

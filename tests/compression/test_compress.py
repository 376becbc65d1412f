"""Vectors in, an index out: in every mode, after a kill, through maps, and with what cannot be done said first."""

import numpy as np
import pytest

import repconc
from repconc.additive import AdditiveCodec
from repconc.compression.compress import run
from repconc.compression.given import open_given, paired
from repconc.compression.report import as_table, make_report, write_report
from repconc.compression.rivals import DEPTH, coded
from repconc.errors import RepconcError
from repconc.indexes.faiss_export import export_faiss, import_faiss
from repconc.indexes.ivf import Index
from repconc.indexing import add_vectors
from repconc.maps import VectorMap
from repconc.models.heads import make_heads, to_map
from repconc.training.recipe import DensePhase, make_recipe
from tests.compression.conftest import opened


@pytest.mark.parametrize("mode", ["documents", "queries", "labels"])
def test_every_mode_gives_an_index_that_finds_documents(world, recipe, mode, tmp_path):
    said = []
    result = run(opened(world, mode), tmp_path / "index", bytes=6, recipe=recipe, say=said.append)
    assert f"mode {mode}" in said[0]
    index = Index(tmp_path / "index")
    assert len(index) == 600
    hits = index.search(world.queries, 10, probes=index.manifest.lists)
    found = sum(str(number) in {hit.id for hit in row} for number, row in enumerate(hits))
    assert found > 60, "random codes would find two"
    assert not (tmp_path / "index.training").exists()
    report = make_report(result)
    assert {"uncompressed", "OPQ", "PQ", "ours"} <= {row.name for row in report.rows}
    assert bool(report.rows[0].labelled) == (mode == "labels")
    for name in ("page.html", "page.md", "page.json"):
        write_report(report, result, tmp_path / name)
    page = (tmp_path / "page.html").read_text()
    assert "<img" in page
    assert "http" not in page
    assert "page.0.svg" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "page.0.svg").exists()
    assert "OPQ" in as_table(report).render("text")


@pytest.mark.parametrize("cosine", [True, False])
def test_additive_codes_go_the_whole_way(world, recipe, cosine, tmp_path):
    """Documents can be added, and faiss takes them where it can."""
    options = {"bytes": 2, "recipe": recipe, "codes": "additive", "cosine": cosine}
    result = run(opened(world, "labels"), tmp_path / "index", **options)
    index, asked = result.index, result.splits.test
    assert isinstance(index.coding, AdditiveCodec)
    reported = coded("ours", result.sample, asked, index.coding, index.scoring).run
    assert list(reported.values()) == index.search(asked.vectors, DEPTH, probes=index.manifest.lists)
    report = make_report(result)
    assert (report.reference, "residual codes" in as_table(report).render("text")) == ("residual codes", True)
    assert any("with residual codes" in sentence for sentence in report.sentences), (
        "not OPQ, which is another structure"
    )
    hits = index.search(world.queries, 10, probes=index.manifest.lists)
    assert sum(str(number) in {hit.id for hit in row} for number, row in enumerate(hits)) > 50, "random codes find two"
    if cosine:  # decoded lengths are given back, by classes that faiss does not know
        with pytest.raises(RepconcError, match="classes of lengths"):
            export_faiss(index, tmp_path / "index.faiss")
    else:
        export_faiss(index, tmp_path / "index.faiss")  # compares the answers
    ids = [f"again {number}" for number in range(600)]
    add_vectors(tmp_path / "index", paired(open_given(world.documents, ids=ids)))
    best = Index(tmp_path / "index").search(world.queries[:20], 2, probes=999)
    assert all(first.score == second.score for first, second in best), "the same vector has the same code"


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("unit", [True, False])
def test_a_map_computes_what_its_model_learned(unit, hidden):
    import torch

    torch.manual_seed(1)
    model = make_heads(8, unit=unit, hidden=hidden)
    with torch.no_grad():
        for parameter in model.trainable().values():
            parameter += 0.3 * torch.randn_like(parameter)
    model.rotate(np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0])
    x = np.random.default_rng(1).normal(size=(20, 8)).astype("f4")
    if unit:
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    for side in ("query", "document"):
        wanted = model.embed(side, {"sentence_embedding": torch.from_numpy(x)}).detach().numpy()
        np.testing.assert_allclose(to_map(model, side)(x), wanted, atol=1e-5)


def test_documents_keep_their_vectors_where_it_is_asked_for(world, recipe, tmp_path):
    """Queries speak another language, and only they may learn."""
    foreign = world.queries @ np.random.default_rng(0).normal(size=(12, 12)).astype("f4")
    given = open_given(world.documents, queries=foreign, qrels=world.qrels)
    learned = recipe.model_copy(update={"dense": (DensePhase(epochs=40, batch=64, encoder_rate=0.02),)})
    result = run(given, tmp_path / "index", bytes=6, recipe=learned, document_map=False, cosine=False)
    turn = result.learned.coding.map.linear
    np.testing.assert_allclose(turn @ turn.T, np.eye(12), atol=1e-4, err_msg="a rotation is all that was done")
    other = result.learned.scoring.map.linear
    assert np.abs(other @ other.T - np.eye(12)).max() > 1e-3, "the query side has learned"


def test_the_coding_map_codes_documents_that_are_added_later(world, recipe, tmp_path):
    run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe, cosine=True)
    ids = [f"again {number}" for number in range(600)]
    changes = add_vectors(tmp_path / "index", paired(open_given(world.documents, ids=ids)))
    assert changes.added == 600
    codes = [
        dict(
            zip(segment.documents.ids_of(segment.numbers.all()), segment.codes_at(np.arange(600)).tolist(), strict=True)
        )
        for segment in Index(tmp_path / "index").segments
    ]
    assert {f"again {id}": code for id, code in codes[0].items()} == codes[1], "the same vector has the same code"
    with pytest.raises(RepconcError, match="all zeros"):
        add_vectors(tmp_path / "index", paired(open_given(np.zeros((1, 12), "f4"), ids=["nothing"])))


def test_faiss_takes_maps_of_both_kinds_but_no_hidden_layer(world, recipe, tmp_path):
    index = run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe, cosine=True).index
    export_faiss(index, tmp_path / "index.faiss")  # compares the answers
    assert len(import_faiss(tmp_path / "index.faiss", tmp_path / "back")) == 600
    deep = run(opened(world, "queries"), tmp_path / "deep", bytes=6, recipe=recipe, hidden=4).index
    assert isinstance(deep.scoring.map, VectorMap) and deep.scoring.map.inner is not None
    with pytest.raises(RepconcError, match="hidden layer"):
        export_faiss(deep, tmp_path / "deep.faiss")


@pytest.mark.parametrize(("codes", "bytes"), [("product", 1), ("additive", 2)])
def test_vectors_of_few_dimensions_get_a_byte_by_themselves(world, recipe, codes, bytes, tmp_path):
    given = open_given(world.documents[:, :2], queries=world.queries[:, :2])
    assert run(given, tmp_path / "index", recipe=recipe, codes=codes).learned.coding.blocks == bytes


@pytest.mark.parametrize("codes", ["product", "additive"])
def test_the_smallest_size_that_keeps_enough_is_found(world, recipe, codes, tmp_path):
    said = []
    result = run(opened(world, "queries"), tmp_path / "index", keep=0.7, recipe=recipe, codes=codes, say=said.append)
    kept = {int(line.split()[0]): float(line.split()[3].rstrip("%")) for line in said if "keep" in line}
    chosen = result.learned.coding.blocks
    assert kept[chosen] >= 70
    assert all(share < 70 for size, share in kept.items() if size < chosen)
    with pytest.raises(RepconcError, match="No size up to 12 bytes"):
        run(opened(world, "queries"), tmp_path / "other", keep=1.0, recipe=recipe)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bytes": 13}, "1 to 12 bytes"),
        ({"bytes": 4, "ratio": 8}, "only one"),
        ({"ratio": 1}, "4 to 48 times"),
        ({"keep": 1.5}, "at most 1"),
        ({"mode": "labels"}, "queries is possible"),
        ({"lists": 601}, "cannot fill 601 lists"),
        ({"seed": 2**31}, "seed is not allowed"),
        ({"seed": -1}, "seed is not allowed"),
        ({"bytes": 6.5}, "a whole number"),
        ({"mode": "all"}, "is one of documents"),
        ({"recipe": make_recipe({"method": "dense"})}, "makes no codes"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(world, recipe, options, sentence, tmp_path):
    with pytest.raises(RepconcError, match=sentence):
        run(opened(world, "queries"), tmp_path / "index", **{"recipe": recipe} | options)
    assert not list(tmp_path.iterdir())


def test_fewer_documents_than_codewords_are_refused(world, tmp_path):
    with pytest.raises(RepconcError, match="200 documents for 256 codewords"):
        run(open_given(world.documents[:200]), tmp_path / "index", bytes=4)
    assert not list(tmp_path.iterdir())


def test_fewer_documents_go_with_fewer_codewords_also_in_the_report(world, recipe, tmp_path):
    result = run(open_given(world.documents[:100]), tmp_path / "index", bytes=4, recipe=recipe)
    assert make_report(result).documents == 100


def test_a_phase_that_gets_no_better_ends_early(world, recipe, tmp_path):
    stage = recipe.stage_two.model_copy(update={"encoder_rate": 10.0, "evaluations": 20, "patience": 2, "epochs": 5})
    impatient, lines = recipe.model_copy(update={"stage_two": stage}), []
    run(opened(world, "queries"), tmp_path / "i", bytes=6, recipe=impatient, observe=lines.append)
    measured = [line for line in lines if line["phase"] == "stage-2" and "R@10" in line]
    assert len(measured) < 20
    assert measured[-1]["step"] < measured[-1]["steps"]


def test_a_temporary_index_goes_with_its_object(world, recipe, monkeypatch):
    from repconc.compression import compress as module

    monkeypatch.setattr(module, "read_recipe", lambda name: recipe.model_dump())
    index = repconc.compress(world.documents, world.queries, bytes=6, progress=False)
    folder = index.folder
    assert index.search(world.queries[:1], 3)[0] and folder.exists()
    del index
    assert not folder.parent.exists()

"""Which structure of codes a training gets: what the recipe says, or what the size of the corpus suggests."""

import shutil

import numpy as np
import pytest

from repconc import load_dataset, make_recipe, train
from repconc.additive import AdditiveCodec
from repconc.training import recipe as recipes
from repconc.training.pipeline import read_plan, training_folder
from repconc.training.recipe import choose_codes, read_recipe, with_codes
from tests.training.test_pipeline import FAST, recipe


def test_a_large_corpus_has_additive_codes_unless_the_recipe_says_which(
    tiny_static, labelled, tmp_path, low_bounds, monkeypatch
):
    said, dataset = [], load_dataset(labelled)

    def killed(line):
        if line["phase"] == "stage-1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(dataset, tmp_path / "model", recipe(tiny_static), observe=killed, say=said.append)
    assert len(said) == 1 and said[0].startswith("240 documents are enough for additive codes")
    shutil.copytree(training_folder(tmp_path / "model"), training_folder(tmp_path / "resumed"))
    model = train(dataset, tmp_path / "model", recipe(tiny_static))
    assert isinstance(model.scoring, AdditiveCodec)
    assert model.manifest.structure == model.manifest.recipe["quantizer"]["codes"] == "additive"
    monkeypatch.setattr(recipes, "DOCUMENTS_A_DIMENSION", 16)
    resumed = train(dataset, tmp_path / "resumed", read_plan(tmp_path / "resumed").recipe, say=said.append)
    assert np.array_equal(resumed.scoring.codebooks, model.scoring.codebooks), "nothing is chosen anew"
    monkeypatch.setattr(recipes, "DOCUMENTS_A_DIMENSION", 15)
    values = {"quantizer": FAST["quantizer"] | {"codes": "product"}}
    other = train(dataset, tmp_path / "other", recipe(tiny_static, **values), say=said.append)
    assert not isinstance(other.scoring, AdditiveCodec)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("method", "bytes", "documents", "unit", "codes"),
    [
        ("repconc", 16, 524_288, True, "additive"),
        ("repconc", 16, 524_287, True, "product"),
        ("repconc", 17, 10**9, True, "product"),
        ("repconc", 4, 10**9, True, "additive"),
        ("repconc", 3, 10**9, True, "product"),
        ("repconc", 16, 10**9, False, "product"),
        ("jpq", 16, 10**9, True, "product"),
    ],
)
def test_the_default_structure_of_codes(method, bytes, documents, unit, codes):
    asked = make_recipe({"method": method, "quantizer": {"bytes": bytes}})
    assert choose_codes(asked, documents, 256, unit) == codes
    for said in ("product", "additive"):
        assert choose_codes(with_codes(asked, said), documents, 256, unit) == said
    few = make_recipe({"method": method, "quantizer": {"bytes": bytes, "codewords": 16}})
    assert choose_codes(few, documents, 256, unit) == "product"


def test_the_recipes_of_the_paper_have_its_codes():
    for name in ("msmarco-passage", "msmarco-document"):
        assert make_recipe(read_recipe(name)).quantizer.codes == "product"

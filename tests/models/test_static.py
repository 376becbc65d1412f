"""The distilled static encoder."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from repconc import load_dataset
from repconc.models.encoder import Encoder
from repconc.models.named import folder_of_named
from repconc.models.static import distil, principal_components, rarity


def test_components_are_those_of_an_independent_pca_at_unit_variance():
    from sklearn.decomposition import PCA

    vectors = np.random.default_rng(0).normal(size=(200, 12)) * np.arange(1, 13)
    ours = principal_components(vectors, 5)
    theirs = PCA(5, whiten=True, svd_solver="full").fit_transform(vectors)
    np.testing.assert_allclose(np.abs(np.corrcoef(ours.T, theirs.T)[:5, 5:].diagonal()), 1, atol=1e-9)
    np.testing.assert_allclose(ours.std(axis=0), 1)


def test_rare_words_weigh_more_and_marks_as_little_as_the_commonest_word():
    weights = rarity(["[PAD]", ",", "b", "the", "of", "and", "castle"])
    assert (np.diff(weights[3:]) > 0).all()
    assert (weights[:3] == weights[3]).all()


def test_a_text_is_the_unit_mean_of_its_tokens_and_special_tokens_are_zero(tiny_bert, tmp_path):
    model = distil(str(tiny_bert), 8)
    table = model[0].embedding.weight.detach().numpy()
    tokenizer = model[0].tokenizer
    assert (table[tokenizer.token_to_id("[PAD]")] == 0).all()
    mean = table[[tokenizer.token_to_id(word) for word in ("king", "castle")]].mean(axis=0)
    model.save(str(tmp_path), create_model_card=False)
    vector = Encoder(str(tmp_path)).embed_queries(["king castle"])[0]
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


def test_distilling_twice_gives_the_same_encoder(tiny_bert):
    first, second = (distil(str(tiny_bert), 8)[0].embedding.weight.detach().numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_progress_ends_at_the_whole_vocabulary(tiny_bert):
    seen = []
    distil(str(tiny_bert), 8, lambda done, total: seen.append((done, total)))
    size = len(SentenceTransformer(str(tiny_bert)).tokenizer)
    assert seen[-1] == (size, size)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_named_static_encoder_finds_paragraphs(tmp_path):
    """The real one, distilled from MiniLM-L6, on SQuAD: far above chance, below its teacher."""
    from repconc.data import catalogue
    from repconc.evaluation.measures import answer, evaluate
    from repconc.indexes.flat import FlatIndex
    from repconc.search import Searcher

    dataset = load_dataset(catalogue.get("squad", tmp_path / "squad"))
    encoder = Encoder("static")
    assert (folder_of_named("static") / "modules.json").exists()
    documents = list(dataset.documents)
    vectors = encoder.embed_documents([document.full_text for document in documents])
    searcher = Searcher(FlatIndex([document.id for document in documents], [vectors]), encoder)
    means = evaluate(answer(searcher.search, dataset.queries("dev")), dataset.qrels("dev")).means
    assert 0.4 < means["MRR@10"] < 0.75

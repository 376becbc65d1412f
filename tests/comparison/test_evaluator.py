"""Our exhaustive search and measures against sentence-transformers' own evaluator and trec_eval, on the same set."""

import pytest
import pytrec_eval
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

from repconc import Encoder, Searcher, encode_corpus, evaluate, load_dataset, read_run, write_run
from repconc.data import catalogue
from repconc.evaluation.measures import answer
from repconc.models.named import folder_of_named


def compare(model: str, dataset, split: str, folder) -> None:
    encode_corpus(Encoder(model), dataset, folder / "vectors")
    queries, qrels = dataset.queries(split), dataset.qrels(split)
    run = answer(Searcher.open(folder / "vectors").search, queries, 100)
    means = evaluate(run, qrels).means

    evaluator = InformationRetrievalEvaluator(
        dict(queries),
        {document.id: document.full_text for document in dataset.documents},
        {query: set(judged) for query, judged in qrels.items()},
        mrr_at_k=[10],
        ndcg_at_k=[10],
    )
    theirs = evaluator(SentenceTransformer(model))
    assert means["MRR@10"] == pytest.approx(theirs["cosine_mrr@10"], abs=5e-5)
    assert means["nDCG@10"] == pytest.approx(theirs["cosine_ndcg@10"], abs=5e-5)

    write_run(folder / "run", run)
    scores = {query: {hit.id: hit.score for hit in hits} for query, hits in read_run(folder / "run").items()}
    judged = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "recall_100"}).evaluate(scores)
    for measure, name in (("nDCG@10", "ndcg_cut_10"), ("R@100", "recall_100")):
        assert means[measure] == pytest.approx(sum(values[name] for values in judged.values()) / len(qrels), abs=5e-5)
    top_ten = {
        q: dict(sorted(s.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:10]) for q, s in scores.items()
    }
    reciprocal = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(top_ten)
    mean = sum(values["recip_rank"] for values in reciprocal.values()) / len(qrels)
    assert means["MRR@10"] == pytest.approx(mean, abs=5e-5)
    print(f"{dataset.name}/{split}: MRR@10 {means['MRR@10']:.4f}, nDCG@10 {means['nDCG@10']:.4f}")


def test_a_tiny_encoder_on_a_tiny_set(tiny_bert, beir, tmp_path):
    compare(str(tiny_bert), load_dataset(beir()), "test", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_minilm_on_squad(tmp_path):
    """The real encoder on a real set: 1,204 paragraphs, 1,000 questions."""
    compare(str(folder_of_named("minilm")), load_dataset(catalogue.get("squad", tmp_path / "squad")), "test", tmp_path)

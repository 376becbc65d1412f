"""Searching over HTTP gives what searching in Python gives."""

import concurrent.futures
import re

import numpy as np
import pytest

from repconc.indexes.ivf import Index
from repconc.search import Searcher
from repconc.serving import schemas
from tests.serving.conftest import vector_of


@pytest.fixture(scope="module")
def searcher(text_folder):
    return Searcher.open(text_folder / "texts")


def hits_of(reply) -> list[list[tuple[str, float]]]:
    assert reply.status == 200, reply.body
    answer = schemas.SearchResponse.model_validate_json(reply.body)
    return [[(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in result.hits] for result in answer.results]


def expected(hits) -> list[list[tuple[str, float]]]:
    return [[(hit.id, hit.score) for hit in found] for found in hits]


def test_one_question(text_server, searcher):
    reply = text_server.ask("/v1/search", {"query": "river of gold", "k": 5})
    assert hits_of(reply) == expected(searcher.search(["river of gold"], 5))
    assert set(reply.json["milliseconds"]) == {"queue", "encode", "probe", "scan", "total"}
    assert reply.json["index"] == "texts" and reply.json["version"] == 1


def test_a_batch_and_a_filter(text_server, searcher):
    questions = ["river of gold", "the king", "black bird", "old castle"]
    wanted = {"k": 7, "filter": 'year >= 2010 and lang in ("en", "fr")', "probes": 3}
    reply = text_server.ask("/v1/search", {"queries": questions, **wanted})
    assert hits_of(reply) == expected(searcher.search(questions, **wanted))


def test_by_address(text_server, searcher):
    reply = text_server.ask("/v1/search?q=river%20of%20gold&k=3&text=true&filter=lang%20%3D%20%22de%22")
    assert hits_of(reply) == expected(searcher.search(["river of gold"], 3, filter='lang = "de"'))
    (found,) = reply.json["results"]
    assert all(hit["metadata"]["lang"] == "de" and hit["title"] and hit["text"] for hit in found["hits"])
    assert "documents" in reply.json["milliseconds"]


def test_the_first_bytes_of_codes(text_server, searcher):
    wanted = {"k": 40, "first": 1}
    reply = text_server.ask("/v1/search", {"query": "river of gold", **wanted})
    assert hits_of(reply) == expected(searcher.search(["river of gold"], **wanted))
    assert hits_of(text_server.ask("/v1/search?q=river%20of%20gold&k=40&first=1")) == hits_of(reply)
    for first, code in ((99, "invalid_first"), (0, "invalid_request")):
        refused = text_server.ask("/v1/search", {"query": "river of gold", "first": first})
        assert (refused.status, refused.json["error"]["code"]) == (422, code)


def test_by_vectors(vector_server):
    index = Index(vector_server.log.parent / "index")
    vectors = np.array([vector_of(number) for number in range(5)], np.float32)
    reply = vector_server.ask("/v1/search", {"vectors": vectors.tolist(), "k": 4})
    assert hits_of(reply) == expected(index.search(vectors, 4))
    assert hits_of(vector_server.ask("/v1/search", {"vector": vectors[2].tolist()})) == expected(
        index.search(vectors[2])
    )


def test_the_uncompressed_ranking(text_server, text_folder):
    exact = Searcher.open(text_folder / "vectors")
    reply = text_server.ask("/v1/search", {"query": "river of gold", "k": 6, "exact": True, "text": True})
    assert hits_of(reply) == expected(exact.search(["river of gold"], 6))
    everything = exact.search(["river of gold"], 120)[0]
    english = [hit.id for hit in everything if int(hit.id[1:]) % 3 == 0]
    reply = text_server.ask("/v1/search", {"query": "river of gold", "k": 6, "exact": True, "filter": 'lang = "en"'})
    assert [hit["id"] for hit in reply.json["results"][0]["hits"]] == english[:6]


def test_several_indexes(text_server):
    assert text_server.ask("/v1/indexes").json == {"indexes": ["texts", "numbers"]}
    assert text_server.ask("/v1/search?index=numbers", {"vector": vector_of(1)}).json["index"] == "numbers"
    assert text_server.ask("/v1/index?index=numbers").json["dimension"] == 15
    assert text_server.ask("/v1/index?index=other").code == "unknown_index"
    assert text_server.ask("/v1/search?index=other", {"query": "x"}).status == 404


def test_what_is_in_an_index(text_server, text_folder):
    described = schemas.IndexResponse.model_validate_json(text_server.ask("/v1/index").body)
    index = Index(text_folder / "texts")
    assert described.documents == 120 and described.search_bytes == index.nbytes and described.bytes == index.sizes()
    assert described.fields == ["lang", "year"] and described.reads_text and described.exact
    assert described.model and "/" not in described.model, "no path of the machine"


def test_many_at_once_each_get_their_own(text_server, searcher):
    """Micro-batches mix requests that want different things."""
    asked = [(f"{word} {n}", 1 + n % 5) for n, word in enumerate(["river", "king", "bird", "stone"] * 20)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda one: text_server.ask("/v1/search", {"query": one[0], "k": one[1]}), asked))
    for (question, k), reply in zip(asked, replies, strict=True):
        assert hits_of(reply) == expected(searcher.search([question], k))


@pytest.mark.parametrize(
    ("content", "code", "sentence"),
    [
        ({}, "invalid_request", "give one of query"),
        ({"query": "x", "vector": [1.0]}, "invalid_request", "give one of query"),
        ({"query": " "}, "invalid_request", "query"),
        ({"query": "x" * 10_001}, "invalid_request", "at most 10000"),
        ({"query": "x", "k": 0}, "invalid_request", "k: .*greater than or equal to 1"),
        ({"query": "x", "k": 1001}, "invalid_request", "less than or equal to 1000"),
        ({"queries": ["x"] * 257}, "invalid_request", "256"),
        ({"queries": ["x"] * 20, "k": 1000}, "invalid_request", "10,000"),
        ({"query": "x", "kk": 3}, "invalid_request", "kk"),
        ({"query": "x", "filter": "year >"}, "invalid_filter", "cannot be read"),
        ({"query": "x", "filter": "colour = 3"}, "invalid_filter", "No document has the field 'colour'"),
        ({"vector": [1.0, 2.0]}, "invalid_vector", "2 dimensions"),
        ({"vectors": [[1.0], [1.0, 2.0]]}, "invalid_request", "different lengths"),
        ({"vector": [1e300] * 16}, "invalid_request", "less than or equal"),
        (b'{"vector": [NaN]}', "invalid_request", "finite"),
        (b'{"query": "\\ud800"}', "invalid_request", "Invalid JSON"),
        (b"{", "invalid_request", "JSON"),
        (b"\xff\xfe", "invalid_request", ""),
        (b"[" * 100_000, "invalid_request", ""),
        (b"", "invalid_request", ""),
    ],
)
def test_what_is_refused(text_server, content, code, sentence):
    reply = text_server.ask("/v1/search", content)
    assert reply.status == 422 and reply.code == code, reply.body
    assert re.search(sentence, reply.json["error"]["message"])
    assert "Traceback" not in reply.body.decode()


def test_an_index_of_vectors_refuses_texts(vector_server):
    assert vector_server.ask("/v1/search", {"query": "river"}).code == "needs_vectors"
    assert vector_server.ask("/v1/search", {"vector": vector_of(1), "exact": True}).code == "no_vectors"
    assert vector_server.ask("/v1/embeddings", {"input": "river"}).code == "needs_vectors"


def test_embeddings(text_server, searcher):
    import base64

    texts = ["river of gold", "the king"]
    expected_vectors = searcher.encoder.embed_queries(texts)
    answer = text_server.ask("/v1/embeddings", {"input": texts, "model": "texts", "user": "someone"}).json
    assert np.allclose([row["embedding"] for row in answer["data"]], expected_vectors, atol=1e-6)
    assert answer["object"] == "list" and answer["usage"]["total_tokens"] >= 5
    coded = text_server.ask("/v1/embeddings", {"input": texts[0], "encoding_format": "base64"}).json["data"][0]
    assert np.array_equal(np.frombuffer(base64.b64decode(coded["embedding"]), "<f4"), expected_vectors[0])
    documents = text_server.ask("/v1/embeddings", {"input": texts, "input_type": "document", "dimensions": 16}).json
    assert np.allclose(
        [row["embedding"] for row in documents["data"]], searcher.encoder.embed_documents(texts), atol=1e-6
    )
    assert text_server.ask("/v1/embeddings", {"input": texts, "dimensions": 8}).status == 422
    assert text_server.ask("/v1/embeddings", {"input": texts, "model": "gpt"}).code == "unknown_index"

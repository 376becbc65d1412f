"""Thousands of requests that are wrong in every way: no 5xx, no crash, no hang, and answers as they are described."""

import http.client
import json
from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.indexes.filters import parse_filter
from tests.serving.conftest import text_documents, text_index, text_vectors, vector_index, vector_of
from tests.serving.running import TOKEN, Running, running
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)

PATHS = ["/v1/search", "/v1/documents", "/v1/documents/d1", "/v1/embeddings", "/v1/index", "/v1/indexes", "/ready", "/"]
KEYS = [
    "query",
    "queries",
    "vector",
    "vectors",
    "k",
    "probes",
    "first",
    "filter",
    "text",
    "exact",
    "documents",
    "id",
    "input",
]
SECONDS = 20

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner),
    max_leaves=12,
)
filters = st.lists(
    st.sampled_from(
        ["year", "lang", ">=", "=", "in", "(", ")", ",", "and", "or", "not", '"en"', "3", "1e9", "'", "\\", "\x00"]
    )
    | st.text(max_size=6),
    max_size=14,
).map(" ".join)
wishes = {
    "k": st.integers(-2, 1200),
    "filter": filters,
    "probes": st.integers(-1, 99),
    "first": st.integers(-1, 99),
    "text": st.booleans(),
    "exact": st.booleans(),
}
words = st.text(max_size=40) | st.sampled_from(["river of gold", "\x00", "\u202e", "a" * 9_999, "🜁" * 500, " "])
searches = st.one_of(
    st.fixed_dictionaries({"vector": st.just(vector_of(1))}, optional=wishes),
    st.fixed_dictionaries({"query": words}, optional=wishes),
    st.fixed_dictionaries({"queries": st.lists(words, max_size=4)}, optional=wishes),
    st.fixed_dictionaries({"input": words | st.lists(words, max_size=4)}),
    st.fixed_dictionaries({"documents": st.lists(st.fixed_dictionaries({"id": words, "text": words}), max_size=3)}),
)
bodies = st.one_of(
    st.binary(max_size=200),
    anything.map(lambda value: json.dumps(value).encode()),
    searches.map(lambda value: json.dumps(value).encode()),
    searches.flatmap(lambda value: st.integers(0, 300).map(lambda cut: json.dumps(value).encode()[:cut])),
)
names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
requests = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "FROB"]),
        "path": st.sampled_from(PATHS) | names.map("/v1/documents/{}".format) | names.map("/{}".format),
        "query": st.just("")
        | filters.map(lambda text: f"?{urlencode({'q': text, 'filter': text}, errors='replace')}")
        | names.map(lambda name: f"?{name}"),
        "body": bodies,
        "type": st.sampled_from(
            ["application/json", "text/plain", "multipart/form-data", "", "application/json; charset=x"]
        ),
        "token": st.sampled_from([TOKEN, "wrong", ""]),
    }
)


class Sender:
    """Sends requests over one connection, which is opened again only where the server said that it closes it."""

    def __init__(self, server: Running) -> None:
        host, port = server.address.removeprefix("http://").split(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS)
        self.sent = 0

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> int:
        self.sent += 1
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        content = response.read()
        assert response.status < 500, (method, path, body, content)
        assert b"Traceback" not in content and response.getheader("x-content-type-options") == "nosniff"
        if response.status >= 400 and method != "HEAD":
            assert response.getheader("content-type") == "application/json", (method, path, body, content)
            assert json.loads(content)["error"]["message"]
        return response.status


def drive(server: Running, count: int) -> Sender:
    sender = Sender(server)

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(requests)
    def ask(request: dict) -> None:
        headers = {"Content-Type": request["type"], "Authorization": f"Bearer {request['token']}"}
        path = (request["path"] + request["query"]).replace(" ", "%20")
        sender.send(request["method"], path, request["body"], headers)

    ask()
    return sender


def describe(server: Running, count: int) -> int:
    """Requests from the server's own description, right ones and wrong ones; gives how many were sent."""
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    schema = schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    checks = [content_type_conformance, response_schema_conformance]
    sent = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if not (operation.body or operation.query or operation.path_parameters):
                continue

            @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case) -> None:
                nonlocal sent
                sent += 1
                response = case.call(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=SECONDS)
                assert response.status_code < 500, (case, response.content)
                if response.status_code in (200, 404, 422):
                    case.validate_response(response, checks=checks)

            ask()
    return sent


def alive(server: Running, question: dict | None = None) -> bool:
    asked = question or {"vector": vector_of(1)}
    return server.process.poll() is None and server.ask("/v1/search", asked).status == 200


def test_malformed_requests(vector_server):
    drive(vector_server, 300)
    assert alive(vector_server)


def test_the_description_is_kept(vector_server):
    assert describe(vector_server, 8) > 80
    assert alive(vector_server)


@pytest.fixture(scope="module")
def text_target(tmp_path_factory, tiny_static):  # noqa: F811
    """An index of texts that may be written to, with its vectors."""
    folder = tmp_path_factory.mktemp("fuzzed-texts")
    text_index(folder / "texts", tiny_static, text_documents())
    vectors = text_vectors(folder, tiny_static, text_documents())
    with running(folder / "texts", "--vectors", vectors, folder=folder) as server:
        yield server


def test_malformed_requests_to_an_index_of_texts(text_target):
    drive(text_target, 300)
    assert describe(text_target, 8) > 80
    assert alive(text_target, {"query": "river"})
    assert "Traceback" not in text_target.log.read_text()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_malformed_requests_to_an_index_of_texts(text_target):
    assert describe(text_target, 100) + drive(text_target, 2000).sent > 3000
    assert alive(text_target, {"query": "river"})
    assert "failed" not in text_target.log.read_text()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_malformed_requests(tmp_path):
    with running(vector_index(tmp_path / "index"), folder=tmp_path) as server:
        described = describe(server, 400)
        sender = drive(server, max(5000, 10_500 - described))
        assert described + sender.sent >= 10_000
        assert alive(server)
        assert "failed" not in server.log.read_text()


@given(filters | st.text(max_size=60))
def test_a_filter_is_read_or_refused_with_a_sentence(text):
    with suppress(RepconcError):  # and nothing else
        parse_filter(text)

"""HTTP below the application: requests in a row, what is no HTTP, and heads that are wrong."""

import json
import socket
import threading

import pytest

from repconc.serving import logs
from tests.serving.conftest import vector_of
from tests.serving.running import Running


def talk(server: Running, *parts: bytes) -> bytes:
    """Send parts, one after the other, and read until the server ends it."""
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        sender = threading.Thread(target=lambda: [connection.sendall(part) for part in parts])
        sender.start()  # the answers of many requests fill the buffers of both sides unless they are read
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
        sender.join()
    return received


def answers_of(received: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of each answer."""
    answers = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers["content-length"])
        answers.append((int(first.split()[1]), headers, received[:length]))
        received = received[length:]
    return answers


def search(k: int, more: str = "") -> bytes:
    body = json.dumps({"vector": vector_of(k), "k": k}).encode()
    head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("cut", [None, 7, 1000, 70_001])
def test_requests_in_a_row_are_answered_in_their_order(vector_server, cut):
    """Six hundred of them in one piece, or in pieces that end anywhere."""
    wanted = [1 + number % 9 for number in range(600)]
    whole = b"".join(map(search, wanted)) + LAST
    parts = [whole] if cut is None else [whole[at : at + cut] for at in range(0, len(whole), cut)]
    *answers, last = answers_of(talk(vector_server, *parts))
    assert [len(json.loads(body)["results"][0]["hits"]) for _, _, body in answers] == wanted
    assert json.loads(last[2]) == {"status": "ok"}


@pytest.mark.parametrize(
    "nonsense",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
    ],
)
def test_what_is_no_http_is_told_so_in_the_one_shape(vector_server, nonsense):
    ((status, headers, body),) = answers_of(talk(vector_server, nonsense))
    assert status == 400 and json.loads(body)["error"]["code"] == "malformed"
    assert headers["content-type"] == "application/json" and headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    first, second, last = answers_of(talk(vector_server, search(3) + search(4) + nonsense))
    assert first[0] == second[0] == 200 and last[0] == 400, "after what was asked before it"


def test_it_does_not_fill_the_log(vector_server):
    before = len(vector_server.log.read_text())
    for _ in range(50):
        talk(vector_server, b"forged\r\n\r\n")
        talk(vector_server, LAST.replace(b"close", b"Upgrade\r\nUpgrade: websocket"))
    added = vector_server.log.read_text()[before:]
    assert len(added.splitlines()) <= 1 and "forged" not in added


def test_a_line_that_strangers_cause_comes_once_a_minute(caplog, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    seldom = logs.Seldom("it happened")
    for _ in range(5):
        seldom.tell()
    now[0] += 61
    seldom.tell()
    assert [record.getMessage() for record in caplog.records] == ["it happened (1 times)", "it happened (5 times)"]


def test_an_endless_head_is_refused_with_a_sentence(vector_server):
    endless = [b"GET /health HTTP/1.1\r\nHost: x\r\n", *([b"X: " + b"y" * 1000 + b"\r\n"] * 90)]
    ((status, headers, body),) = answers_of(talk_slowly(vector_server, endless))
    assert status == 431 and json.loads(body)["error"]["code"] == "head_too_large" and headers["connection"] == "close"


def talk_slowly(server: Running, parts: list[bytes]) -> bytes:
    """Stop as soon as the server answers: who goes on sending may lose the answer."""
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.settimeout(0.01)
        for part in parts:
            connection.sendall(part)
            try:
                received = connection.recv(1 << 16)
                break
            except TimeoutError:
                continue
        else:
            raise AssertionError("it was never refused")
        connection.settimeout(20)
        while chunk := connection.recv(1 << 16):
            received += chunk
    return received


def test_two_hosts_are_refused(vector_server):
    for path in ("/v1/index", "/health"):
        asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
        ((status, _, body),) = answers_of(talk(vector_server, asked))
        assert status == 400 and json.loads(body)["error"]["code"] == "two_hosts"


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/site/search.js", "/health", "/metrics", "/v1/index", "/v1/documents/d2"]
)
def test_head_gives_what_get_would_without_a_body(vector_server, path):
    plain, head = vector_server.ask(path), vector_server.ask(path, method="HEAD")
    assert head.status == plain.status == 200 and head.body == b""
    assert head.headers["content-type"] == plain.headers["content-type"]
    assert path == "/metrics" or head.headers["content-length"] == plain.headers["content-length"]

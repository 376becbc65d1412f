"""Who may do what, under which name, and how much; and what every answer carries."""

import base64
import json
import re
import socket
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.serving.logs import tell_failure
from repconc.serving.settings import Access, access_of, read_token
from tests.serving.conftest import vector_index, vector_of
from tests.serving.running import TOKEN, running

WRITE = {"documents": [{"id": "gate", "text": "x", "vector": vector_of(1)}]}


@pytest.mark.parametrize("path", ["/", "/docs", "/site/search.js", "/v1/index", "/nothing", "/health", "/metrics"])
def test_every_answer_carries_our_headers(vector_server, path):
    headers = vector_server.ask(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "server" not in headers and not [name for name in headers if name.startswith("access-control")]


def test_writing_needs_the_token(vector_server):
    for token in (None, "wrong", TOKEN[:-1], TOKEN + "x"):
        reply = vector_server.ask("/v1/documents", WRITE, token=token)
        assert reply.status == 401 and reply.code == "unauthorized" and reply.headers["www-authenticate"] == "Bearer"
        assert vector_server.ask("/v1/documents/d1", method="DELETE", token=token).status == 401
    assert vector_server.ask("/v1/documents/d1").status == 200
    assert vector_server.ask("/v1/documents", WRITE, token=TOKEN).status == 200


def test_without_a_token_nobody_writes(tmp_path):
    with running(vector_index(tmp_path / "index"), folder=tmp_path, token=None) as server:
        reply = server.ask("/v1/documents", WRITE, token="")
        assert reply.status == 403 and reply.code == "read_only"
        assert server.ask("/v1/search", {"vector": vector_of(1)}).status == 200


def test_protected_every_route_but_health_needs_it(tmp_path):
    with running(vector_index(tmp_path / "index"), "--protect-reads", folder=tmp_path) as server:
        assert server.ask("/health").status == 200
        for path in ("/", "/docs", "/openapi.json", "/v1/index", "/v1/search?q=x", "/metrics", "/ready", "/nothing"):
            assert server.ask(path).status == 401, path
            assert server.ask(path, token=TOKEN).status in (200, 404, 422), path
        assert server.ask("/").headers["www-authenticate"].startswith("Basic"), "so that a browser asks for it"
        password = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
        assert server.ask("/", Authorization=f"Basic {password}").status == 200
        for header in (
            "Basic !!",
            "Basic",
            "Bearer",
            "bearer  ",
            "x" * 5000,
            "Basic " + base64.b64encode(b"x").decode(),
        ):
            assert server.ask("/", Authorization=header).status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]", "localhost.x"]
)
def test_other_names_are_not_answered(vector_server, host):
    reply = vector_server.ask("/v1/index", Host=host)
    assert reply.status == 421 and reply.code == "unknown_host"
    assert vector_server.ask("/health", Host=host or "x").status == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8080"])
def test_its_own_names_are(vector_server, host):
    assert vector_server.ask("/v1/index", Host=host).status == 200


def test_a_request_that_is_too_large_is_cut_off(tmp_path):
    with running(vector_index(tmp_path / "index"), "--body", 2048, folder=tmp_path) as server:
        assert server.ask("/v1/search", b"x" * 2048).status == 422
        reply = server.ask("/v1/search", b"x" * 5000)
        assert reply.status == 413 and reply.code == "too_large"
        host, port = server.address.removeprefix("http://").split(":")
        head = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        with socket.create_connection((host, int(port)), 20) as connection:  # nobody says how long it will be
            connection.sendall(head + b"3e8\r\n" + b"y" * 1000 + b"\r\n")
            time.sleep(0.1)
            connection.sendall(b"7d0\r\n" + b"y" * 2000 + b"\r\n")
            received = b""
            while more := connection.recv(4096):
                received += more
        assert received.startswith(b"HTTP/1.1 413") and b'"too_large"' in received
        assert server.ask("/v1/search", {"vector": vector_of(1)}).status == 200


def test_a_slow_sender_is_not_waited_for_and_stops_nobody(tmp_path):
    with running(vector_index(tmp_path / "index"), "--timeout", 1, folder=tmp_path) as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 20) as slow:
            slow.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            began = time.monotonic()
            assert server.ask("/v1/search", {"vector": vector_of(1)}).status == 200
            assert time.monotonic() - began < 0.9
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_heads_are_bounded_too(tmp_path):
    with running(vector_index(tmp_path / "index"), "--timeout", 1, folder=tmp_path) as server:
        host, port = server.address.removeprefix("http://").split(":")
        begun = b"GET /health HTTP/1.1\r\nHost: x\r\n"
        whole = begun + b"\r\n"
        for content in (b"", begun, whole + begun):  # silent, slow, slow later; endless ones are in test_protocol
            with socket.create_connection((host, int(port)), 20) as one:
                one.sendall(content)
                received, start = b"", time.monotonic()
                while more := one.recv(1000):
                    received += more
                assert received.count(b"200 OK") == content.count(whole) and time.monotonic() - start < 5
        assert server.ask("/health").status == 200


def test_past_the_queue_it_says_when_to_come_again(tmp_path):
    with running(vector_index(tmp_path / "index"), "--queue", 2, "--timeout", 5, folder=tmp_path) as server:
        host, port = server.address.removeprefix("http://").split(":")
        waiting = [socket.create_connection((host, int(port)), 20) for _ in range(2)]
        for one in waiting:  # their bodies never come
            one.sendall(b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        time.sleep(0.3)
        reply = server.ask("/v1/search", {"vector": vector_of(1)})
        assert reply.status == 429 and reply.code == "too_many_requests" and int(reply.headers["retry-after"]) >= 1
        assert server.ask("/health").status == server.ask("/ready").status == server.ask("/metrics").status == 200
        for one in waiting:
            one.close()
        time.sleep(0.3)
        assert server.ask("/v1/search", {"vector": vector_of(1)}).status == 200


def test_metrics(vector_server):
    vector_server.ask("/v1/search", {"vector": vector_of(1)})
    vector_server.ask("/nothing/that/exists")
    page = vector_server.ask("/metrics").body.decode()
    for series in (
        'repconc_requests_total{route="/v1/search",status="200"}',
        'repconc_requests_total{route="other",status="404"}',
        'repconc_step_seconds_bucket{le="0.001",step="scan"}',
        'repconc_queue_queries{index="index"} 0',
        'repconc_index_documents{index="index"}',
        'repconc_index_bytes{index="index"}',
    ):
        assert series in page, series
    assert "that/exists" not in page, "nothing of a request becomes the name of a series"


def test_unknown_routes_and_methods(vector_server):
    for path, method, status in (
        ("/v1/nothing", "GET", 404),
        ("/v1/search", "PUT", 405),
        ("/site/../app.py", "GET", 404),
    ):
        reply = vector_server.ask(path, method=method)
        assert reply.status == status and reply.json["error"]["message"].endswith(".")


def test_the_log_holds_nothing_of_a_request(vector_server):
    vector_server.ask("/v1/search?q=secret-of-a-user%0aFORGED", Host="forged.example")
    vector_server.ask("/v1/search", {"vector": vector_of(1), "filter": "secret-of-a-user = 1"})
    assert "secret-of-a-user" not in vector_server.log.read_text()
    assert "forged" not in vector_server.log.read_text().lower()


def test_a_failure_is_one_line_without_the_words_of_others(caplog):
    for error in (ValueError("quoted\nquestion"), RepconcError("a file\nis damaged"), OSError(5, "bad\x1bdisk")):
        try:
            raise error
        except Exception as caught:
            tell_failure("a request failed", caught)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3 and not any("\n" in line or "\x1b" in line or "question" in line for line in lines)
    assert "ValueError" in lines[0] and "'a file'" in lines[1] and "test_gate.py" in lines[2]


def test_what_an_address_calls_for():
    assert access_of("127.0.0.1", None, []).open_to_read and access_of("::1", None, []).open_to_read
    assert access_of("localhost", TOKEN, ["proxy.example"]).hosts == Access().hosts | {"proxy.example"}
    assert not access_of("127.0.0.1", TOKEN, [], protected=True).open_to_read
    assert not access_of("10.0.0.5", TOKEN, []).open_to_read
    assert access_of("10.0.0.5", TOKEN, ["Search.Example"]).hosts == {"10.0.0.5", "search.example"}
    for host, token, sentence in (
        ("0.0.0.0", None, "can be reached from other machines, so that a token is needed"),
        ("10.0.0.5", None, "set REPCONC_TOKEN"),
        ("0.0.0.0", TOKEN, "--allow-host"),
        ("127.0.0.1", "short", "shorter than 16 characters"),
    ):
        with pytest.raises(RepconcError, match=sentence):
            access_of(host, token, [])


@given(st.text(max_size=30))
def test_no_name_but_loopback_opens_reading(host):
    try:
        access = access_of(host, TOKEN, ["x"])
    except RepconcError:
        return
    assert not access.open_to_read or host.lower() == "localhost" or host.startswith("127.") or host.endswith("1")


def test_tokens_come_from_files_or_the_environment(tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "empty").write_text("\n")
    assert read_token(tmp_path / "token", "other") == TOKEN
    assert read_token(None, "other") == "other" and read_token(None, "") is None
    with pytest.raises(RepconcError, match="holds no token"):
        read_token(tmp_path / "empty", None)
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 20)
    with pytest.raises(RepconcError, match="is no text in UTF-8"):
        read_token(tmp_path / "binary", None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--timeout", "inf"], "--timeout is inf; give a number of seconds"),
        (["--timeout", "nan"], "greater than or equal to 0.1"),
        (["--allow-host", "search.example:8080"], "without scheme and port"),
        (["--allow-host", "https://search.example"], "without scheme and port"),
        (["--token-file", "binary"], "is no text in UTF-8"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(tmp_path, arguments, sentence):
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 20)
    command = [sys.executable, "-m", "repconc.cli.main", "serve", "no-index", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    printed = " ".join(ended.stderr.replace("│", " ").split())
    assert ended.returncode in (1, 2) and re.search(sentence, printed) and "Traceback" not in printed


def test_names_of_hosts():
    names = ["Search.Example", "[::2]", "::0002", "10.1.2.3"]
    assert access_of("10.0.0.5", TOKEN, names).hosts == {"10.0.0.5", "search.example", "::2", "10.1.2.3"}


def test_a_request_that_is_cut_off_does_nothing(vector_server):
    host, port = vector_server.address.removeprefix("http://").split(":")
    body = json.dumps({"documents": [{"id": "half", "text": "", "vector": vector_of(1)}]}).encode()
    head = (
        f"POST /v1/documents HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body) + 500}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(10)
        while connection.recv(65536):
            pass
    assert vector_server.ask("/v1/documents/half").status == 404


def test_what_goes_wrong_inside_is_told_in_the_one_shape(tmp_path):
    folder = vector_index(tmp_path / "index")
    for path in folder.glob("*.codes"):
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    with running(folder, folder=tmp_path) as server:
        reply = server.ask("/v1/search", {"vector": vector_of(0)})
        assert (reply.status, reply.code) == (500, "internal_error")
        (line,) = [line for line in server.log.read_text().splitlines() if "a request failed" in line]
        assert "is damaged near byte 0" in line and "checked.py" in line, "who runs it sees what and where"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert server.ask("/health").status == 200


def test_a_million_wrong_values_are_refused_at_the_first(vector_server):
    wrong = {"vectors": [["a"] * 10_000] * 60}
    reply = vector_server.ask("/v1/search", wrong)
    assert reply.status == 422
    assert "vectors.0.0" in reply.json["error"]["message"]

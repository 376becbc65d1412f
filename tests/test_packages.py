"""Archives come from pip's index, are verified, and are never run. The index here is a real server on loopback."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from repconc.errors import RepconcError
from repconc.packages import Archive, fetch, list_members, read_members


def wheel_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("carrier/data/a.json", '["a"]')
        wheel.writestr("carrier/data/b.json", '["b"]')
        wheel.writestr("carrier/__init__.py", "raise SystemExit('this must never run')")
    return buffer.getvalue()


class Index:
    """A package index with one project, which can be made to misbehave."""

    def __init__(self) -> None:
        self.content = wheel_bytes()
        self.as_json = True
        self.cut = 0
        self.password: str | None = None
        self.page: bytes | None = None
        self.requests: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests.append(self.path)
                expected = index.password and "Basic " + base64.b64encode(index.password.encode()).decode()
                if expected and self.path.startswith("/simple") and self.headers.get("Authorization") != expected:
                    self.send_error(401)
                elif self.path == "/simple/carrier/":
                    self.page()
                elif self.path == "/files/carrier-1.0-py3-none-any.whl":
                    self.reply(index.content, "application/zip", cut=index.cut)
                else:
                    self.send_error(404)

            def page(self) -> None:
                link = "../../files/carrier-1.0-py3-none-any.whl#sha256=whatever"
                if index.page is not None:
                    self.reply(index.page, "application/json")
                elif index.as_json:
                    body = json.dumps({"files": [{"filename": "x", "url": link}]}).encode()
                    self.reply(body, "application/vnd.pypi.simple.v1+json")
                else:
                    self.reply(f'<a href="{link}">carrier</a>'.encode(), "text/html")

            def reply(self, body: bytes, kind: str, cut: int = 0) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) - cut])

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server.server_address[1]


@pytest.fixture
def index(monkeypatch):
    index = Index()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index.port}/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture
def archive(index):
    return Archive("Carrier", "carrier-1.0-py3-none-any.whl", hashlib.sha256(index.content).hexdigest())


@pytest.mark.parametrize("as_json", [True, False])
def test_an_archive_is_fetched_once_and_read_by_member(index, archive, as_json):
    index.as_json = as_json
    seen = []
    path = fetch(archive, lambda done, total: seen.append((done, total)))
    assert read_members(path, list_members(path, "carrier/data/")) == {
        "carrier/data/a.json": b'["a"]',
        "carrier/data/b.json": b'["b"]',
    }
    assert seen[-1] == (len(index.content), len(index.content))
    before = len(index.requests)
    assert fetch(archive) == path
    assert len(index.requests) == before


def test_an_altered_archive_is_refused_and_not_kept(index, archive, cache):
    index.content = index.content[:-1] + b"x"
    with pytest.raises(RepconcError, match="altered or cut"):
        fetch(archive)
    assert not list(cache.rglob("*.whl")) and not list(cache.rglob("*.partial"))


def test_a_download_that_breaks_off_is_refused_and_not_kept(index, archive, cache):
    index.cut = 10
    with pytest.raises(RepconcError, match=r"could not be downloaded|altered or cut"):
        fetch(archive)
    assert not list(cache.rglob("*.whl")) and not list(cache.rglob("*.partial"))


@pytest.mark.parametrize(
    "page", [b"{}", b"not JSON", b'{"files": 3}', b"\xff\xfe", b'{"files": [{"url": "mailto:x"}]}']
)
def test_an_index_that_answers_nonsense_is_as_good_as_none(index, archive, page):
    index.page = page
    with pytest.raises(RepconcError, match="not found in the package index"):
        fetch(archive)


def test_an_archive_that_was_damaged_in_the_cache_is_fetched_again(index, archive):
    path = fetch(archive)
    path.write_bytes(b"broken")
    assert fetch(archive).read_bytes() == index.content


def test_a_private_index_gets_the_credentials_of_its_address(index, archive, monkeypatch):
    index.password = "me:se/cret"
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:se%2Fcret@127.0.0.1:{index.port}/simple")
    assert fetch(archive).read_bytes() == index.content


def test_an_index_without_the_file_is_named_without_its_password(index, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:secret@127.0.0.1:{index.port}/simple")
    with pytest.raises(RepconcError, match=r"not found in the package index \(asked 127\.0\.0\.1\)") as caught:
        fetch(Archive("other", "other-1.0.tar.gz", "0" * 64))
    assert "secret" not in str(caught.value)


def test_members_of_a_source_archive_are_read_without_unpacking(tmp_path):
    path = tmp_path / "carrier-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("carrier-1.0/a.json")
        info.size = 5
        tar.addfile(info, io.BytesIO(b'["a"]'))
    assert read_members(path, ["carrier-1.0/a.json"]) == {"carrier-1.0/a.json": b'["a"]'}
    with pytest.raises(RepconcError, match=r"does not hold \['nothing'\]"):
        read_members(path, ["nothing"])

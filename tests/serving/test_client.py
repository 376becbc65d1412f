"""The client gives what the server's index gives."""

import http.server
import socket
import threading

import numpy as np
import pytest

from repconc import Client, Document, RepconcError
from repconc.files import locked
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.search import Searcher
from repconc.serving.client import ServiceError
from tests.serving.conftest import vector_index, vector_of
from tests.serving.running import TOKEN, running, start


def test_it_searches_texts(text_server, text_folder):
    searcher = Searcher.open(text_folder / "texts")
    with Client(text_server.address) as client:
        assert client.names() == ["texts", "numbers"] and client.info().documents == 120
        questions = ["river of gold", "the king"]
        wanted = {"k": 4, "filter": 'lang = "en"', "documents": True}
        found = client.search(questions, **wanted)
        assert [[hit.id for hit in hits] for hits in found] == [
            [hit.id for hit in hits] for hits in searcher.search(questions, **wanted)
        ]
        assert found[0][0].document == Index(text_folder / "texts").get(found[0][0].id)
        assert np.allclose(client.embed(questions), searcher.encoder.embed_queries(questions), atol=1e-6)
        assert client.search(["river"], 3, exact=True)[0]


def test_it_writes(vector_server):
    with Client(vector_server.address, token=TOKEN) as client:
        document = Document("client / 1", "some text", "Title", {"year": 1999})
        assert client.add([document], np.array([vector_of(1)])).added == 1
        assert client.get("client / 1") == document
        assert (
            client.search(np.array([vector_of(1)]), 1, filter="year = 1999", documents=True)[0][0].document == document
        )
        assert client.remove("client / 1").removed == 1
        assert client.get("client / 1") is None
        with pytest.raises(ServiceError, match="no document with this id") as refused:
            client.remove("client / 1")
        assert refused.value.status == 404 and refused.value.code == "unknown_document"


def test_what_is_refused(vector_server):
    with pytest.raises(RepconcError, match="is no address of a server"):
        Client("localhost:80")
    with Client(vector_server.address, index="other") as client, pytest.raises(ServiceError, match="no index"):
        client.info()
    with Client(vector_server.address) as client:
        with pytest.raises(ServiceError, match="needs the token"):
            client.remove("d1")
        with pytest.raises(RepconcError, match="Give a list of questions"):
            client.search("river")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    with Client(address) as client, pytest.raises(RepconcError, match="does not answer"):
        client.info()


@pytest.mark.parametrize(
    "address", ["http://h:99999", "http://h:x", "http://u:p@h", "http://h?x=1", "http://h#x", "//h"]
)
def test_addresses_that_are_none(address):
    with pytest.raises(RepconcError, match="is no address of a server"):
        Client(address)


def test_under_a_path_of_a_proxy():
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "20")
            self.end_headers()
            self.wfile.write(b'{"indexes": ["one"]}')

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        for path in ("", "/", "/search", "/team/search/"):
            with Client(f"http://127.0.0.1:{proxy.server_port}{path}") as client:
                assert client.names() == ["one"]
        proxy.shutdown()
        thread.join()
    assert seen == ["/v1/indexes", "/v1/indexes", "/search/v1/indexes", "/team/search/v1/indexes"]


def test_an_idle_connection_that_the_server_closed_is_opened_again_also_to_write(tmp_path):
    folder = vector_index(tmp_path / "index")
    with running(folder, folder=tmp_path) as server, Client(server.address, token=TOKEN) as client:
        assert client.remove("d1").removed == 1
        server.stop()
        again = start(folder, folder=tmp_path, port=int(server.address.rpartition(":")[2]))
        try:
            assert client.remove("d2").removed == 1
        finally:
            again.stop()


def test_it_waits_while_another_process_writes(tmp_path):
    folder = vector_index(tmp_path / "index")
    with running(folder, folder=tmp_path) as server, Client(server.address, token=TOKEN) as client:
        over = threading.Event()

        def hold() -> None:
            with locked(folder / MANIFEST):
                held.set()
                over.wait(20)

        held, holder = threading.Event(), threading.Thread(target=hold)
        holder.start()
        held.wait()
        threading.Timer(0.5, over.set).start()
        assert client.remove("d1").removed == 1
        holder.join()


@pytest.mark.parametrize("wait", ["0", "Wed, 21 Oct 2015 07:28:00 GMT", "-3"])
@pytest.mark.parametrize("status", [429, 409])
def test_it_comes_again_when_the_server_is_busy(status, wait):
    busy = b'{"error": {"code": "busy", "message": "Busy."}}'
    busy = f"HTTP/1.1 {status} X\r\nRetry-After: {wait}\r\nContent-Length: {len(busy)}\r\n\r\n".encode() + busy
    good = b'HTTP/1.1 200 X\r\nContent-Length: 20\r\n\r\n{"indexes": ["one"]}'
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                for reply in (busy, busy, good):
                    connection.recv(10_000)
                    connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            assert client.names() == ["one"]
        thread.join()

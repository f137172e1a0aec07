"""What the server behind a proxy of a Service is asked, and what the client gets of its answer."""

import base64
import hashlib
import http.client
import http.server
import json
import socket
import ssl
import threading
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from kcm_cli.sandbox.apiserver.kinds.core import proxying

HEADERS = {
    "/redirect": [("Location", "/other/?x=1")],
    "/elsewhere": [("Location", "http://elsewhere.example/x")],
    "/relative": [("Location", "x")],
    "/through": [("Location", "/api/v1/namespaces/NAMESPACE/services/web/proxy/x")],
    "/cookies": [("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("Access-Control-Allow-Origin", "*")],
    "/bytes": [("X-UTF-8", "\xc3\xa9"), ("X-Latin", "\xe9")],
    "/hop": [("Connection", "X-Hop, keep-alive"), ("Connection", "x-other"), ("X-Hop", "1"), ("X-Other", "2")],
}


class Web(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked. /echo is a protocol that returns what it gets."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        namespace = self.headers.get("X-Namespace", "")
        if path == "/echo" and self.headers.get("Upgrade"):
            self._echo()
            return
        if path.startswith("/refused/"):
            self._refuse(cut=path == "/refused/cut")
            return
        fields = [(name, value.replace("NAMESPACE", namespace)) for name, value in HEADERS.get(path, [])]
        if path == "/own":
            fields = [("Location", f"http://{self.headers['Host']}/there")]
        status = {"/none": 204, "/missing": 404}.get(path, 302 if fields and fields[0][0] == "Location" else 200)
        body = b"x" * int(path[7:]) if path.startswith("/large/") else json.dumps(self._told(path)).encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204 and self.command != "HEAD":
            self.wfile.write(body)

    do_POST = do_HEAD = do_GET

    def _refuse(self, cut):
        """Without its length, and the connection stays open; or with more than what comes."""
        self.send_response(403)
        for name, value in (("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), *([("Content-Length", "100")] * cut)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"refused")
        if not cut:
            with suppress(OSError):
                self.connection.recv(1)
        self.close_connection = True

    def _told(self, path):
        return self.headers.items() if path == "/fields" else [self.command, self.path, dict(self.headers)]

    def _echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.path.encode())
        while data := self.connection.recv(100):
            self.wfile.write(data.upper())
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def port():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def service(kcm_sandbox, kcm_namespace, port):
    """The path of the proxy of a Service with a route to the server."""
    spec = {"ports": [{"name": "web", "port": 80}]}
    kcm_sandbox.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec},
                      namespace=kcm_namespace)  # fmt: skip
    kcm_sandbox.route(f"web.{kcm_namespace}", port)
    return f"/api/v1/namespaces/{kcm_namespace}/services/web/proxy"


def connected(sandbox) -> tuple[str, socket.socket]:
    where = urlsplit(sandbox.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return where.netloc, context.wrap_socket(socket.create_connection((where.hostname, where.port), 30))


@pytest.fixture
def ask(kcm_sandbox, kcm_namespace):
    def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        host, link = connected(kcm_sandbox)
        connection = http.client.HTTPConnection(host)
        connection.sock = link
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"Authorization": f"Bearer {kcm_sandbox.token}", "X-Namespace": kcm_namespace}
        connection.request(method, path, None, sent)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    return ask


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/", "/"),
        ("/a/b/?q=a%20b&empty&x=1;y=2", "/a/b/?q=a%20b&empty&x=1;y=2"),
        ("/a%20b/c%2Fd", "/a%20b/c/d"),
        ("/a//b/../c/", "/a/c/"),
    ],
)
def test_the_path_and_query_that_a_server_is_asked(kcm_sandbox, service, ask, path, asked):
    status, headers, body = ask(service + path, Accept="image/png", X_Forwarded_Proto="ftp")
    method, found, told = json.loads(body)
    assert (status, method, found, headers["Content-Length"]) == (200, "GET", asked, str(len(body)))
    assert told["Host"] == urlsplit(kcm_sandbox.url).netloc
    assert (told["x-forwarded-uri"], told["x-forwarded-proto"]) == (service + asked.partition("?")[0], "ftp")
    assert not {name.lower() for name in told} & {"authorization", "upgrade", "x-forwarded-host"}


def test_the_root_is_asked_with_a_slash(service, ask):
    for method in ("GET", "HEAD"):
        status, headers, body = ask(f"{service}?a=b%20c", method)
        assert (status, headers["Location"], body) == (301, f"{service}/?a=b%20c", b"")
    assert json.loads(ask(service, "POST")[2])[:2] == ["POST", "/"]


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/redirect", "PROXY/other/?x=1"),
        ("/through", "PROXY/x"),
        ("/own", "http://HOSTPROXY/there"),
        ("/relative", "x"),
        ("/elsewhere", "http://elsewhere.example/x"),
    ],
)
def test_redirects_of_a_server_lead_through_the_proxy(kcm_sandbox, service, ask, path, location):
    expected = location.replace("HOST", urlsplit(kcm_sandbox.url).netloc).replace("PROXY", service)
    status, headers, _ = ask(service + path)
    assert (status, headers["Location"]) == (302, expected)


def test_headers_and_bodies_of_a_server(service, ask):
    _, headers, _ = ask(f"{service}/cookies")
    assert (headers.get_all("Set-Cookie"), headers["Access-Control-Allow-Origin"]) == (["a=b", "c=d"], None)
    status, headers, body = ask(f"{service}/none")
    assert (status, headers["Transfer-Encoding"], body) == (204, None, b"")
    _, headers, _ = ask(f"{service}/bytes")
    assert (headers["X-UTF-8"], headers["X-Latin"]) == ("\xc3\xa9", "\xe9")
    _, headers, _ = ask(f"{service}/hop")
    assert (headers["X-Hop"], headers["X-Other"]) == (None, None)


@pytest.mark.parametrize("size", [0, 10_000, 65_536, 65_537, 200_000])
def test_an_answer_has_the_length_that_the_server_says(service, ask, size):
    path = f"{service}/large/{size}"
    status, headers, body = ask(path)
    assert (status, headers["Content-Length"], headers["Transfer-Encoding"]) == (200, str(size), None)
    assert body == b"x" * size
    status, headers, body = ask(path, "HEAD")
    assert (status, headers["Content-Length"], headers["Transfer-Encoding"], body) == (200, str(size), None, b"")


def test_headers_of_an_answer_without_its_body(service, ask):
    _, headers, _ = ask(f"{service}/cookies", "HEAD")
    assert (headers.get_all("Set-Cookie"), headers["Access-Control-Allow-Origin"]) == (["a=b", "c=d"], None)


def test_headers_that_a_client_cannot_choose(service, ask):
    forged = {"X_Forwarded_Uri": "/forged", "X_Forwarded_For": "192.0.2.1", "X_Hop": "1", "X_Kept": "2"}
    told = json.loads(ask(f"{service}/x", Connection="keep-alive, X-Hop", **forged)[2])[2]
    given = {name.lower(): value for name, value in told.items()}
    assert (given["x-forwarded-uri"], given["x-forwarded-for"]) == (f"{service}/x", "192.0.2.1, 127.0.0.1")
    assert (given.get("x-hop"), given["x-kept"], given["connection"]) == (None, "2", "close")
    names = [name.lower() for name, _ in json.loads(ask(f"{service}/fields", **forged)[2])]
    assert len(names) == len(set(names))
    assert json.loads(ask(f"{service}/x")[2])[2]["x-forwarded-for"] == "127.0.0.1"


def test_a_server_that_does_not_speak_tls(ask, service):
    status, _, body = ask(service.replace("/web/", "/https:web:/") + "/x")
    why = "error trying to reach service: tls: first record does not look like a TLS handshake"
    assert (status, json.loads(body)["message"]) == (503, why)


@pytest.fixture
def upgrade(kcm_sandbox):
    """Asks for another protocol: the connection, and the head and what follows it so far."""
    links = []

    def upgrade(path: str, connection: str = "keep-alive, Upgrade") -> tuple[socket.socket, bytes, bytes]:
        host, link = connected(kcm_sandbox)
        links.append(link)
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {kcm_sandbox.token}"]
        lines += [f"Connection: {connection}", "Upgrade: websocket", "Sec-WebSocket-Key: a", "", ""]
        link.sendall("\r\n".join(lines).encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += link.recv(4096)
        head, _, rest = data.partition(b"\r\n\r\n")
        return link, head, rest

    yield upgrade
    for link in links:
        link.close()


@pytest.mark.parametrize("connection", ["keep-alive, Upgrade", "x-upgrade"])
def test_a_connection_that_is_upgraded(service, upgrade, connection):
    """Upstream looks for the word in the header, whatever is around it."""
    link, head, data = upgrade(f"{service}/echo?lost=1", connection)
    assert head.startswith(b"HTTP/1.1 101 ") and b"upgrade: websocket" in head.lower()
    assert b"sec-websocket-accept: " in head.lower()
    link.sendall(b"hello")
    while not data.endswith(b"HELLO"):
        more = link.recv(100)
        assert more
        data += more
    assert data == b"/echoHELLO", "upstream drops the query"


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [("/x", 500, b"invalid upgrade response: status code 200"), ("/missing", 404, b"/missing")],
)
def test_a_connection_that_is_not_upgraded(service, upgrade, path, status, body):
    link, head, data = upgrade(service + path)
    while more := link.recv(4096):
        data += more
    assert head.startswith(f"HTTP/1.1 {status} ".encode()) and body in data


def whole(link: socket.socket, data: bytes) -> bytes:
    while more := link.recv(4096):
        data += more
    return data


def test_a_refusal_that_does_not_end(service, upgrade, monkeypatch):
    monkeypatch.setattr(proxying, "_REFUSAL_S", 0.1)
    link, head, data = upgrade(f"{service}/refused/open")
    assert head.startswith(b"HTTP/1.1 403 ") and whole(link, data) == b"refused"
    assert [line for line in head.split(b"\r\n") if b"Cookie" in line] == [b"Set-Cookie: a=b", b"Set-Cookie: c=d"]


def test_a_refusal_that_is_cut(service, upgrade):
    link, head, data = upgrade(f"{service}/refused/cut")
    assert head.startswith(b"HTTP/1.1 500 ") and b"unexpected EOF" in whole(link, data)

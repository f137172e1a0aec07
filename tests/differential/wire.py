"""Requests to port 10257, byte by byte, beside Go's manager: do both answer alike?

    KUBEBUILDER_ASSETS=DIR python -m tests.differential.wire

DIR has etcd, kube-apiserver and kube-controller-manager. Both managers use one kube-apiserver. What differs and is not
in ``KNOWN`` (docs/deviations.md) is printed.
"""

import os
import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.kit.processes import KCM, Processes, ask, free_port, insecure, until
from tests.kit.servers import TOKEN, kubeconfig, real_server

SILENCE_S = 2.0
"""A connection without bytes for so long stays open."""
HOST = b"Host: localhost\r\n"
ALLOWED = b"Authorization: Bearer " + TOKEN.encode()
OF_PROCESS = re.compile(r"(?i)\r\n(date|audit-id|process-start-time-unix): [^\r]*")
"""Headers with another value each time."""
LENGTHS = re.compile(r"(?i)\r\n(content-length: \d+|transfer-encoding: chunked)")


def request(head: bytes, *headers: bytes, body: bytes = b"", host: bytes = HOST) -> bytes:
    return b"\r\n".join((head, host + b"".join(one + b"\r\n" for one in headers), body))


def get(*headers: bytes) -> bytes:
    return request(b"GET /healthz HTTP/1.1", *headers)


def post(*headers: bytes, body: bytes = b"") -> bytes:
    return request(b"POST /healthz HTTP/1.1", *headers, body=body)


METHODS = (b"HEAD", b"PUT", b"DELETE", b"PATCH", b"TRACE", b"OPTIONS", b"FOO", b"get", b"PROPFIND")
PATHS = (
    *(b"/", b"/nope", b"/metrics", b"/metrics/", b"/configz", b"/flagz", b"/statusz", b"/livez", b"/readyz"),
    *(b"/healthz?verbose", b"/healthz?exclude=nothing", b"/healthz/", b"/healthz/none", b"//healthz", b"/a/../healthz"),
    *(b"/%68ealthz", b"/%zz", b"/healthz%2fping", b"/healthz%3fx", b"/healthz#x", b"/a b", b"*", b"/debug/pprof/"),
    *(b"http://localhost/healthz", b"/" + b"a" * 20000),
)
CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"
REQUESTS = {
    **{method.decode(): request(method + b" /healthz HTTP/1.1") for method in METHODS},
    **{f"allowed {method.decode()}": request(method + b" /nope HTTP/1.1", ALLOWED) for method in METHODS},
    **{path[:30].decode(): request(b"GET " + path + b" HTTP/1.1") for path in PATHS},
    **{f"allowed {path[:30].decode()}": request(b"GET " + path + b" HTTP/1.1", ALLOWED) for path in PATHS[:6]},
    "OPTIONS *": request(b"OPTIONS * HTTP/1.1"),
    "CONNECT": request(b"CONNECT localhost:443 HTTP/1.1"),
    "HTTP/1.0": request(b"GET /healthz HTTP/1.0", host=b""),
    "HTTP/1.0 kept": request(b"GET /healthz HTTP/1.0", b"Connection: keep-alive", host=b""),
    "HTTP/1.2": request(b"GET /healthz HTTP/1.2"),
    "HTTP/2.0": request(b"GET /healthz HTTP/2.0"),
    "HTTP/3": request(b"GET /healthz HTTP/3"),
    "no version": b"GET /healthz\r\n\r\n",
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no HTTP": b"\x00\x01\x02\r\n\r\n",
    "an empty line first": b"\r\n" + get(),
    "no host": request(b"GET /healthz HTTP/1.1", host=b""),
    "two hosts": get(b"Host: other"),
    "a host with a space": request(b"GET /healthz HTTP/1.1", host=b"Host: a b\r\n"),
    "no colon": get(b"nothing"),
    "a space before the colon": get(b"X : y"),
    "a folded header": get(b"X: y\r\n z"),
    "a null byte": get(b"X: a\x00b"),
    "Latin-1": get(b"X: \xe9"),
    "no name": get(b": y"),
    "a large head": get(b"X: " + b"a" * 1_100_000),
    "closed": get(b"Connection: close"),
    "a body of GET": request(b"GET /healthz HTTP/1.1", b"Content-Length: 3", body=b"abc"),
    "two requests": get() + request(b"GET /nope HTTP/1.1"),
    "chunks": post(b"Transfer-Encoding: chunked", body=CHUNKS),
    "chunks and a length": post(b"Transfer-Encoding: chunked", b"Content-Length: 3", body=CHUNKS),
    "another encoding": post(b"Transfer-Encoding: gzip"),
    "a length in words": post(b"Content-Length: x"),
    "a negative length": post(b"Content-Length: -1"),
    "two lengths": post(b"Content-Length: 3", b"Content-Length: 4", body=b"abcd"),
    "a huge length": post(b"Content-Length: 99999999999999999999"),
    "expects 100": post(b"Expect: 100-continue", b"Content-Length: 3"),
    "expects more": post(b"Expect: more", b"Content-Length: 3", body=b"abc"),
    "upgrade to WebSocket": get(b"Connection: Upgrade", b"Upgrade: websocket"),
    "upgrade to HTTP/2": get(
        b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"
    ),
    "an unknown token": request(b"GET /metrics HTTP/1.1", b"Authorization: Bearer x"),
    "a password": request(b"GET /metrics HTTP/1.1", b"Authorization: Basic eDp5"),
    "compressed": get(b"Accept-Encoding: gzip"),
}
KNOWN = {
    *("HTTP/1.2", "preface of HTTP/2", "an empty line first", "a space before the colon", "a folded header"),
    *("chunks and a length", "expects 100", "upgrade to WebSocket", "upgrade to HTTP/2"),
}
SHAPES = {"allowed /metrics", "allowed /configz", "allowed /flagz", "/" + "a" * 29}
"""Requests whose bodies Go sends in chunks. Metrics and configuration are compared elsewhere."""


class Answer(NamedTuple):
    """What a server sent, as far as it is the same for the same request; end: whether it closed the connection."""

    status: str
    headers: tuple[str, ...]
    body: str
    end: bool


def answer(port: int, data: bytes) -> Answer:
    got, end = b"", True
    with socket.create_connection(("127.0.0.1", port)) as raw, insecure().wrap_socket(raw) as connection:
        connection.settimeout(SILENCE_S)
        connection.sendall(data)
        try:
            while part := connection.recv(65536):
                got += part
        except TimeoutError:
            end = False
        except OSError:
            pass  # a reset is an end, too
    head, _, body = OF_PROCESS.sub("", got.decode("latin-1")).partition("\r\n\r\n")
    status, *headers = LENGTHS.sub("", head).split("\r\n")
    return Answer(status, tuple(sorted(headers, key=str.lower)), body, end)


def main() -> int:
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    programs = {"go": (f"{assets}/kube-controller-manager",), "kcm": KCM}
    ports = {name: free_port() for name in programs}
    with tempfile.TemporaryDirectory() as folder, real_server(assets, Path(folder)) as url, Processes() as processes:
        config = Path(folder) / "kubeconfig"
        config.write_text(kubeconfig(url))
        files = [f"--{name}kubeconfig={config}" for name in ("", "authentication-", "authorization-")]
        for name, program in programs.items():
            flags = [f"--secure-port={ports[name]}", f"--cert-dir={folder}/{name}", "--controllers=ttl-controller"]
            words = (*program, *files, *flags, "--leader-elect=false")
            processes.start(*words, log=Path(folder) / f"{name}.log")
            until(lambda port=ports[name]: ask(f"https://127.0.0.1:{port}/healthz").status == 200)  # type: ignore[misc]
        unknown = 0
        for what, data in REQUESTS.items():
            go, kcm = (answer(port, data) for port in ports.values())
            if what in SHAPES:
                go, kcm = go._replace(body=""), kcm._replace(body="")
            if (go != kcm) != (what in KNOWN):
                unknown += 1
                print(f"{what}\n  go  {str(go)[:300]}\n  kcm {str(kcm)[:300]}")
    print(f"{len(REQUESTS)} requests: {len(KNOWN)} known differences, {unknown} others")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())

"""Replaces etcd for envtest: reports that it is healthy until SIGTERM, and stores nothing.

The process of the API server stores the objects. Only the standard library is imported, for a start within about ten
milliseconds.
"""

import contextlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from urllib.parse import urlsplit

VERSION = "3.6.0"
"""The release of etcd whose flags are known."""
_HELP = """A replacement for etcd, which kube-apiserver of kcm's sandbox does not need. It stores nothing.

Flags:

  --listen-client-urls 'http://localhost:2379'
\tThe URLs that serve /health, over HTTP.
  --version 'false'
\tPrint the version and exit.

All other flags of etcd are accepted and have no effect, except those for TLS to clients.
"""
_BARE_WORDS = """
auto-tls client-cert-auth enable-grpc-gateway enable-log-rotation enable-pprof enable-v2 force-new-cluster initial-
election-tick-advance peer-auto-tls peer-client-cert-auth pre-vote socket-reuse-address socket-reuse-port strict-
reconfig-check unsafe-no-fsync
"""
_BARE = frozenset(_BARE_WORDS.split())
"""Flags that take no value."""
_TLS = ("auto-tls", "cert-file", "client-cert-auth", "key-file", "trusted-ca-file")
_ANSWERS = {
    "/health": '{"health":"true","reason":""}',
    "/livez": "ok\n",
    "/readyz": "ok\n",
    "/version": f'{{"etcdserver":"{VERSION}","etcdcluster":"{VERSION.rpartition(".")[0]}.0"}}',
}
_MOST_BYTES = 16 * 1024


class Refused(Exception):
    """The error, in one line."""


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code for ``--help``, ``--version`` and errors."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        flags = dict(_flags(arguments))
        if "help" in flags:
            sys.stdout.write(_HELP)
            return 0
        if "version" in flags:
            sys.stdout.write(f"etcd Version: {VERSION}\n")
            return 0
        for name in _TLS:
            if flags.get(name) not in (None, "", "false"):
                raise Refused(f"--{name}: there is no TLS here, use http:// in --listen-client-urls")
        _serve([_bound(url) for url in flags.get("listen-client-urls", "http://localhost:2379").split(",")])
    except Refused as error:
        sys.stderr.write(f"Error: etcd: {error}\n")
        return 1
    return 0


def _flags(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise Refused(f"{word!r} is not a valid flag")
        if name in ("h", "help", "version"):
            yield ("help" if name == "h" else name), ""
            continue
        if not equals:
            if name in _BARE or name.startswith("experimental-enable-"):
                value = "true"
            elif not words:
                raise Refused(f"flag needs an argument: --{name}")
            else:
                value = words.pop(0)
        yield name, value


def _bound(url: str) -> socket.socket:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or not parts.hostname or port is None:
        raise Refused(f"--listen-client-urls: {url} is not http://HOST:PORT")
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except OSError as error:
        raise Refused(f"cannot listen on {parts.netloc}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def _serve(listeners: Sequence[socket.socket]) -> None:
    """Respond to one request of each connection. Slow clients do not block others."""
    heard: dict[socket.socket, bytes] = {}
    with selectors.DefaultSelector() as selector:
        for listener in listeners:
            selector.register(listener, selectors.EVENT_READ, True)
        while True:
            for key, _ in selector.select():
                one = key.fileobj
                assert isinstance(one, socket.socket)
                if key.data:
                    with contextlib.suppress(OSError):
                        connection, _ = one.accept()
                        connection.setblocking(False)
                        heard[connection] = b""
                        selector.register(connection, selectors.EVENT_READ, False)
                elif _ended(one, heard):
                    selector.unregister(one)
                    del heard[one]
                    one.close()


def _ended(connection: socket.socket, heard: dict[socket.socket, bytes]) -> bool:
    """Read from a connection, and respond to a complete request; returns whether the connection is to be closed."""
    try:
        data = connection.recv(4096)
        heard[connection] += data
        if data and b"\r\n\r\n" not in heard[connection] and len(heard[connection]) < _MOST_BYTES:
            return False
        connection.send(_answer(heard[connection]))
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _answer(request: bytes) -> bytes:
    target = request.decode("latin-1").partition(" ")[2].partition(" ")[0]
    body = _ANSWERS.get(target.partition("?")[0])
    status, text = ("200 OK", body) if body is not None else ("404 Not Found", "404 page not found\n")
    kind = "application/json" if text.startswith("{") else "text/plain; charset=utf-8"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return (head + text).encode()


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

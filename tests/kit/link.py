"""A TCP link between a manager and its API server that can be cut, or left hanging, while both go on."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.kit.processes import free_port

_CHUNK = 65536


@dataclass
class Link:
    """Listens on ``port`` and forwards to ``target``. ``hang`` keeps accepting and never answers, ``cut`` refuses."""

    target: int
    port: int = field(default_factory=free_port)
    _flows: threading.Event = field(default_factory=threading.Event)
    _listener: socket.socket | None = None
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def join(self) -> None:
        """Forward from now on."""
        self._flows.set()
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def hang(self) -> None:
        """Accept, read nothing, answer nothing; connections that exist stand still."""
        self.join()
        self._flows.clear()

    def cut(self) -> None:
        """Refuse, and end the connections that exist."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)
        self._flows.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._flows.wait()
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self.target)) as server:
            self._open.append(server)
            other = threading.Thread(target=self._pump, args=(client, server), daemon=True)
            other.start()
            self._pump(server, client)
            other.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

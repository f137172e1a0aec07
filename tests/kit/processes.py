"""Real processes in tests: none outlives the test that started it, and they are asked over TLS without trust."""

import contextlib
import json
import secrets
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.kit.places import ROOT

PORTS = range(12_000, 30_000)
KCM = (sys.executable, "-m", "kcm_cli.cli.main")
END_S = 60.0
POLL_S = 0.05


def free_port() -> int:
    """A port of this machine that nobody listens on, below those that the kernel gives to connections.

    Drawn anew each time, so that a suite that runs beside this one hardly takes the same before it is used.
    """
    while True:
        port = PORTS.start + secrets.randbelow(len(PORTS))
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


def insecure(pair: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """Trusts whatever answers. pair: the files of a client certificate and its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


@dataclass(frozen=True)
class Answer:
    """What a server said, whatever the status."""

    status: int
    text: str
    content_type: str

    @property
    def doc(self) -> Any:
        return json.loads(self.text)


def ask(
    url: str,
    *,
    token: str = "",
    method: str = "GET",
    body: object = None,
    timeout: float = 10,
    pair: tuple[Path, Path] | None = None,
    more: Mapping[str, str] | None = None,
) -> Answer:
    """One request; redirects are not followed. pair: as in ``insecure``. more: headers, with names in lower case.
    Raises OSError where nobody answers."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    data = None
    if body is not None:
        headers["content-type"], data = "application/json", json.dumps(body).encode()
    headers |= more or {}
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=insecure(pair)), _NoRedirect)
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with opener.open(request, timeout=timeout) as answer:
            return Answer(answer.status, answer.read().decode(errors="replace"), answer.headers.get("content-type", ""))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read().decode(errors="replace"), error.headers.get("content-type", ""))


def until(check: Callable[[], object], seconds: float = 180.0, *, why: Callable[[], str] = lambda: "") -> None:
    """Wait for the check to hold; nobody there or nothing found means not yet. ``why``: the text of the failure."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except (OSError, LookupError):
            pass
        assert time.monotonic() < deadline, f"not within {seconds:g} s {why()}"
        time.sleep(POLL_S)


@dataclass
class Processes:
    """Processes that end with the ``with`` statement: in order where they can, by force where they do not."""

    running: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start(self, *words: str, log: Path | None = None, **options: Any) -> "subprocess.Popen[bytes]":
        """Start a process in the project's folder. ``log``: the file that gets all that it writes."""
        options = {"cwd": ROOT, "stdout": subprocess.DEVNULL, **options}
        if log is None:
            process = subprocess.Popen(words, **options)
        else:
            with log.open("wb") as file:
                process = subprocess.Popen(words, **{**options, "stdout": file, "stderr": subprocess.STDOUT})
        self.running.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        alive = [process for process in self.running if process.poll() is None]
        for process in alive:
            process.terminate()
        forced = [process.args for process in alive if not _ended(process)]
        self.running.clear()
        assert error is not None or not forced, f"had to be killed: {forced}"


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(END_S)
        return True
    except subprocess.TimeoutExpired:
        process.kill()  # one that is stopped, too
        process.wait()
        return False

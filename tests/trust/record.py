"""Asks the Go binary what it thinks of each case, and keeps its answers in tests/recorded/trust.json.

KUBEBUILDER_ASSETS=… python -m tests.trust.record
"""

import base64
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.trust.cases import CASES, Case

ANSWERS = Path(__file__).parents[1] / "recorded" / "trust.json"
_WAIT_S = 15.0


@contextmanager
def listening(case: Case, folder: Path) -> Iterator[tuple[int, threading.Event]]:
    """A TLS server with the case's certificate; the event is set once a request has arrived over TLS."""
    pair = folder / "pair.pem"
    pair.write_bytes(case.chain + case.secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(pair)
    listener, asked = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as tls:
                if tls.recv(65536):
                    asked.set()
                    tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def kubeconfig(case: Case, port: int) -> dict[str, object]:
    """A kubeconfig for the case's server."""
    cluster: dict[str, object] = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority-data": base64.b64encode(case.bundle).decode(),
    }
    if case.server_name:
        cluster["tls-server-name"] = case.server_name
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }


def ask(binary: str, case: Case) -> str:
    """``trusted``, or the reason that the binary logs."""
    with tempfile.TemporaryDirectory() as name, listening(case, Path(name)) as (port, asked):
        config = Path(name) / "config"
        config.write_text(json.dumps(kubeconfig(case, port)))
        log = Path(name) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [binary, f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"], stdout=out, stderr=out
            )
            waited = 0.0
            try:
                while waited < _WAIT_S and process.poll() is None and not asked.wait(0.1):
                    waited += 0.1
                    if b"x509: " in log.read_bytes():
                        break
            finally:
                process.kill()
                process.wait()
        if asked.is_set():
            return "trusted"
        found = re.search(r"(x509: [^\"\n]*?|unable to load root certificates[^\"\n]*)[\"\n]", log.read_text())
        return found[1] if found else f"no answer: {log.read_text()[-300:]}"


def main() -> None:
    binary = str(Path(os.environ["KUBEBUILDER_ASSETS"]) / "kube-controller-manager")
    chosen = sys.argv[1:] or list(CASES)
    answers = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for name in chosen:
        answers[name] = ask(binary, CASES[name]())
        print(f"{name}: {answers[name]}", flush=True)
    ANSWERS.write_text(json.dumps({name: answers[name] for name in CASES}, indent=1) + "\n")


if __name__ == "__main__":
    main()

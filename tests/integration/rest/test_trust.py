"""Server certificates are verified as by the Go binary, whose results are in tests/recorded/trust.json."""

import asyncio
import functools
import json
import ssl
from pathlib import Path

import pytest
import uvloop

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.access import Access
from kcm_cli.rest.errors import TLSFilesError
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import TLSFiles, client_context, connected
from kcm_cli.rest.transport import Request, Untrusted
from tests.trust.cases import CASES, LEAF, Case, sign
from tests.trust.record import ANSWERS, listening

RECORDED: dict[str, str] = json.loads(ANSWERS.read_text())
DEVIATIONS = {"RSA 1024", "root of RSA 1024", "Netscape's client, RSA 1024"}
"""Refused here by OpenSSL; see docs/deviations.md."""


async def ask(case: Case, port: int) -> str:
    """``trusted``, ``untrusted`` or ``unusable`` (the bundle holds no certificate)."""
    access = Access(f"https://127.0.0.1:{port}", TLSFiles(ca_data=case.bundle), server_name=case.server_name)
    try:
        session = Session(access, LoopClock())
    except TLSFilesError:
        return "unusable"
    try:
        await session.send(Request("GET", "/healthz", timeout_s=5.0))
    except Untrusted:
        return "untrusted"
    finally:
        await session.close()
    return "trusted"


def expected(name: str) -> str:
    recorded = RECORDED[name]
    if recorded == "trusted" and name not in DEVIATIONS:
        return "trusted"
    return "unusable" if recorded.startswith("unable to load root certificates") else "untrusted"


@pytest.mark.parametrize("name", CASES)
def test_a_server_is_trusted_as_by_go(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    with listening(case, tmp_path) as (port, asked):
        assert asyncio.run(ask(case, port)) == expected(name)
        assert asked.is_set() == (expected(name) == "trusted")


@pytest.mark.parametrize("name", ["root signs leaf", "Netscape's client", "Netscape's client, expired"])
def test_a_server_is_trusted_on_the_loop_of_the_manager(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    with listening(case, tmp_path) as (port, asked), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask(case, port)) == expected(name)
        assert asked.is_set() == (expected(name) == "trusted")


def test_what_openssl_refuses_and_go_trusts_is_refused_once(tmp_path: Path) -> None:
    """Later connections begin with the context whose servers are judged here. It shows the client's certificate."""
    case, client = CASES["Netscape's client"](), sign(LEAF)
    context = client_context(TLSFiles(ca_data=case.bundle, cert_data=client.pem, key_data=client.secret))
    made = list[tuple[bool, object]]()

    async def connect(port: int, one: ssl.SSLContext) -> None:
        made.append((one is context, one.verify_mode))
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=one, server_hostname="127.0.0.1")
        writer.transport.abort()

    async def main(port: int) -> None:
        for _ in range(2):
            await connected(context, functools.partial(connect, port))

    with listening(case, tmp_path) as (port, _):
        asyncio.run(main(port))
    assert made == [(True, ssl.CERT_REQUIRED), (False, ssl.CERT_NONE), (False, ssl.CERT_NONE)]


def test_every_case_is_recorded() -> None:
    assert RECORDED.keys() == CASES.keys()
    assert all(RECORDED[name] == "trusted" for name in DEVIATIONS)

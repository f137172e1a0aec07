"""Server certificates are verified as by the Go binary, whose results are in tests/recorded/trust.json."""

import asyncio
import json
from pathlib import Path

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.access import Access
from kcm_cli.rest.errors import TLSFilesError
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import TLSFiles
from kcm_cli.rest.transport import Request, Untrusted
from tests.trust.cases import CASES, Case
from tests.trust.record import ANSWERS, listening

RECORDED: dict[str, str] = json.loads(ANSWERS.read_text())
DEVIATIONS = {"RSA 1024", "root of RSA 1024", "leaf for any usage"}
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
    with listening(case, tmp_path) as (port, _):
        assert asyncio.run(ask(case, port)) == expected(name)


def test_every_case_is_recorded() -> None:
    assert RECORDED.keys() == CASES.keys()
    assert all(RECORDED[name] == "trusted" for name in DEVIATIONS)

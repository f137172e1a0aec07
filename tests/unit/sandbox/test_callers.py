"""Clients of the sandbox's port whose certificate no trusted CA has signed: as in Go, tokens are tried."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from kcm_cli.sandbox.run import SandboxOptions, SandboxServer
from tests.kit.processes import insecure
from tests.trust.cases import LEAF, sign

pytestmark = pytest.mark.real_time

STRANGER = sign(replace(LEAF, name="mallory", usages=(ExtendedKeyUsageOID.CLIENT_AUTH,)))


async def status(port: int, folder: Path, head: bytes) -> bytes:
    pair = folder / "pair.pem"
    pair.write_bytes(STRANGER.pem + STRANGER.secret)
    context: ssl.SSLContext = insecure()
    context.load_cert_chain(pair)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET /api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + head + b"\r\n")
    answer = await reader.read()
    writer.close()
    return answer.split(b" ", 2)[1]


@pytest.mark.parametrize(("head", "expected"), [(b"", b"401"), (b"Authorization: Bearer good\r\n", b"200")])
async def test_a_certificate_of_an_unknown_ca_leads_to_the_token(tmp_path: Path, head: bytes, expected: bytes) -> None:
    sandbox = SandboxServer(SandboxOptions(port=0, token="good"))
    sandbox.prepare()
    try:
        await sandbox.serve()
        assert await status(sandbox.port, tmp_path, head) == expected
    finally:
        await sandbox.stop()

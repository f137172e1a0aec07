"""TLS on memory buffers, without a socket."""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL, crypto

from kcm_cli.serving.fair_queue import FairQueue
from kcm_cli.serving.tls_transport import MAX_CHAIN, PEER_CERTIFICATES, TlsProtocol, server_context
from tests.kit.processes import insecure
from tests.trust.cases import LEAF, ROOT, sign

pytestmark = pytest.mark.real_time


class Raw(asyncio.Transport):
    """A socket's transport, which keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.closed = False
        self.written = bytearray()

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


async def test_reading_pauses_while_the_client_does_not_read() -> None:
    """OpenSSL answers some records (renegotiation) itself: without end, if they were read without end."""
    raw = Raw()
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    protocol = TlsProtocol(
        lambda _: context, bytearray(1), (FairQueue(), FairQueue()), asyncio.Protocol, lambda why: None
    )
    protocol.connection_made(raw)
    protocol.pause_writing()
    assert not raw.reading
    protocol.pause(paused=True)  # the application does not take more, either
    protocol.resume_writing()
    assert not raw.reading
    protocol.pause(paused=False)
    assert raw.reading


async def test_a_client_certificate_that_cannot_be_parsed_ends_its_handshake() -> None:
    """OpenSSL takes a version that there is not; Go does not either."""
    ca, failures = sign(ROOT), list[str]()
    whole = ca.certificate.public_bytes(Encoding.DER)
    odd = whole.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07", 1)
    server, client = SSL.Context(SSL.TLS_SERVER_METHOD), SSL.Context(SSL.TLS_CLIENT_METHOD)
    server.set_verify(SSL.VERIFY_PEER, lambda *_: True)
    server.use_certificate(ca.certificate)
    with pytest.deprecated_call():  # cryptography cannot hold it
        client.use_certificate(crypto.load_certificate(crypto.FILETYPE_ASN1, odd))
    for context in (server, client):
        context.use_privatekey(ca.key)
    raw, caller = Raw(), SSL.Connection(client)
    caller.set_connect_state()
    protocol = TlsProtocol(
        lambda _: server, bytearray(1), (FairQueue(), FairQueue()), asyncio.Protocol, failures.append
    )
    protocol.connection_made(raw)
    for _ in range(4):
        with suppress(SSL.WantReadError):
            caller.do_handshake()
        with suppress(SSL.WantReadError):
            protocol.received(caller.bio_read(65536))
        await asyncio.sleep(0)
        if raw.written:
            caller.bio_write(bytes(raw.written))
            raw.written.clear()
    assert raw.closed
    assert not protocol.established
    assert failures == ["the client's certificate cannot be parsed"]


class Inner(asyncio.Protocol):
    """Notes the client's certificates, and what it sends."""

    def __init__(self) -> None:
        self.certificates: tuple[bytes, ...] = ()
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.certificates = transport.get_extra_info(PEER_CERTIFICATES)

    def data_received(self, data: bytes) -> None:
        self.data += data


@pytest.mark.parametrize(("sent", "read", "why"), [(3, 3, ""), (40, MAX_CHAIN, ""), (250, 0, "too long")])
async def test_the_chain_of_a_client_is_limited(tmp_path: Path, sent: int, read: int, why: str) -> None:
    """A chain that is too long is not parsed. A request that follows the handshake at once is not lost."""
    root, caller = sign(ROOT), insecure()
    chain = [sign(replace(LEAF, name=f"client {number}", sans=()), root) for number in range(sent)]
    (tmp_path / "pem").write_bytes(b"".join(one.pem for one in chain) + chain[0].secret)
    caller.load_cert_chain(tmp_path / "pem")
    context = server_context([])
    context.use_certificate(root.certificate)
    context.use_privatekey(root.key)
    inner, failures, raw, request = Inner(), list[str](), Raw(), b"x" * 70_000
    protocol = TlsProtocol(lambda _: context, bytearray(1), (FairQueue(), FairQueue()), lambda: inner, failures.append)
    protocol.connection_made(raw)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = caller.wrap_bio(to_client, to_server)
    for step in range(3):
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
            if step == 1:
                client.write(request)
        received = to_server.read()
        for start in range(0, len(received), 65536):
            protocol.received(received[start : start + 65536])
        await asyncio.sleep(0)
        to_client.write(bytes(raw.written))
        raw.written.clear()
    for _ in range(100):  # what takes long is read on in later turns
        await asyncio.sleep(0)
    assert [one.removeprefix("the client's handshake is ") for one in failures] == [why] * bool(why)
    assert len(inner.certificates) == read
    assert inner.certificates == tuple(one.certificate.public_bytes(Encoding.DER) for one in chain[:read])
    assert (inner.data == request) == (not why)

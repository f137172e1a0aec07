"""TLS on memory buffers, without a socket."""

import asyncio
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL, crypto

from kcm_cli.component.handshakes import Handshakes
from kcm_cli.component.tls_transport import TlsProtocol
from tests.trust.cases import ROOT, sign


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


def test_reading_pauses_while_the_client_does_not_read() -> None:
    """OpenSSL answers some records (renegotiation) itself: without end, if they were read without end."""

    async def main() -> None:
        raw = Raw()
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        protocol = TlsProtocol(context, bytearray(1), Handshakes(), asyncio.Protocol, lambda why: None)
        protocol.connection_made(raw)
        protocol.pause_writing()
        assert not raw.reading
        protocol.pause(paused=True)  # the application does not take more, either
        protocol.resume_writing()
        assert not raw.reading
        protocol.pause(paused=False)
        assert raw.reading

    asyncio.run(main())


def test_a_client_certificate_that_cannot_be_parsed_ends_its_handshake() -> None:
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

    async def main() -> None:
        raw, caller = Raw(), SSL.Connection(client)
        caller.set_connect_state()
        protocol = TlsProtocol(server, bytearray(1), Handshakes(), asyncio.Protocol, failures.append)
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

    asyncio.run(main())
    assert failures == ["the client's certificate cannot be parsed"]

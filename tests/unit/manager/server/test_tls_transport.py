"""TLS on memory buffers, without a socket."""

import asyncio

from OpenSSL import SSL

from kcm_cli.manager.server.tls_transport import TlsProtocol


class Raw(asyncio.Transport):
    """A socket's transport, which keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    """OpenSSL answers some records (renegotiation) itself: without end, if they were read without end."""

    async def main() -> None:
        raw = Raw()
        protocol = TlsProtocol(SSL.Context(SSL.TLS_SERVER_METHOD), bytearray(1), asyncio.Protocol, lambda why: None)
        protocol.connection_made(raw)
        protocol.pause_writing()
        assert not raw.reading
        protocol.pause(paused=True)  # the application does not take more, either
        protocol.resume_writing()
        assert not raw.reading
        protocol.pause(paused=False)
        assert raw.reading

    asyncio.run(main())

"""TLS under an asyncio protocol, by pyOpenSSL on memory buffers.

Like Go's server, it accepts any client certificate in the handshake, and leaves its verification to the request. The
ssl module cannot do that; pyOpenSSL can, and returns the client's chain on every Python. Also, uvloop's TLS keeps a
buffer of 256 KiB for each connection.

A failed handshake sends its alert. While the protocol pauses reading, nothing is read from the socket. Sessions are not
resumed, so that each connection has the client's certificate. Plain HTTP is answered with an error, as by Go's server.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL, crypto

from kcm_cli.machinery import der
from kcm_cli.serving.fair_queue import FairQueue
from kcm_cli.serving.openssl_callbacks import request_certificates, speak_http_1

PEER_CERTIFICATES = "peer_certificates"
"""``get_extra_info``: the certificates (DER) that the client sent, its own first."""
MAX_CHAIN = 16
"""The maximum number of a client's certificates that are read."""
_CHUNK = 16 * 1024
_ENCRYPTED = _CHUNK + 1024
_FED = 8 * 1024
"""Bytes that are decrypted at once: OpenSSL's buffers grow with the input, and never shrink."""
HANDSHAKE_BYTES = 32 * 1024
"""What a client may send in its handshake. OpenSSL takes 100 KB of certificates, and parses 250 in 6 ms."""
_EARLY = 32 * 1024
"""Bytes that are read while a handshake waits for its turn, since the first request may follow at once."""
_AT_ONCE = 4 * 1024
"""What is decrypted without waiting for a turn."""
_CLIENT_HELLO = b"\x16"
_NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HTTP_STARTS = (b"GET", b"HEA", b"POS", b"PUT", b"OPT", b"DEL", b"PAT", b"CON", b"TRA")


def server_context(authorities: Iterable[x509.Certificate] | None) -> SSL.Context:
    """A context for HTTP/1.1, without a certificate yet.

    authorities: the issuers to name when a client certificate is requested, though one of any issuer is accepted;
    None: request none. Raises NoCallbacksError.
    """
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_options(SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_TICKET | SSL.OP_NO_COMPRESSION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    speak_http_1(context)
    if authorities is not None:
        request_certificates(context)
        for one in {der.subject(one.public_bytes(Encoding.DER)): one for one in authorities}.values():
            context.add_client_ca(one)
        context.set_verify_depth(0)  # no work for a chain that is not judged here
    return context


def show_certificate(context: SSL.Context, chain: Iterable[x509.Certificate]) -> None:
    """Show clients a certificate with its chain, the own one first. Raises SSL.Error."""
    own, *others = chain
    context.use_certificate(own)
    for one in others:
        context.add_extra_chain_cert(one)


def use_key(context: SSL.Context, key: PrivateKeyTypes) -> None:
    """Use the key of the certificate that is shown. Raises SSL.Error, TypeError for another one."""
    context.use_privatekey(key)  # type: ignore[arg-type]  # what it cannot use it refuses
    context.check_privatekey()


class TlsProtocol(asyncio.BufferedProtocol):
    """The protocol between a socket's transport and the inner protocol, which is made once the handshake is done.

    context: returns the TLS context for a connection to a local address. buffer: the read buffer, shared by all
    connections of a loop. (With one for each read of 256 KiB, the heap would not shrink after a flood.) queues: of the
    loop, for handshakes, and for decrypting what established connections receive. failed: called when a handshake
    fails.
    """

    def __init__(
        self,
        context: Callable[[str], SSL.Context],
        buffer: bytearray,
        queues: tuple[FairQueue, FairQueue],
        make: Callable[[], asyncio.Protocol],
        failed: Callable[[str], None],
    ) -> None:
        self._buffer = buffer
        self._handshakes, self._reads = queues
        self._context: Callable[[str], SSL.Context] | None = context
        self._tls = _NONE  # made with the first byte
        self._make = make
        self._failed = failed
        self._raw: asyncio.Transport | None = None
        self._inner: asyncio.Protocol | None = None
        self._paused = False
        self._stalled = False
        self._early = bytearray()
        self._shaken = 0
        self._reading = True
        self._ended = False
        self.address = self._local = ""
        self.continued = False

    @property
    def established(self) -> bool:
        """Whether the handshake is done."""
        return self._inner is not None

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._local = str((transport.get_extra_info("sockname") or ("",))[0])

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self._ended:
            self.received(bytes(memoryview(self._buffer)[:nbytes]))

    def received(self, data: bytes) -> None:
        """Handle received bytes."""
        if self._context is not None and not self._begin(self._context(self._local), data):
            return
        if self._inner is not None and not self._early and len(data) <= _AT_ONCE:
            self._feed(data)
            return
        self._early += data
        self._set_reading()
        (self._handshakes if self._inner is None else self._reads).add(self)

    def _feed(self, data: bytes) -> None:
        for start in range(0, len(data), _FED):
            self._tls.bio_write(data[start : start + _FED])
            self.read()

    def _begin(self, context: SSL.Context, data: bytes) -> bool:
        """Handle the first bytes. Returns whether they are TLS."""
        if data[:1] != _CLIENT_HELLO:
            self._refuse_plain(data)
            return False
        self._tls, self._context = SSL.Connection(context), None
        self._tls.set_accept_state()
        return True

    def _refuse_plain(self, data: bytes) -> None:
        self._ended = True
        if data.startswith(_HTTP_STARTS):
            self._raw_transport.write(_NOT_TLS)
        self._raw_transport.close()

    def eof_received(self) -> bool:
        if self._inner is None:
            self._failed("EOF")
        else:
            self._feed(bytes(self._early))
            self._inner.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._handshakes.discard(self)
        self._reads.discard(self)
        inner, self._inner = self._inner, None
        self._make, self._failed = _nothing, _ignored
        self._tls = _NONE  # the buffers go now, not when cycles are collected
        if inner is not None:
            inner.connection_lost(exc)

    def pause_writing(self) -> None:
        # OpenSSL answers some records itself (renegotiation): not those of a client that does not read.
        self._stalled = True
        self._set_reading()
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stalled = False
        self._set_reading()
        if self._inner is not None:
            self._inner.resume_writing()

    # the handshake

    def proceed(self) -> None:
        """Continue the handshake; when it is done, decrypt a part of what has been received."""
        if self._ended:
            return
        if self._inner is not None:
            self._proceed_reading()
            return
        part = bytes(self._early[: HANDSHAKE_BYTES - self._shaken])
        del self._early[: len(part)]
        self._shaken += len(part)
        if part:
            self._tls.bio_write(part)
        try:
            self._tls.do_handshake()
        except SSL.WantReadError:
            self._flush()
            self.continued = True
            if self._shaken < HANDSHAKE_BYTES:
                self._set_reading()
            else:
                self._end("the client's handshake is too long")
            return
        except SSL.Error as error:
            self._flush()  # the alert
            self._end(_why(error))
            return
        self._flush()
        try:
            certificates = self._certificates()
        except (ValueError, x509.InvalidVersion):  # what OpenSSL takes for one, and others do not
            self._end("the client's certificate cannot be parsed")
            return
        self._inner = self._make()
        self._inner.connection_made(TlsTransport(self, self._raw_transport, certificates))
        self._set_reading()
        self.read()
        self._read_on()

    def _proceed_reading(self) -> None:
        part = bytes(self._early[:_CHUNK])
        del self._early[: len(part)]
        self._feed(part)
        self._read_on()

    def _read_on(self) -> None:
        """Decrypt what has been received in the next turns, then read more."""
        if self._early and not self._paused:
            self._reads.add(self)
        self._set_reading()

    def _end(self, why: str) -> None:
        self._ended = True
        if self._inner is None:
            self._failed(why)
        self._raw_transport.close()

    # what the transport of the inner protocol does

    @property
    def _raw_transport(self) -> asyncio.Transport:
        assert self._raw is not None
        return self._raw

    def read(self) -> None:
        """Pass decrypted data on while the protocol reads."""
        while self._inner is not None and not self._paused and not self._ended:
            try:
                data = self._tls.recv(_CHUNK)
            except SSL.WantReadError:
                break
            except SSL.ZeroReturnError:
                self._inner.eof_received()
                self.close()
                break
            except SSL.Error as error:
                self._flush()
                self._end(_why(error))
                return
            self._inner.data_received(data)
        self._flush()

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        if self._ended or not data:
            return
        try:
            for start in range(0, len(data), _CHUNK):
                self._tls.sendall(data[start : start + _CHUNK])
                self._flush()
        except SSL.Error as error:
            self._end(_why(error))

    def close(self) -> None:
        """Send what was written, then close_notify."""
        if self._ended:
            return
        try:
            self._tls.shutdown()
        except SSL.Error:
            self._ended = True  # it is broken already
        self._flush()
        self._ended = True
        self._raw_transport.close()

    def pause(self, *, paused: bool) -> None:
        """Pause or resume reading."""
        if self._ended or self._paused == paused:
            return
        self._paused = paused
        self._set_reading()
        if not paused:
            asyncio.get_running_loop().call_soon(self.read)
            self._read_on()

    def _set_reading(self) -> None:
        """Read from the socket while the protocol takes data and the client takes answers."""
        held = len(self._early) > (_EARLY if self._inner is None else 0)
        reading = not (self._paused or self._stalled or held)
        if self._ended or self._raw is None or self._reading == reading or self._raw.is_closing():
            return
        self._reading = reading
        if reading:
            self._raw.resume_reading()
        else:
            self._raw.pause_reading()

    def _certificates(self) -> tuple[bytes, ...]:
        """The client's chain, its own certificate first: at most MAX_CHAIN."""
        own = self._tls.get_peer_certificate()
        if own is None:
            return ()
        chain = (_der(one) for one in islice(self._tls.get_peer_cert_chain() or (), MAX_CHAIN))
        return tuple(dict.fromkeys((_der(own), *chain)))[:MAX_CHAIN]

    def _flush(self) -> None:
        while True:
            try:
                data = self._tls.bio_read(_ENCRYPTED)
            except SSL.WantReadError:
                return
            if self._raw is not None and not self._raw.is_closing():
                self._raw.write(data)
            if len(data) < _ENCRYPTED:
                return


class TlsTransport(asyncio.Transport):
    """The inner protocol's transport."""

    def __init__(self, tls: TlsProtocol, raw: asyncio.Transport, certificates: tuple[bytes, ...]) -> None:
        super().__init__({"sslcontext": tls, PEER_CERTIFICATES: certificates})
        self._tls = tls
        self._raw = raw

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return super().get_extra_info(name) or self._raw.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tls.write(bytes(data))

    def close(self) -> None:
        self._tls.close()

    def abort(self) -> None:
        self._raw.abort()

    def is_closing(self) -> bool:
        return self._raw.is_closing()

    def pause_reading(self) -> None:
        self._tls.pause(paused=True)

    def resume_reading(self) -> None:
        self._tls.pause(paused=False)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)


_NONE = SSL.Connection(SSL.Context(SSL.TLS_SERVER_METHOD))


def _nothing() -> asyncio.Protocol:
    return asyncio.Protocol()


def _ignored(why: str) -> None:
    return None


def _der(certificate: crypto.X509) -> bytes:
    return certificate.to_cryptography().public_bytes(Encoding.DER)


def _why(error: SSL.Error) -> str:
    """``unsupported protocol``, from a list of (library, function, reason)."""
    reasons = [str(entry[-1]) for entry in error.args[0]] if error.args and isinstance(error.args[0], list) else []
    return reasons[0] if reasons else "the connection was closed"

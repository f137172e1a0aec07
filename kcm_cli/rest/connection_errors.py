"""Describes connection errors in one line."""

import os
import ssl

import httptools

from kcm_cli.rest.connection import Lost
from kcm_cli.rest.errors import one_line
from kcm_cli.rest.socks import ProxyRefused, ProxyUnreachable
from kcm_cli.rest.transport import ConnectionLost, TimedOut, TransportError, Unreachable, Untrusted

ASKING = (Lost, OSError, TimeoutError, httptools.HttpParserError, httptools.HttpParserUpgrade)
"""What a request on a connection may end with."""
DIALING = (*ASKING, ProxyRefused, ProxyUnreachable)
"""What the making of a connection may end with."""
_OTHER_CA = frozenset({7, 18, 19, 20, 21})
"""X509_V_ERR_…: another key than the issuer's, self-signed, or an issuer that is not known."""
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG"})
"""What OpenSSL says of an answer in plain HTTP."""


def unreachable(what: str, error: Exception, limit_s: float) -> Unreachable:
    """No connection could be made. what: the request. limit_s: how long it may have taken."""
    match error:
        case ssl.SSLCertVerificationError():
            hint = " (no CA that is given here has signed it)" if error.verify_code in _OTHER_CA else ""
            return Untrusted(f"{what}: the server's certificate is not trusted: {error.verify_message}{hint}")
        case ssl.SSLError() if error.reason in _NO_TLS:
            return Untrusted(f"{what}: TLS handshake failed: what answers speaks no TLS")
        case ssl.SSLError():
            return Untrusted(f"{what}: TLS handshake failed: {_reason(error)}")
        case TimeoutError():
            return Unreachable(f"{what}: no connection within {limit_s:.3g}s")
        case ProxyRefused():
            return Unreachable(f"{what}: the proxy refused: {error}")
        case ProxyUnreachable():
            return unreachable(f"{what}: proxy {error.url}", error.why, limit_s)
        case _:
            return Unreachable(f"{what}: {_reason(error)}")


def broken(what: str, error: Exception) -> TransportError:
    """A connection broke under a request."""
    match error:
        case TimeoutError():
            return TimedOut(f"{what}: no answer in time")
        case Lost(why=None, answered=False):
            return ConnectionLost(f"{what}: the server closed the connection")
        case _:
            return ConnectionLost(f"{what}: connection lost: {_reason(error)}")


def _reason(error: Exception) -> str:
    if isinstance(error, Lost) and error.why is not None:
        error = error.why
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, ConnectionError) and not str(error):
        return "the connection was closed"
    return one_line(error)

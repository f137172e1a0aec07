"""Functions that OpenSSL calls during a handshake, in memory that is never writable and executable.

pyOpenSSL makes such functions with cffi, which needs memory that is both. A hardened service may have none (systemd's
MemoryDenyWriteExecute, PR_SET_MDWE). ctypes makes them with libffi, whose trampolines since version 3.4 are parts of
the library's own file; older versions map a file twice. The functions are set on pyOpenSSL's contexts through
cryptography's bindings, as pyOpenSSL does it.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.bindings.openssl.binding import Binding
from OpenSSL import SSL

_lib, _ffi = Binding.lib, Binding.ffi
_HTTP_1 = b"http/1.1"
_HTTP_1_TEXT = ctypes.create_string_buffer(_HTTP_1)  # OpenSSL copies what it is given a pointer to
_SELECTED, _REFUSED = 0, 2  # SSL_TLSEXT_ERR_OK, SSL_TLSEXT_ERR_ALERT_FATAL
_HOST_NAME = 0  # TLSEXT_NAMETYPE_host_name

_Verify = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
_Select = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_ubyte),
    ctypes.c_void_p,
    ctypes.c_uint,
    ctypes.c_void_p,
)
_ServerName = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class NoCallbacksError(Exception):
    """This Python cannot make C functions under the limits of its process. The message says so in a sentence."""


def request_certificates(context: SSL.Context) -> None:
    """Request a client certificate, and accept any. Raises NoCallbacksError."""
    _lib.SSL_CTX_set_verify(_raw(context), SSL.VERIFY_PEER, _pointer(_made(_Verify, _accept), _lib.SSL_CTX_set_verify))


def speak_http_1(context: SSL.Context) -> None:
    """Choose HTTP/1.1 by ALPN; a client that offers others only is refused. Raises NoCallbacksError."""
    setter = _lib.SSL_CTX_set_alpn_select_cb
    setter(_raw(context), _pointer(_made(_Select, _select), setter), _ffi.NULL)


def switch_by_name(context: SSL.Context, find: Callable[[str], SSL.Context | None]) -> None:
    """Continue a handshake with the context that is found for the server name. Raises NoCallbacksError."""

    def switch(ssl: int, alert: int, argument: int) -> int:
        connection = _ffi.cast("SSL *", ssl)
        name = _lib.SSL_get_servername(connection, _HOST_NAME)
        found = find(_ffi.string(name).decode("ascii", "replace") if name else "")
        if found is not None:
            _lib.SSL_set_SSL_CTX(connection, _raw(found))
        return _SELECTED

    setter = _lib.SSL_CTX_set_tlsext_servername_callback
    # Kept as long as the context, which each connection keeps that began with it.
    context.__dict__["kcm_switch"] = function = _new(_ServerName, switch)
    setter(_raw(context), _pointer(function, setter))


def _accept(ok: int, store: int) -> int:
    return 1


def _select(ssl: int, out: Any, length: Any, offered: int, size: int, argument: int) -> int:
    names, at = ctypes.string_at(offered, size), 0
    while at < size:
        end = at + 1 + names[at]
        if names[at + 1 : end] == _HTTP_1:
            out[0], length[0] = ctypes.addressof(_HTTP_1_TEXT), len(_HTTP_1)
            return _SELECTED
        at = end
    return _REFUSED


_shared: dict[Callable[..., int], Any] = {}


def _made(kind: Any, function: Callable[..., int]) -> Any:
    """The C function of a Python function of this module. It is kept for ever."""
    if function not in _shared:
        _shared[function] = _new(kind, function)
    return _shared[function]


def _new(kind: Any, function: Callable[..., int]) -> Any:
    try:
        return kind(function)
    except MemoryError as error:
        raise NoCallbacksError(
            "TLS needs memory that is writable and executable with this Python's libffi: take one with libffi 3.4 or "
            "later, or run without MemoryDenyWriteExecute"
        ) from error


def _pointer(function: Any, setter: Any) -> Any:
    """The function as the argument that the setter takes."""
    type_ = next(one for one in _ffi.typeof(setter).args if one.kind == "function")
    return _ffi.cast(type_, ctypes.cast(function, ctypes.c_void_p).value)


def _raw(context: SSL.Context) -> Any:
    return context._context

"""TLS of clients: which servers are trusted, and which client certificate is sent.

A server's certificate is verified here only, and as Go does it. Every certificate of the bundle is a trust anchor, even
one that is not self-signed. Host names are matched against subject alternative names only. A bundle may contain other
text between its certificates, and certificates that cannot be parsed are skipped as long as one can be. Where OpenSSL
is stricter: docs/deviations.md. Of several certificates of one name, Go tries the key of each, and OpenSSL that of one:
``connected`` tries the others.

The files are checked for changes from time to time. After a change, new connections use a new context, and old ones are
closed after their current request.

upstream: staging/src/k8s.io/client-go/transport/{tls_cache,cert_rotation,ca_rotation}.go
"""

import functools
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace  # noqa: TID251  # of TLSFiles, whose key is not shown
from pathlib import Path
from typing import TypeVar

from kcm_cli.component.clock import Clock, LoopClock
from kcm_cli.machinery import der, pem
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.errors import TLSFilesError
from kcm_cli.rest.metrics import NO_SESSION_METRICS, SessionMetrics

T = TypeVar("T")
log = logging.getLogger(__name__)

FILES_PERIOD_S = 60.0
RETRY_S = 1.0
MOST_KEYS = 100
"""So many certificates of one name are tried, as by Go."""
NOT_SIGNED = frozenset({2, 7, 20, 21})
"""X509_V_ERR_…: no certificate is taken for the issuer, or one that has not signed."""
NOT_VALID = frozenset({9, 10})
"""X509_V_ERR_…: a certificate has ended, or has not begun: perhaps one of a CA that has another one for its key."""
WRONG_PURPOSE = 26
"""X509_V_ERR_INVALID_PURPOSE: by a usage of keys, or by Netscape's type of a certificate, which Go does not know."""
_FINAL = 2
"""What a failure says that is no matter of the CA; see ``_says``."""
_DER = 2
"""_ssl.ENCODING_DER"""


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """The certificates. ``ca_data``, ``cert_data`` and ``key_data`` are PEM and take precedence over the files.

    insecure: trust any server.
    """

    ca_file: Path | None = None
    ca_data: bytes = b""
    cert_file: Path | None = None
    cert_data: bytes = b""
    key_file: Path | None = None
    key_data: bytes = field(default=b"", repr=False)
    insecure: bool = False

    @property
    def anonymous(self) -> "TLSFiles":
        """The same trust without a client certificate."""
        return replace(self, cert_file=None, cert_data=b"", key_file=None, key_data=b"")

    @property
    def shows(self) -> bool:
        """Whether there is a client certificate."""
        return bool(self.cert_data) or self.cert_file is not None

    @property
    def watches_ca(self) -> bool:
        """Whether trust depends on a file."""
        return self.ca_file is not None and not self.ca_data and not self.insecure

    def stamps(self) -> tuple[tuple[int, ...] | None, ...]:
        """Values that change when a file changes, also to one of the same size and age. A file that is missing counts
        as changed."""
        return tuple(_stamp(path) for path in (self.ca_file, self.cert_file, self.key_file))


class ReloadedContext:
    """A TLS context that is replaced when a file has changed. The constructor raises TLSFilesError.

    certificate: returns the current client certificate and key (PEM), or None to use the files'.
    """

    def __init__(
        self,
        files: TLSFiles,
        clock: Clock,
        metrics: SessionMetrics = NO_SESSION_METRICS,
        certificate: Callable[[], tuple[bytes, bytes] | None] = lambda: None,
    ) -> None:
        self._files = files
        self._certificate = certificate
        self._shown: tuple[bytes, bytes] | None = None
        self._clock = clock
        self._metrics = metrics
        self._stamps = files.stamps()
        self._context = client_context(files)
        self._looked = clock.monotonic()
        self._again_at = float("-inf")

    def current(self) -> ssl.SSLContext:
        """The context for a new connection. If the changed files are invalid, the old context stays in use."""
        now = self._clock.monotonic()
        if now - self._looked >= FILES_PERIOD_S:
            self._looked = now
            self._look()
        shown = self._certificate()
        if shown != self._shown and now >= self._again_at:
            self._take_over(shown, now)
        return self._context

    def _take_over(self, shown: tuple[bytes, bytes] | None, now: float) -> None:
        """Use another client certificate. If the other files are invalid, it is tried again after RETRY_S."""
        try:
            self._context = client_context(self._all(shown))
        except TLSFilesError as error:
            log.warning("Cannot take over a client certificate", extra={"fields": {"err": str(error)}})
            self._again_at = now + RETRY_S
            return
        self._shown = shown

    def _all(self, shown: tuple[bytes, bytes] | None) -> TLSFiles:
        if shown is None:
            return self._files
        return replace(self._files.anonymous, cert_data=shown[0], key_data=shown[1])

    def _look(self) -> None:
        stamps = self._files.stamps()
        ca_changed = stamps[0] != self._stamps[0]
        try:
            if stamps != self._stamps:
                self._context = client_context(self._all(self._shown))
        except TLSFilesError as error:
            log.warning("Cannot reload certificates", extra={"fields": {"err": str(error)}})
            if error.ca:
                self._metrics.ca_looked_at("failure", error.ca)
            return
        self._stamps = stamps
        if self._files.watches_ca:
            self._metrics.ca_looked_at("success", "updated" if ca_changed else "unchanged")


class Resuming(ssl.SSLContext):
    """A context of clients whose connections resume the TLS session of an earlier one to the same name, if the server
    still knows it: then neither side signs and verifies again what it has verified.

    A session belongs to its context. New files make a new context, and so a whole handshake. ``resumes``: set it to
    False where a handshake has failed, since some servers offer sessions and do not take them. ``others``,
    ``judging``: see ``connected``. ``right``: that of them, or the context itself, by which a server was trusted last.
    """

    resumes: bool
    others: Callable[[], Sequence[Callable[[], "Resuming"]]]
    judging: Callable[[], "Resuming | None"]
    right: "Resuming"
    _newest: dict[object, ssl.SSLObject]
    _kept: dict[object, ssl.SSLSession]

    def __new__(cls, protocol: int) -> "Resuming":
        made = super().__new__(cls, protocol)
        made.resumes, made._newest, made._kept = True, {}, {}
        made.others, made.judging, made.right = tuple, lambda: None, made
        return made

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See ssl.SSLContext.wrap_bio."""
        if not self.resumes:
            return super().wrap_bio(incoming, outgoing, server_side, server_hostname)
        newest = self._newest.get(server_hostname)  # its tickets came after its handshake
        known = _session_of(newest) if newest is not None else None
        if known is not None and known.has_ticket:
            self._kept[server_hostname] = known
        session = session or self._kept.get(server_hostname)
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        self._newest[server_hostname] = made
        return made


class Judged(ssl.SSLObject):
    """A connection whose server OpenSSL does not verify: after the handshake, and before anything is sent, it is judged
    by Go's rules. They do not know Netscape's type of a certificate, and no usage of a key but the extended one: API
    servers are up whose certificates, made by a tutorial, are "for clients" by that type."""

    bundle: Sequence[bytes]

    def do_handshake(self) -> None:
        """Raises ssl.SSLCertVerificationError for a server that is not trusted."""
        super().do_handshake()
        from kcm_cli.rest.ca_bundles import server_fault  # OpenSSL once more, which few need

        fault = server_fault(self.bundle, _shown_by(self), self.server_hostname or "", LoopClock().now())
        if fault:
            error = ssl.SSLCertVerificationError(1, f"certificate verify failed: {fault}")
            error.verify_code, error.verify_message = min(NOT_SIGNED), fault
            raise error


def _shown_by(connection: ssl.SSLObject) -> list[bytes]:
    """The certificates (DER) that a server has shown."""
    if hasattr(connection, "get_unverified_chain"):  # of Python 3.13
        return list(connection.get_unverified_chain())
    shown = connection._sslobj.get_unverified_chain()  # type: ignore[attr-defined]  # since 3.10
    return [one.public_bytes(_DER) for one in shown or ()]


def _session_of(connection: ssl.SSLObject) -> ssl.SSLSession | None:
    """The session of a whole handshake that is done. (Its copy takes 0.1 ms: one that was resumed is known.)"""
    if connection.version() is None or connection.session_reused:
        return None
    try:
        return connection.session
    except ValueError:  # of OpenSSL: there is none that could be kept, before or without a handshake
        return None


async def connected(context: ssl.SSLContext, connect: Callable[[ssl.SSLContext], Awaitable[T]]) -> T:
    """What ``connect`` returns for a context. Raises what that raises.

    OpenSSL takes one trusted certificate for the issuer of another one: of those with the issuer's name, the first
    whose key identifier does not differ. Go tries them all. While a CA is replaced, its old and its new certificate may
    have one name and no key identifiers; and a CA that was made anew for its key may have another identifier. So if
    that one has not signed, or has expired, contexts with one certificate of each name are tried, without its key
    identifier. And if OpenSSL does not like what the certificate is for, it is judged here (``Judged``).
    """
    failure: ssl.SSLCertVerificationError | None = None
    turns, tried = _in_turn(context), list[ssl.SSLContext]()
    while (one := next(turns, None) or _judged_last(context, failure, tried)) is not None:
        tried.append(one)
        try:
            made = await connect(one)
        except ssl.SSLCertVerificationError as error:
            if failure is None or _says(error) > _says(failure):
                failure = error
            if error.verify_code == WRONG_PURPOSE or (one is context and _says(error) == _FINAL):
                turns = iter(())
        else:
            if isinstance(context, Resuming):
                context.right = one  # type: ignore[assignment]  # one of its own
            return made
    assert failure is not None
    try:
        raise failure
    finally:
        del failure  # it holds this frame


def _says(failure: ssl.SSLCertVerificationError) -> int:
    """How much a failure says about a server, whatever its CA: _FINAL if no other one makes a difference."""
    return 0 if failure.verify_code in NOT_SIGNED else 1 if failure.verify_code in NOT_VALID else _FINAL


def _judged_last(
    context: ssl.SSLContext, failure: ssl.SSLCertVerificationError | None, tried: Sequence[ssl.SSLContext]
) -> ssl.SSLContext | None:
    """The context whose servers are judged here, if that is why a connection failed, and it was not tried."""
    if not isinstance(context, Resuming) or failure is None or failure.verify_code != WRONG_PURPOSE:
        return None
    judging = context.judging()
    return None if judging in tried else judging


def _in_turn(context: ssl.SSLContext) -> Iterator[ssl.SSLContext]:
    """A context and the others for it; that which was right last comes first."""
    if not isinstance(context, Resuming):
        yield context
        return
    first = context.right
    yield first
    if first is not context:
        yield context
    for make in context.others():
        if (other := make()) is not first:
            yield other


def client_context(files: TLSFiles) -> ssl.SSLContext:
    """A context for connections to the API server. Raises TLSFilesError."""
    bundle = None if files.insecure else _bundle(files)
    show = _show(files) if files.shows else _nothing
    if files.insecure:
        context = _context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        show(context)
        return context
    try:
        return _trusting(bundle, show)
    except ValueError as error:
        text = f"{files.ca_file or 'certificate-authority-data'} holds no CA certificate"
        raise TLSFilesError(text, ca="ca_parse_error" if bundle else "empty") from error


def certified_name(name: str) -> str:
    """A host's name, or address, as a certificate has it: without the dot of the root, and without a zone.

    Raises socket.gaierror for what no certificate can have: ssl would raise one of several other errors.
    """
    bare = name.removesuffix(".").partition("%")[0]
    try:
        fit = bare.encode("idna") and "\0" not in bare
    except UnicodeError:  # a label is empty, or too long
        fit = False
    if not fit:
        raise socket.gaierror(socket.EAI_NONAME, f"{quote(name)} is no name of a host")
    return bare


def trusting(bundle: bytes) -> ssl.SSLContext:
    """A context that trusts a bundle (PEM), or the system's certificates where it is empty.

    Raises ValueError for a bundle without a certificate.
    """
    return _trusting(bundle or None, _nothing)


@functools.lru_cache(maxsize=200)
def bundle_fault(bundle: bytes) -> str:
    """Why a bundle (PEM) has no usable certificate, in client-go's words; "" for a usable bundle."""
    try:
        _add(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), bundle)
    except ValueError:
        if any(pem.certificates(bundle)):
            fault = "failed to parse certificate: x509: malformed certificate"
        elif bundle[max((block.end for block in pem.blocks(bundle)), default=0) :]:
            fault = "unable to parse bytes as PEM block"
        else:
            fault = "no valid certificate authority data seen"
        return f"unable to load root certificates: {fault}"
    return ""


def _context() -> Resuming:
    context = Resuming(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Newer Pythons ask for key identifiers that many cluster CAs do not have, and that Go does not ask for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    return context


def _bundle(files: TLSFiles) -> bytes | None:
    """The CAs to trust (PEM); None: those of the system. Raises TLSFilesError."""
    if not files.ca_data and files.ca_file is None:
        return None
    try:
        return files.ca_data or Path(files.ca_file or "").read_bytes()
    except OSError as error:
        raise TLSFilesError(f"cannot read CA file {files.ca_file}: {error.strerror}", ca="read_error") from error


def _trusting(bundle: bytes | None, show: Callable[[ssl.SSLContext], None]) -> Resuming:
    """A context that trusts a bundle, and the others for it. Raises ValueError for a bundle without a certificate."""
    context = _context()
    if bundle is None:
        context.load_default_certs()
    else:
        found = _add(context, bundle)
        context.others, context.judging = _others(found, show), functools.cache(lambda: _judging(found, show))
    show(context)
    return context


def _others(
    certificates: Sequence[bytes], show: Callable[[ssl.SSLContext], None]
) -> Callable[[], Sequence[Callable[[], Resuming]]]:
    """Functions that return contexts with one of these certificates of each name, made when they are first wanted."""

    def make(part: tuple[bytes, ...]) -> Resuming:
        context = _context()
        for one in part:
            with suppress(ssl.SSLError):
                context.load_verify_locations(cadata=one)
        show(context)
        return context

    return functools.cache(lambda: [functools.cache(functools.partial(make, part)) for part in apart(certificates)])


def _judging(certificates: Sequence[bytes], show: Callable[[ssl.SSLContext], None]) -> Resuming:
    """A context whose servers are judged here."""
    context = _context()
    context.check_hostname, context.verify_mode, context.resumes = False, ssl.CERT_NONE, False
    context.options |= ssl.OP_NO_RENEGOTIATION  # another handshake would not be judged
    context.sslobject_class = type("_Judged", (Judged,), {"bundle": tuple(certificates)})
    show(context)
    return context


def apart(certificates: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Trusted certificates (DER) without their key identifiers, in sets that have one of each name, so that each is in
    one of them. None if that would be what is given."""
    names: dict[bytes, dict[bytes, None]] = {}
    for one in certificates:
        with suppress(FormatError):
            names.setdefault(der.subject(one), {})[der.without_key_id(one)] = None
    lists = [list(ones)[:MOST_KEYS] for ones in names.values()]
    sets = [tuple(one[at % len(one)] for one in lists) for at in range(max(map(len, lists), default=0))]
    return [] if len(sets) == 1 and set(sets[0]) == set(certificates) else sets


def _add(context: ssl.SSLContext, bundle: bytes) -> list[bytes]:
    """Trust the certificates in a PEM text, and return them (DER). Raises ValueError where none can be parsed."""
    found: list[bytes] = []
    for certificate in pem.certificates(bundle):
        try:
            if len(der.split(certificate)) != 1:  # OpenSSL reads on, Go does not read it
                continue
            context.load_verify_locations(cadata=certificate)
        except (ssl.SSLError, ValueError):
            continue
        found.append(certificate)
    if not found:
        raise ValueError("there is no certificate")
    return found


def _show(files: TLSFiles) -> Callable[[ssl.SSLContext], None]:
    """A function that lets a context show the client certificate that the files have now. Both raise TLSFilesError."""
    pair = _content(files.cert_data, files.cert_file), _content(files.key_data, files.key_file)
    if None in pair:
        missing = "client-key" if pair[1] is None else "client-certificate"
        raise TLSFilesError(f"a client certificate needs its key: there is no {missing}")
    chain, key = pem.chain(pair[0] or b""), pem.private_key(pair[1] or b"")
    text = b"".join(pem.encode(pem.CERTIFICATE, one) for one in chain)
    text += pem.encode(der.key_form(key) or der.PKCS8, key) if key is not None else b""

    def show(context: ssl.SSLContext) -> None:
        with _as_file(text) as path:
            try:
                # An encrypted key must not make OpenSSL ask on the terminal.
                context.load_cert_chain(path, password=lambda: b"")
            except (ssl.SSLError, ValueError) as error:
                named = f"client certificate {files.cert_file or '(inline)'}, key {files.key_file or '(inline)'}"
                raise TLSFilesError(f"{named}: {_why(error)}") from error

    return show


def _nothing(context: ssl.SSLContext) -> None:
    """Shows no client certificate."""


def _content(data: bytes, path: Path | None) -> bytes | None:
    if data or path is None:
        return data or None
    try:
        return path.read_bytes()
    except OSError as error:
        raise TLSFilesError(f"cannot read client certificate or key {path}: {error.strerror}") from error


@contextmanager
def _as_file(text: bytes) -> Iterator[str]:
    """A file of this process in memory: OpenSSL reads certificates from files only. Without one, a temporary file."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with open(os.memfd_create("client-certificate"), "wb") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        yield file.name


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate"
    return "no usable certificate and key in PEM"


def _stamp(path: Path | None) -> tuple[int, ...] | None:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size

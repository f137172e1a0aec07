"""The server's side of TLS: certificates by server name, read again when they change, and the client CAs.

A connection starts on one base context and is moved, when the client has said which name it wants, to the context of
the certificate that fits. So certificates and client CAs change without touching open connections or the listener.

upstream: staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates
"""

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.server.ciphers import groups, openssl_ciphers, tls_version
from kcm_cli.manager.server.self_signed import Pair
from kcm_cli.manager.server.trust import Trust


@dataclass(frozen=True, slots=True)
class Source:
    """Where a certificate comes from: two files, or a pair made in memory. ``names``: the server names it is for."""

    cert_file: Path | None = None
    key_file: Path | None = None
    pair: Pair | None = None
    names: tuple[str, ...] = ()

    def read(self) -> Pair:
        """The certificate now. Raises RunError."""
        if self.pair is not None:
            return self.pair
        assert self.cert_file is not None and self.key_file is not None
        try:
            return Pair(self.cert_file.read_bytes(), self.key_file.read_bytes())
        except OSError as error:
            raise RunError(f"cannot read certificate or key {error.filename}: {error.strerror}") from error


class ServingTls:
    """The context for a listener. ``refresh`` looks whether files have changed."""

    def __init__(self, config: ServingConfig, sources: tuple[Source, ...], trust: Trust) -> None:
        """``sources``: the default certificate first. Raises RunError."""
        self._config = config
        self._sources = sources
        self._trust = trust
        self._pairs = tuple(source.read() for source in sources)
        self.context = make_context(config, self._pairs[0])
        self.context.sni_callback = self._switch
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._default = self.context
        self._build()
        trust.on_change(lambda state: self._build())

    def refresh(self) -> bool:
        """Read the files again; whether a change was taken over. Raises RunError for a bad one: the old ones stay."""
        pairs = tuple(source.read() for source in self._sources)
        if pairs == self._pairs:
            return False
        for pair in pairs:
            make_context(self._config, pair)
        self._pairs = pairs
        self._build()
        return True

    def _build(self) -> None:
        authorities = self._trust.state.pem
        self.context.verify_mode = ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE
        contexts = [make_context(self._config, pair, authorities) for pair in self._pairs]
        table: dict[str, ssl.SSLContext] = {}
        for source, pair, context in zip(self._sources, self._pairs, contexts, strict=True):
            for name in source.names or names_in(pair):
                table.setdefault(name.lower(), context)
        for source, context in zip(self._sources, contexts, strict=True):
            table.update({name.lower(): context for name in source.names})
        self._contexts, self._default = table, contexts[0]

    def _switch(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._for(name or "")

    def _for(self, name: str) -> ssl.SSLContext:
        name = name.lower()
        _, dot, parent = name.partition(".")
        return self._contexts.get(name) or self._contexts.get(f"*{dot}{parent}") or self._default


def names_in(pair: Pair) -> tuple[str, ...]:
    """The server names that a certificate is for."""
    certificate = x509.load_pem_x509_certificates(pair.cert)[0]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = alternatives.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return (*names, *(str(attribute.value) for attribute in common))


def make_context(config: ServingConfig, pair: Pair, authorities: bytes = b"") -> ssl.SSLContext:
    """A context that shows a certificate and trusts clients of these CAs. Raises RunError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = tls_version(config.min_version)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        _restrict(context, config)
        _show(context, pair)
        if authorities:
            context.load_verify_locations(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise RunError(_why(error)) from error
    return context


def _restrict(context: ssl.SSLContext, config: ServingConfig) -> None:
    if config.cipher_suites:
        ciphers = openssl_ciphers(config.cipher_suites)
        if ciphers:
            context.set_ciphers(":".join(ciphers))
        else:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
    curves = groups(config.curve_preferences)
    if len(curves) == 1:
        context.set_ecdh_curve(curves[0])


def _show(context: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.NamedTemporaryFile() as cert, tempfile.NamedTemporaryFile() as key:
        cert.write(pair.cert)
        key.write(pair.key)
        cert.flush()
        key.flush()
        # An encrypted key must not make OpenSSL ask on the terminal.
        context.load_cert_chain(cert.name, key.name, password=lambda: b"")


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return "the serving certificate and its key do not belong together"
    if reason == "NO_CIPHER_MATCH":
        return "tls-cipher-suites: none of these is left in this TLS library"
    return "the serving certificate or its key is not usable PEM"

"""TLS on the server's side: certificates by server name, reloaded when they change, and client certificates.

A connection starts with the context of the default certificate. When the client has sent the server name, it gets the
context of the certificate for that name: of a pair with the name, else of the first pair whose certificate is valid for
it, as crypto/tls chooses. Without a server name, that is a pair with the address that the client connected to as a
name. So certificates change without affecting open connections or the listener. A client certificate is requested if a
CA is trusted. Any certificate is accepted, and verified with each request.

upstream: staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates
"""

from pathlib import Path

import msgspec
from cryptography import x509
from OpenSSL import SSL

from kcm_cli.component import key_pairs
from kcm_cli.component.client_certificates import common_name
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.machinery.addresses import parse_ip, plain
from kcm_cli.machinery.names import dns1123_subdomain
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.server.ciphers import curve, openssl_ciphers, tls_version
from kcm_cli.manager.server.self_signed import Pair, PairInMemory
from kcm_cli.manager.server.trust import Trust
from kcm_cli.rest.ca_bundles import readable
from kcm_cli.serving.openssl_callbacks import NoCallbacksError, switch_by_name
from kcm_cli.serving.tls_transport import server_context, show_certificate, use_key

_DEFAULT_CIPHERS = "ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:!aNULL:!eNULL:!aDSS:!AESCCM"


class Source(msgspec.Struct, frozen=True):
    """The source of a certificate: two files, or a pair in memory. ``names``: its server names."""

    cert_file: Path | None = None
    key_file: Path | None = None
    pair: PairInMemory | None = None
    names: tuple[str, ...] = ()

    def read(self) -> Pair:
        """Read the certificate. Raises RunError."""
        if self.pair is not None:
            return self.pair.current()
        assert self.cert_file is not None and self.key_file is not None
        try:
            return Pair(self.cert_file.read_bytes(), self.key_file.read_bytes())
        except OSError as error:
            raise RunError(f"cannot read certificate or key {error.filename}: {error.strerror}") from error


class ServingTls:
    """The TLS contexts of a listener. ``refresh`` reloads changed files."""

    def __init__(self, config: ServingConfig, sources: tuple[Source, ...], trust: Trust) -> None:
        """``sources``: the default certificate first. Raises RunError."""
        self._config = config
        self._sources = sources
        self._trust = trust
        self._pairs = tuple(source.read() for source in sources)
        self._contexts: dict[str, SSL.Context] = {}
        self._by_host: list[tuple[frozenset[str], SSL.Context | None]] = []
        self._by_address: dict[str, SSL.Context] = {}
        self._default = self._build()
        trust.on_change(lambda state: self._rebuild())

    def context(self, address: str = "") -> SSL.Context:
        """The context of a new connection to this address of the host."""
        return self._by_address.get(str(plain(parse_ip(address))), self._default)

    def refresh(self) -> tuple[bool, list[str]]:
        """Read the files: (whether a certificate changed, errors). Of an invalid one the previous is kept."""
        pairs, problems = list(self._pairs), []
        for index, source in enumerate(self._sources):
            try:
                pair = source.read()
                if pair != pairs[index]:
                    make_context(self._config, pair)
                    pairs[index] = pair
            except RunError as error:
                problems.append(str(error))
        if (changed := tuple(pairs)) == self._pairs:
            return False, problems
        self._pairs = changed
        self._rebuild()
        return True, problems

    def _rebuild(self) -> None:
        self._default = self._build()

    def _build(self) -> SSL.Context:
        """Build the contexts by name; returns the default context. Raises RunError."""
        named = self._trust.state.authorities
        contexts = [make_context(self._config, pair, named) for pair in self._pairs]
        of_pairs = list(zip(self._sources, self._pairs, contexts, strict=True))[1:]
        given = [([name.lower() for name in source.names], context) for source, _, context in of_pairs]
        found = [(names_in(pair), context) for source, pair, context in of_pairs if not source.names]
        table: dict[str, SSL.Context] = {}
        for names, context in (*given, *found):
            for name in names:
                table.setdefault(name, context)
        shown = set(table.values())
        by_host = [
            (frozenset(name.lower() for name in _dns_names(pair)) - {"*"}, context)
            for pair, context in zip(self._pairs, (None, *contexts[1:]), strict=True)
            if context is None or context in shown
        ]
        if len(contexts) > 1:
            switch_by_name(contexts[0], self._for)
        pair_of = dict(zip(contexts, self._pairs, strict=True))
        by_address = {
            name: self._at_address(pair_of[context], contexts[0]) for name, context in table.items() if parse_ip(name)
        }
        self._contexts, self._by_host, self._by_address = table, by_host, by_address
        return contexts[0]

    def _at_address(self, pair: Pair, default: SSL.Context) -> SSL.Context:
        """A context that shows the pair to clients that send no server name. Raises RunError."""
        context = make_context(self._config, pair, self._trust.state.authorities)
        # it keeps the default one, whose own function OpenSSL may call in the same handshake (HelloRetryRequest)
        switch_by_name(context, lambda name: (self._for(name) or default) if name else None)
        return context

    def _for(self, name: str) -> SSL.Context | None:
        """The context for a server name, empty if the client sent none; None: the default one."""
        name = name.lower()
        if not name or name in self._contexts:
            return self._contexts.get(name)
        _, dot, parent = name.partition(".")
        wildcard = f"*{dot}{parent}"
        if wildcard in self._contexts:
            return self._contexts[wildcard]
        return next((context for names, context in self._by_host if not names.isdisjoint((name, wildcard))), None)


def names_in(pair: Pair) -> tuple[str, ...]:
    """The server names that a certificate without given names is found by: its DNS names, and its common name if that
    is one, or ``*``.

    upstream: named_certificates.go#getCertificateNames
    """
    common = common_name(key_pairs.chain(pair.cert)[0])
    host = parse_ip(common) is None and not dns1123_subdomain(common.removeprefix("*."))
    return (*_dns_names(pair), *([common] if host or common == "*" else []))


def _dns_names(pair: Pair) -> tuple[str, ...]:
    certificate = key_pairs.chain(pair.cert)[0]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(alternatives.get_values_for_type(x509.DNSName))


def make_context(
    config: ServingConfig, pair: Pair, authorities: tuple[x509.Certificate, ...] | None = None
) -> SSL.Context:
    """A context with this certificate. authorities: those of client certificates; None: request none. Raises
    RunError."""
    try:
        context = server_context(authorities)
    except NoCallbacksError as error:
        raise RunError(str(error)) from error
    _restrict(context, config)
    _show(context, pair)
    return context


def _restrict(context: SSL.Context, config: ServingConfig) -> None:
    lowest = tls_version(config.min_version)
    # Go takes RSA keys of 1,024 bits, and TLS 1.0 where it is asked for.
    level = "@SECLEVEL=1" if lowest >= SSL.TLS1_2_VERSION else "@SECLEVEL=0"
    ciphers = ":".join(openssl_ciphers(config.cipher_suites))
    if config.cipher_suites and not ciphers:
        lowest = SSL.TLS1_3_VERSION
    context.set_min_proto_version(lowest)
    try:
        context.set_cipher_list(f"{ciphers or _DEFAULT_CIPHERS}:{level}".encode())
    except SSL.Error as error:
        raise RunError("tls-cipher-suites: none of these is left in this TLS library") from error
    chosen = curve(config.curve_preferences)
    if chosen is not None:
        context.set_tmp_ecdh(chosen)


def _show(context: SSL.Context, pair: Pair) -> None:
    try:
        chain = key_pairs.chain(pair.cert)
        readable(chain[0])
        key = key_pairs.pair_key(pair.key)
        show_certificate(context, chain)
    except (ValueError, TypeError, SSL.Error) as error:
        raise RunError("the serving certificate or its key is not usable PEM") from error
    try:
        use_key(context, key)
    except (SSL.Error, TypeError) as error:
        raise RunError("the serving certificate and its key do not belong together") from error

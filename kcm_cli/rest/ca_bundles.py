"""Verification of certificates against trusted CAs, apart from a handshake.

Of clients: the TLS layer accepts any certificate. It authenticates requests if it has a chain to a trusted CA, by
OpenSSL's rules. Every certificate in a bundle is a trust anchor, as in Go. Of servers: see ``rest.tls.Judged``.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

import ipaddress
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from OpenSSL import crypto

from kcm_cli.component import key_pairs
from kcm_cli.component.client_certificates import common_name, is_for
from kcm_cli.machinery import der, pem
from kcm_cli.rest.tls import MOST_KEYS, NOT_SIGNED, NOT_VALID

_BROKEN_HASHES = (hashes.SHA1, hashes.MD5)
"""Go verifies no signature over these; OpenSSL does where no security level is asked for."""


class CaBundle(msgspec.Struct, frozen=True):
    """Trusted CA certificates. ``pem`` contains just these. ``named``: these by their names (DER): OpenSSL reads names
    that cryptography does not."""

    pem: bytes
    certificates: tuple[x509.Certificate, ...]
    named: dict[bytes, list[x509.Certificate]]

    def verify_error(
        self,
        certificate: x509.Certificate,
        between: tuple[x509.Certificate, ...],
        now: datetime,
        usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    ) -> str:
        """Why the certificate has no chain to the bundle; empty if it has one. ``between``: intermediate
        certificates. ``usage``: what it is shown for.

        Of several CAs of one name, OpenSSL takes one for the issuer, and one with another key identifier never (see
        ``rest.tls.connected``). If it finds no issuer, or one that has not signed or has expired, the right one is
        looked for.
        """
        signers: dict[bytes, x509.Certificate] = {}
        while True:
            why, unsigned = self._judged(certificate, between, now, signers, usage)
            name = b"" if unsigned is None else der.issuer(unsigned.public_bytes(Encoding.DER))
            if unsigned is None or name in signers or (signer := self._signer(unsigned, name, now)) is None:
                return why
            signers[name] = signer

    def _judged(
        self,
        certificate: x509.Certificate,
        between: tuple[x509.Certificate, ...],
        now: datetime,
        signers: Mapping[bytes, x509.Certificate],
        usage: x509.ObjectIdentifier,
    ) -> tuple[str, x509.Certificate | None]:
        """Why it has no chain, and the certificate whose issuer may be another one. signers: which CA to trust of those
        with a name."""
        store = _store(self._trusted(signers))
        store.set_time(now.astimezone(UTC).replace(tzinfo=None))
        sent = [crypto.X509.from_cryptography(one) for one in between]
        context = crypto.X509StoreContext(store, crypto.X509.from_cryptography(certificate), sent)
        try:
            chain = context.get_verified_chain()
        except crypto.X509StoreContextError as error:
            failed, (code, depth, *_) = error.certificate.to_cryptography(), error.errors
            if code in NOT_SIGNED:
                return str(error), failed
            return str(error), self._signed_by(failed, (certificate, *between)) if code in NOT_VALID and depth else None
        certificates = [one.to_cryptography() for one in chain]
        if not all(is_for(usage, one) for one in certificates):
            return "certificate specifies an incompatible key usage", None
        if usage == ExtendedKeyUsageOID.SERVER_AUTH and any(_is_weak(one) for one in certificates):
            return "a key is too short", None
        # The last one is an anchor: who signed it does not matter.
        if any(isinstance(one.signature_hash_algorithm, _BROKEN_HASHES) for one in certificates[:-1]):
            return "cannot verify signature: insecure algorithm", None
        return "", None

    def _trusted(self, signers: Mapping[bytes, x509.Certificate]) -> bytes:
        """The certificates to trust (PEM)."""
        if not signers:
            return self.pem
        others = (one for name, ones in self.named.items() if name not in signers for one in ones)
        chosen = (der.without_key_id(one.public_bytes(Encoding.DER)) for one in signers.values())
        known = b"".join(one.public_bytes(Encoding.PEM) for one in others)
        return known + b"".join(pem.encode(pem.CERTIFICATE, one) for one in chosen)

    def _signer(self, certificate: x509.Certificate, issuer: bytes, now: datetime) -> x509.Certificate | None:
        """The CA that has signed a certificate, of the first MOST_KEYS with its issuer's name: one that has not
        expired, if there is one."""
        named = sorted(self.named.get(issuer, [])[:MOST_KEYS], key=lambda one: one.not_valid_after_utc < now)
        return next((one for one in named if _has_signed(one, certificate)), None)

    def _signed_by(self, ca: x509.Certificate, shown: Sequence[x509.Certificate]) -> x509.Certificate | None:
        """Of the certificates that are shown, the one that this CA of the bundle has signed."""
        known = der.subject(ca.public_bytes(Encoding.DER)) in self.named
        return next((one for one in shown if _has_signed(ca, one)), None) if known else None


def _is_weak(certificate: x509.Certificate) -> bool:
    """Whether OpenSSL's security level would refuse it in a handshake."""
    key = certificate.public_key()
    return isinstance(key, rsa.RSAPublicKey) and key.key_size < 2048


def _has_signed(ca: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


@lru_cache(maxsize=8)
def _store(bundle: bytes) -> crypto.X509Store:
    store = crypto.X509Store()
    store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
    for one in key_pairs.certificates(bundle):
        store.add_cert(crypto.X509.from_cryptography(one))
    return store


@lru_cache(maxsize=8)
def parse_bundle(text: bytes) -> CaBundle:
    """The certificates in a PEM text. Raises ValueError if there is none, or an invalid one.

    It is remembered: files are read once a second, and some have hundreds of certificates.
    """
    certificates = tuple(dict.fromkeys(key_pairs.certificates(text)))
    for certificate in certificates:
        readable(certificate)
    bundle = _bundle_of(certificates)
    try:
        _store(bundle.pem)
    except crypto.Error as error:  # OpenSSL also reads the issuer's name
        raise ValueError(f"OpenSSL does not read a certificate: {error}") from error
    return bundle


def _bundle_of(certificates: tuple[x509.Certificate, ...]) -> CaBundle:
    named: dict[bytes, list[x509.Certificate]] = {}
    for certificate in certificates:
        named.setdefault(der.subject(certificate.public_bytes(Encoding.DER)), []).append(certificate)
    return CaBundle(b"".join(one.public_bytes(Encoding.PEM) for one in certificates), certificates, named)


def readable(certificate: x509.Certificate) -> None:
    """Parse the subject, the end and the extensions, which is otherwise done on first use. Raises ValueError."""
    try:
        _ = common_name(certificate), certificate.not_valid_after_utc, certificate.extensions
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from error


def server_fault(bundle: Sequence[bytes], chain: Sequence[bytes], name: str, now: datetime) -> str:
    """Why the chain (DER) that a server of this name shows is not trusted, by Go's rules; empty if it is. bundle: the
    CAs (DER). Those that cannot be read are left out. upstream: Go's crypto/x509/verify.go"""
    try:
        shown, *between = dict.fromkeys(x509.load_der_x509_certificate(one) for one in chain)
        for certificate in (shown, *between):
            readable(certificate)
        if not _is_named(shown, name):
            return f"certificate is not valid for {name}"
        return _anchors(tuple(bundle)).verify_error(shown, tuple(between), now, ExtendedKeyUsageOID.SERVER_AUTH)
    except (ValueError, UnsupportedAlgorithm, crypto.Error) as error:
        return f"a certificate cannot be read: {error}"


@lru_cache(maxsize=8)
def _anchors(bundle: tuple[bytes, ...]) -> CaBundle:
    found: dict[x509.Certificate, None] = {}
    for one in bundle:
        with suppress(ValueError):
            certificate = x509.load_der_x509_certificate(one)
            readable(certificate)
            found[certificate] = None
    return _bundle_of(tuple(found))


def _is_named(certificate: x509.Certificate, name: str) -> bool:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return any(_matches(one.lower(), name.lower()) for one in names.get_values_for_type(x509.DNSName))
    return address in names.get_values_for_type(x509.IPAddress)


def _matches(pattern: str, name: str) -> bool:
    """A star is the whole first label of a pattern that has at least two more."""
    first, _, rest = pattern.partition(".")
    if first == "*":
        label, _, domain = name.partition(".")
        return bool(label) and "." in rest and rest == domain
    return bool(name) and pattern == name


def remaining_s(certificate: x509.Certificate, now: datetime) -> float:
    """Seconds until the certificate expires; negative afterwards."""
    return (certificate.not_valid_after_utc - now).total_seconds()

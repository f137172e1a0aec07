"""Verification of client certificates against trusted CAs.

The TLS layer accepts any certificate. It authenticates requests if it has a chain to a trusted CA, by OpenSSL's rules.
Every certificate in a bundle is a trust anchor, as in Go.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import crypto

from kcm_cli.component import key_pairs
from kcm_cli.component.client_certificates import common_name, for_clients
from kcm_cli.machinery import der, pem
from kcm_cli.rest.tls import MOST_KEYS, NOT_SIGNED

_BROKEN_HASHES = (hashes.SHA1, hashes.MD5)
"""Go verifies no signature over these; OpenSSL does where no security level is asked for."""


class CaBundle(msgspec.Struct, frozen=True):
    """Trusted CA certificates. ``pem`` contains just these. ``named``: these by their names (DER): OpenSSL reads names
    that cryptography does not."""

    pem: bytes
    certificates: tuple[x509.Certificate, ...]
    named: dict[bytes, list[x509.Certificate]]

    def verify_error(self, certificate: x509.Certificate, between: tuple[x509.Certificate, ...], now: datetime) -> str:
        """Why the certificate has no chain to the bundle; empty if it has one. ``between``: intermediate
        certificates.

        Of several CAs of one name, OpenSSL takes one for the issuer, and one with another key identifier never (see
        ``rest.tls.connected``). If it finds no issuer, or one that has not signed, the one that has is looked for.
        """
        signers: dict[bytes, x509.Certificate] = {}
        while True:
            why, unsigned = self._judged(certificate, between, now, signers)
            name = b"" if unsigned is None else der.issuer(unsigned.public_bytes(Encoding.DER))
            if unsigned is None or name in signers or (signer := self._signer(unsigned, name)) is None:
                return why
            signers[name] = signer

    def _judged(
        self,
        certificate: x509.Certificate,
        between: tuple[x509.Certificate, ...],
        now: datetime,
        signers: Mapping[bytes, x509.Certificate],
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
            return str(error), error.certificate.to_cryptography() if error.errors[0] in NOT_SIGNED else None
        certificates = [one.to_cryptography() for one in chain]
        if not all(for_clients(one) for one in certificates):
            return "certificate specifies an incompatible key usage", None
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

    def _signer(self, certificate: x509.Certificate, issuer: bytes) -> x509.Certificate | None:
        """The CA that has signed a certificate, of the first MOST_KEYS with its issuer's name."""
        named = self.named.get(issuer, [])[:MOST_KEYS]
        return next((one for one in named if _has_signed(one, certificate)), None)


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
    named: dict[bytes, list[x509.Certificate]] = {}
    for certificate in certificates:
        readable(certificate)
        named.setdefault(der.subject(certificate.public_bytes(Encoding.DER)), []).append(certificate)
    bundle = CaBundle(b"".join(one.public_bytes(Encoding.PEM) for one in certificates), certificates, named)
    try:
        _store(bundle.pem)
    except crypto.Error as error:  # OpenSSL also reads the issuer's name
        raise ValueError(f"OpenSSL does not read a certificate: {error}") from error
    return bundle


def readable(certificate: x509.Certificate) -> None:
    """Parse the subject, the end and the extensions, which is otherwise done on first use. Raises ValueError."""
    try:
        _ = common_name(certificate), certificate.not_valid_after_utc, certificate.extensions
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from error


def remaining_s(certificate: x509.Certificate, now: datetime) -> float:
    """Seconds until the certificate expires; negative afterwards."""
    return (certificate.not_valid_after_utc - now).total_seconds()

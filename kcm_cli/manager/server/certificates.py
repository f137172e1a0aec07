"""Verification of client certificates against trusted CAs.

The TLS layer accepts any certificate. It authenticates requests if it has a chain to a trusted CA, by OpenSSL's rules.
Every certificate in a bundle is a trust anchor, as in Go.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import crypto

from kcm_cli.component import key_pairs
from kcm_cli.component.client_certificates import common_name, for_clients

_BROKEN_HASHES = (hashes.SHA1, hashes.MD5)
"""Go verifies no signature over these; OpenSSL does where no security level is asked for."""


class CaBundle(msgspec.Struct, frozen=True):
    """Trusted CA certificates. ``pem`` contains just these."""

    pem: bytes
    certificates: tuple[x509.Certificate, ...]

    def verify_error(self, certificate: x509.Certificate, between: tuple[x509.Certificate, ...], now: datetime) -> str:
        """Why the certificate has no chain to the bundle; empty if it has one. ``between``: intermediate
        certificates."""
        store = _store(self.pem)
        store.set_time(now.astimezone(UTC).replace(tzinfo=None))
        sent = [crypto.X509.from_cryptography(one) for one in between]
        context = crypto.X509StoreContext(store, crypto.X509.from_cryptography(certificate), sent)
        try:
            chain = context.get_verified_chain()
        except crypto.X509StoreContextError as error:
            return str(error)
        certificates = [one.to_cryptography() for one in chain]
        if not all(for_clients(one) for one in certificates):
            return "certificate specifies an incompatible key usage"
        # The last one is an anchor: who signed it does not matter.
        if any(isinstance(one.signature_hash_algorithm, _BROKEN_HASHES) for one in certificates[:-1]):
            return "cannot verify signature: insecure algorithm"
        return ""


@lru_cache(maxsize=8)
def _store(pem: bytes) -> crypto.X509Store:
    store = crypto.X509Store()
    store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
    for one in key_pairs.certificates(pem):
        store.add_cert(crypto.X509.from_cryptography(one))
    return store


def parse_bundle(pem: bytes) -> CaBundle:
    """The certificates in a PEM text. Raises ValueError if there is none, or an invalid one."""
    certificates = tuple(dict.fromkeys(key_pairs.certificates(pem)))
    for certificate in certificates:
        readable(certificate)
    bundle = CaBundle(b"".join(one.public_bytes(Encoding.PEM) for one in certificates), certificates)
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

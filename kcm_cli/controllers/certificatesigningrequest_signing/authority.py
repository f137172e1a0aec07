"""A signing CA in two files, which are read anew when they change."""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from kcm_cli.controllers.certificatesigningrequest_signing.certificate import certificate_for
from kcm_cli.machinery.errors import FormatError

log = logging.getLogger(__name__)

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_CURVES: Mapping[str, hashes.SHA384 | hashes.SHA512] = {"secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}


class Authority:
    """Signs with the CA that its files hold. Raises FormatError, OSError where they hold none at the start."""

    def __init__(self, certificate_file: str, key_file: str) -> None:
        self._files = Path(certificate_file), Path(key_file)
        self._content = self._read()
        self._pair = _pair(*self._content)

    def sign(
        self, request: x509.CertificateSigningRequest, usages: Collection[str], lifetime: timedelta, now: datetime
    ) -> bytes:
        """The certificate as PEM. Raises FormatError."""
        certificate, key = self._current()
        builder = certificate_for(request, certificate, usages, lifetime, now)
        return builder.sign(key, _hash(key)).public_bytes(serialization.Encoding.PEM)

    def _current(self) -> tuple[x509.Certificate, Key]:
        try:
            content = self._read()
            if content != self._content:
                self._pair, self._content = _pair(*content), content
        except (OSError, FormatError) as error:
            log.error("The signing CA cannot be read anew: the last one signs", extra={"fields": {"err": str(error)}})
        return self._pair

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = self._files
        return certificate.read_bytes(), key.read_bytes()


def _pair(certificate: bytes, key: bytes) -> tuple[x509.Certificate, Key]:
    try:
        certificates = x509.load_pem_x509_certificates(certificate)
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError) as error:
        raise FormatError(f"not a PEM certificate and an unencrypted PEM key: {error}") from error
    if len(certificates) != 1:
        raise FormatError(f"expected 1 certificate, found {len(certificates)}")
    if not isinstance(private, Key):
        raise FormatError("the key is of an unsupported kind: use RSA, ECDSA or Ed25519")
    if private.public_key() != certificates[0].public_key():
        raise FormatError("the key is not the certificate's")
    return certificates[0], private


def _hash(key: Key) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    known = _CURVES.get(key.curve.name) if isinstance(key, ec.EllipticCurvePrivateKey) else None
    return known or hashes.SHA256()

"""A serving certificate that is signed by a new CA and valid for a year, for a server without one.

upstream: staging/src/k8s.io/client-go/util/cert/cert.go#GenerateSelfSignedCertKey,
apiserver/pkg/server/options/serving.go
"""

import ipaddress
import os
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm_cli.manager.errors import RunError

HOST = "localhost"
_YEAR = timedelta(days=365)
_EARLY = timedelta(hours=1)


class Pair(msgspec.Struct, frozen=True):
    """A certificate with its chain and its key, both in PEM."""

    cert: bytes
    key: bytes


def make_pair(bind_address: str, now: datetime) -> Pair:
    """Create a certificate for localhost and the bind address."""
    stamp = int(now.timestamp())
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _name(f"{HOST}-ca@{stamp}")
    authority = (
        _builder(issuer, issuer, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        _builder(_name(f"{HOST}@{stamp}"), issuer, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternatives(bind_address)), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(leaf.public_bytes(pem) + authority.public_bytes(pem), secret)


def kept_pair(directory: str, name: str, bind_address: str, now: datetime) -> tuple[Path, Path]:
    """The certificate and key files in a directory, created if they do not exist. Raises RunError."""
    folder = Path(directory)
    cert_file, key_file = folder / f"{name}.crt", folder / f"{name}.key"
    if cert_file.exists() != key_file.exists():
        there, missing = (cert_file, key_file) if cert_file.exists() else (key_file, cert_file)
        raise RunError(f"cert-dir: {there} is there without {missing.name}: put both there, or remove it")
    if not cert_file.exists():
        pair = make_pair(bind_address, now)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write(key_file, pair.key, 0o600)
            _write(cert_file, pair.cert, 0o644)
        except OSError as error:
            raise RunError(f"cert-dir: cannot write {error.filename}: {error.strerror}") from error
    return cert_file, key_file


def _write(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + _YEAR)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(bind_address: str) -> list[x509.GeneralName]:
    address = ipaddress.ip_address(bind_address)
    loopback = ipaddress.ip_address("127.0.0.1")
    addresses = [loopback] if address.is_unspecified or address == loopback else [loopback, address]
    return [x509.DNSName(HOST), *(x509.IPAddress(one) for one in addresses)]

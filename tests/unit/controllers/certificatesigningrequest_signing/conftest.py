"""CAs for signing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.unit.planning.certificates import name

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


def write_ca(folder: Path, kind="p256", *, days=1000, key_id=True) -> tuple[str, str]:
    """The files of a new CA: certificate and key."""
    key, subject = KEYS[kind](), name("ca")
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW - timedelta(days=1000))
    builder = builder.not_valid_after(NOW + timedelta(days=days))
    if key_id:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    certificate = builder.sign(key, None if kind == "ed25519" else hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    paths = folder / "ca.crt", folder / "ca.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(private)
    return str(paths[0]), str(paths[1])


@pytest.fixture
def ca(tmp_path):
    return write_ca(tmp_path)

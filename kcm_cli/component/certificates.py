"""Issues certificates of CAs, servers and clients."""

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID


def name_of(common_name: str, *organizations: str) -> x509.Name:
    """The name of a subject or an issuer."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def issue(
    subject: x509.Name,
    key: EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: EllipticCurvePrivateKey,
    start: datetime,
    end: datetime,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    """A certificate for a key; if it is signed with the same key, that of a CA. ``extensions``: further ones."""
    ca, public, issuing = key is issuer_key, key.public_key(), issuer_key.public_key()
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number(), start, end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
    )
    identifier = (
        x509.SubjectKeyIdentifier.from_public_key(public)
        if ca
        else x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing)
    )
    for extension in (*extensions, identifier):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())

"""Certificate requests for lives, and what is the same in the certificates that are signed for them."""

import base64
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.differential.living import Doc

SUBJECTS = {
    "someone": ("someone", "some", ()),
    "kubelet": ("system:node:n", "system:nodes", ()),
    "named kubelet": ("system:node:n", "system:nodes", ("n.example.com",)),
    "server": ("s.example.com", "", ("s.example.com", "t.example.com")),
}
"""Common name, organization, names of hosts."""


@cache
def request(name: str) -> str:
    """A request of one of SUBJECTS, in base64."""
    common, organization, hosts = SUBJECTS[name]
    names = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] * bool(organization)
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, hosts))), critical=False)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode()


def certified(pem: bytes) -> Doc:
    """What a certificate says, but for keys and times."""
    certificate = x509.load_pem_x509_certificate(pem)
    lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    issuer = x509.AuthorityKeyIdentifier.oid
    said = {e.oid.dotted_string: f"{e.critical} {e.value if e.oid != issuer else ''}" for e in certificate.extensions}
    return {"subject": certificate.subject.rfc4514_string(), "minutes": lasts.total_seconds() // 60, "extensions": said}

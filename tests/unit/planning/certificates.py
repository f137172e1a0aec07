"""Certificate requests, in PEM and as stored objects."""

import base64

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.machinery import codec
from kcm_cli.planning import pkcs10


def name(common="ann", *organizations):
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, text) for text in organizations]
    return x509.Name([*parts, *([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])])


def request(subject=None, *names):
    """A request that is signed with a new key."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(name() if subject is None else subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def read(asked):
    """A request as the manager reads it."""
    return pkcs10.from_der(asked.public_bytes(serialization.Encoding.DER))


def in_base64(asked):
    return base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)).decode()


def stored(text="", certificate="", **conditions):
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}
    doc = {"metadata": {"name": "r"}, "spec": {"request": text}, "status": {**status, "certificate": certificate}}
    return CERTIFICATE_SIGNING_REQUESTS.decode(codec.encode(doc))

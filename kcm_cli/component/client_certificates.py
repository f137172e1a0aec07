"""What client certificates say of their users.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from kcm_cli.machinery import der, distinguished_names

UID = "1.3.6.1.4.1.57683.2"
"""The attribute of a subject that is the user's uid."""
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class Identity(NamedTuple):
    """The user in a certificate's subject."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: dict[str, tuple[str, ...]]


def identity_of(certificate: x509.Certificate, *, with_uid: bool = True) -> Identity | None:
    """The common name is the name, the organizations are the groups, the uid is the uid. None without a common name.

    Raises ValueError for an empty uid, several uids, or an invalid subject. Without ``with_uid`` the uid is not read.
    """
    subject = _subject(certificate)
    name = distinguished_names.common_name(subject)
    if not name:
        return None
    groups = tuple(subject.get(distinguished_names.ORGANIZATION, ()))
    return Identity(name, _uid(subject.get(UID, ())) if with_uid else "", groups, credential(certificate))


def _subject(certificate: x509.Certificate) -> Mapping[str, Sequence[str]]:
    return distinguished_names.values(der.subject(certificate.public_bytes(Encoding.DER)), only_text=True)


def _uid(uids: Sequence[str]) -> str:
    if len(uids) > 1:
        raise ValueError(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if "" in uids:
        raise ValueError("UID cannot be an empty string")
    return uids[0] if uids else ""


def credential(certificate: x509.Certificate) -> dict[str, tuple[str, ...]]:
    """The ``extra`` of a user with this certificate."""
    return {CREDENTIAL_ID: (f"X509SHA256={sha256(certificate.public_bytes(Encoding.DER)).hexdigest()}",)}


def for_clients(certificate: x509.Certificate) -> bool:
    """Whether the certificate may identify a client, by its extended key usages if it has any."""
    return is_for(ExtendedKeyUsageOID.CLIENT_AUTH, certificate)


def is_for(usage: x509.ObjectIdentifier, certificate: x509.Certificate) -> bool:
    """Whether a certificate has this extended key usage, or any, or none at all."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return bool({usage, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usages))


def common_name(certificate: x509.Certificate) -> str:
    """The subject's common name; empty if it has none. Of several the last one. Raises ValueError."""
    return distinguished_names.common_name(_subject(certificate))

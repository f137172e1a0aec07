"""Client certificates: which CAs are trusted for what, and whom a certificate names.

The TLS layer asks for a certificate and lets only those through that some trusted CA has signed (Python cannot let a
bad one through and judge it later, as Go does: such a client sees a failed handshake where Go answers 401). Here it
is only decided which of the bundles a certificate belongs to.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm_cli.manager.server.user import AuthenticationError, User

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class CaBundle:
    """Certificates that vouch for others. ``pem`` has them and nothing else."""

    pem: bytes
    certificates: tuple[x509.Certificate, ...]

    def signed(self, certificate: x509.Certificate, between: Iterable[x509.Certificate] = ()) -> bool:
        """Whether a chain of signatures leads from the bundle to the certificate."""
        candidates = (*self.certificates, *between)
        current = certificate
        for _ in range(_DEPTH):
            issuer = _issuer(current, candidates)
            if issuer is None:
                return False
            if issuer in self.certificates:
                return True
            current = issuer
        return False


def parse_bundle(pem: bytes) -> CaBundle:
    """The certificates in a PEM text. Raises ValueError if there is none, or one that is broken."""
    certificates = tuple(dict.fromkeys(x509.load_pem_x509_certificates(pem)))
    return CaBundle(b"".join(one.public_bytes(Encoding.PEM) for one in certificates), certificates)


def for_clients(certificate: x509.Certificate) -> bool:
    """Whether the certificate may identify a client: its extended key usages, if any, include that."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return bool({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usages))


def remaining_s(certificate: x509.Certificate, now: datetime) -> float:
    """Seconds for which the certificate is still good; negative after its end."""
    return (certificate.not_valid_after_utc - now).total_seconds()


def current(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether the certificate is good at this time."""
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def common_name(certificate: x509.Certificate) -> str:
    """The subject's common name, empty if it has none."""
    return next(iter(_names(certificate, NameOID.COMMON_NAME)), "")


def user_of(certificate: x509.Certificate, der: bytes, *, with_uid: bool = True) -> User | None:
    """Whom the subject names: the common name is the user, the organizations are its groups, a uid its uid.

    Raises AuthenticationError for a uid that is empty, and for several of them; without ``with_uid`` none is read.
    """
    name = common_name(certificate)
    if not name:
        return None
    uid = _uid(certificate) if with_uid else ""
    credential = f"X509SHA256={sha256(der).hexdigest()}"
    groups = tuple(_names(certificate, NameOID.ORGANIZATION_NAME))
    return User(name, uid, groups, {CREDENTIAL_ID: (credential,)})


def _uid(certificate: x509.Certificate) -> str:
    uids = _names(certificate, _UID)
    if len(uids) > 1:
        raise AuthenticationError(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        raise AuthenticationError("UID cannot be an empty string")
    return uids[0] if uids else ""


def _names(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def _issuer(certificate: x509.Certificate, candidates: Iterable[x509.Certificate]) -> x509.Certificate | None:
    for candidate in candidates:
        try:
            certificate.verify_directly_issued_by(candidate)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return candidate
    return None

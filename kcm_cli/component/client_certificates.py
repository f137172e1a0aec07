"""What client certificates say of their users.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm_cli.planning.certificate_requests import values_of

UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
"""The attribute of a subject that is the user's uid."""


def for_clients(certificate: x509.Certificate) -> bool:
    """Whether the certificate may identify a client, by its extended key usages if it has any."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return bool({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usages))


def common_name(certificate: x509.Certificate) -> str:
    """The subject's common name; empty if it has none. Of several the last one, as in Go's ``pkix.Name``."""
    return next(reversed(values_of(certificate.subject, NameOID.COMMON_NAME)), "")

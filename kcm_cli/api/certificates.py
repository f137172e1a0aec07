"""Views of the certificates group."""

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class CertificateSigningRequestSpec(View, frozen=True, gc=False):
    """``request`` is a PEM text in base64; the user is who asked."""

    request: str = ""
    signer_name: str = ""
    expiration_seconds: int | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] | None = None


class CertificateSigningRequestStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()
    certificate: str = ""


class CertificateSigningRequest(Object, frozen=True, gc=False, kw_only=True):
    spec: CertificateSigningRequestSpec = msgspec.field(default_factory=CertificateSigningRequestSpec)
    status: CertificateSigningRequestStatus = msgspec.field(default_factory=CertificateSigningRequestStatus)


CERTIFICATE_SIGNING_REQUESTS = Resource(
    GVR("certificates.k8s.io", "v1", "certificatesigningrequests"),
    "CertificateSigningRequest",
    CertificateSigningRequest,
    namespaced=False,
    keeps_raw=True,
)

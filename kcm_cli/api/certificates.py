"""Views of the certificates group."""

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class CertificateSigningRequestSpec(View, frozen=True, gc=False):
    """``request``: PEM in base64. ``username``, ``uid``, ``groups``, ``extra``: the requester."""

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


class PodCertificateRequest(Object, frozen=True, gc=False, kw_only=True):
    """Metadata only, since its age is all that matters."""


class ClusterTrustBundleSpec(View, frozen=True, gc=False):
    trust_bundle: str = ""


class ClusterTrustBundle(Object, frozen=True, gc=False, kw_only=True):
    spec: ClusterTrustBundleSpec = ClusterTrustBundleSpec()


def _trust_bundles(version: str) -> Resource[ClusterTrustBundle]:
    gvr = GVR("certificates.k8s.io", version, "clustertrustbundles")
    return Resource(gvr, "ClusterTrustBundle", ClusterTrustBundle, namespaced=False, keeps_raw=True)


POD_CERTIFICATE_REQUESTS = Resource(
    GVR("certificates.k8s.io", "v1beta1", "podcertificaterequests"), "PodCertificateRequest", PodCertificateRequest
)
CLUSTER_TRUST_BUNDLES = _trust_bundles("v1beta1")
CLUSTER_TRUST_BUNDLES_ALPHA = _trust_bundles("v1alpha1")

"""Which requests are approved by themselves, if who asks may do so.

upstream: pkg/controller/certificates/approver/sarapprove.go
"""

from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from kcm_cli.api.certificates import CertificateSigningRequest
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.certificate_requests import KUBELET_CLIENT, problem


@dataclass(frozen=True, slots=True)
class Way:
    """A permission, as a subresource of requests, and what the approval says."""

    permission: str
    message: str


SELF = Way("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
NODE = Way("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def is_open(request: CertificateSigningRequest) -> bool:
    """Neither approved, nor denied, nor signed."""
    decided = any(condition.type in ("Approved", "Denied") for condition in request.status.conditions)
    return not decided and not request.status.certificate


def ways(request: CertificateSigningRequest, asked: x509.CertificateSigningRequest) -> tuple[Way, ...]:
    """How a request may be approved: only a kubelet's for a client certificate, its own one in two ways."""
    spec = request.spec
    if spec.signer_name != KUBELET_CLIENT or problem(KUBELET_CLIENT, asked, spec.usages):
        return ()
    names = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return (SELF, NODE) if names[-1].value == spec.username else (NODE,)


def review(request: CertificateSigningRequest, way: Way) -> Doc:
    """The question whether who asked may create requests of this kind."""
    spec = request.spec
    attributes = {
        "group": "certificates.k8s.io",
        "resource": "certificatesigningrequests",
        "verb": "create",
        "subresource": way.permission,
        "version": "*",
    }
    user = {"user": spec.username, "uid": spec.uid, "groups": list(spec.groups)}
    extra = {key: list(values) for key, values in (spec.extra or {}).items()}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {**user, "extra": extra, "resourceAttributes": attributes},
    }


def approval(way: Way) -> Doc:
    """The condition."""
    return {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": way.message}

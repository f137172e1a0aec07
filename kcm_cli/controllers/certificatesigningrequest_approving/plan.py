"""Decides which requests are approved automatically, and which permission the requester needs.

upstream: pkg/controller/certificates/approver/sarapprove.go
"""

import msgspec

from kcm_cli.api.certificates import CertificateSigningRequest
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.certificate_requests import KUBELET_CLIENT, parse, problem
from kcm_cli.planning.pkcs10 import CertificateRequest


class Permission(msgspec.Struct, frozen=True):
    """A subresource that the requester must be allowed to create, and the message of the approval."""

    subresource: str
    message: str


SELF = Permission("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
NODE = Permission("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def plan(request: CertificateSigningRequest) -> tuple[Permission, ...]:
    """The permissions of which one suffices to approve a request. Empty for a request that is decided, or that is not
    from a kubelet. Raises FormatError for an invalid request."""
    return permissions(request, parse(request)) if is_open(request) else ()


def is_open(request: CertificateSigningRequest) -> bool:
    """Whether a request is neither approved, denied nor signed."""
    decided = any(condition.type in ("Approved", "Denied") for condition in request.status.conditions)
    return not decided and not request.status.certificate


def permissions(request: CertificateSigningRequest, asked: CertificateRequest) -> tuple[Permission, ...]:
    """The permissions for a kubelet's client certificate; two if the kubelet requests its own, none for other
    requests."""
    spec = request.spec
    if spec.signer_name != KUBELET_CLIENT or problem(KUBELET_CLIENT, asked, spec.usages):
        return ()
    return (SELF, NODE) if asked.common_name == spec.username else (NODE,)


def review(request: CertificateSigningRequest, permission: Permission) -> Doc:
    """The SubjectAccessReview that asks for the permission."""
    spec = request.spec
    attributes = {
        "group": "certificates.k8s.io",
        "resource": "certificatesigningrequests",
        "verb": "create",
        "subresource": permission.subresource,
        "version": "*",
    }
    user = {"user": spec.username, "uid": spec.uid, "groups": list(spec.groups)}
    extra = {key: list(values) for key, values in (spec.extra or {}).items()}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {**user, "extra": extra, "resourceAttributes": attributes},
    }


def approval(permission: Permission) -> Doc:
    """The condition Approved."""
    return {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": permission.message}

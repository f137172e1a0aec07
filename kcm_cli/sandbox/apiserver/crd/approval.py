"""The approval of definitions in protected groups (``*.k8s.io``, ``*.kubernetes.io``), by an annotation.

upstream: apiextensions-apiserver pkg/apihelpers/helpers.go#GetAPIApprovalState
"""

from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.urls import Url, UrlError, parse_request
from kcm_cli.sandbox.apiserver.crd.definition import APPROVED

_ENHANCEMENT = "see https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED = ("k8s.io", "kubernetes.io")


def is_protected(group: str) -> bool:
    """Whether a group is protected."""
    return group in _PROTECTED or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(annotation: str) -> tuple[str, str, str]:
    """Status, reason and message of KubernetesAPIApprovalPolicyConformant, by the annotation's value."""
    said = f"protected groups must have approval annotation {quote(APPROVED)}"
    if not annotation:
        return "False", "MissingAnnotation", f"{said}, {_ENHANCEMENT}"
    if annotation.startswith("unapproved"):
        return "False", "UnapprovedAnnotation", f"not approved: {quote(annotation)}"
    try:
        url = parse_request(annotation)
    except UrlError:
        url = Url()
    if url.scheme and url.host:
        return "True", "ApprovedAnnotation", f"approved in {annotation}"
    how = 'with either a URL or a reason starting with "unapproved"'
    return "False", "InvalidAnnotation", f"{said} {how}, {_ENHANCEMENT}"

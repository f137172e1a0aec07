"""The rules of Kubernetes' own signers for CertificateSigningRequests.

upstream: pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer/signer.go
"""

from collections.abc import Collection

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS, CertificateSigningRequest
from kcm_cli.machinery import codec
from kcm_cli.machinery.documents import nested_list
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import from_base64
from kcm_cli.planning import pkcs10
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.planning.pkcs10 import CertificateRequest

KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT = "kubernetes.io/kube-apiserver-client"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"

_SIGNATURE, _ENCIPHERMENT = "digital signature", "key encipherment"
_CLIENT_AUTH, _SERVER_AUTH = "client auth", "server auth"
_NODES = ("system:nodes",)


def parse(request: CertificateSigningRequest) -> CertificateRequest:
    """The request in the spec, as the API server reads it. Raises FormatError; UnsupportedError, which is one, for a
    request that is not read here although the API server does."""
    try:
        return pkcs10.from_pem(from_base64(request.spec.request))
    except FormatError as error:
        raise type(error)(f"unable to parse csr {request.name!r}: {error}") from error
    except ValueError as error:
        raise FormatError(f"unable to parse csr {request.name!r}: {error}") from error


def problem(signer: str, request: CertificateRequest, usages: Collection[str]) -> str:
    """Why the signer refuses a request; empty if it does not."""
    if signer == CLIENT:
        return _client_problem(usages)
    if signer == KUBELET_SERVING:
        return _serving_problem(request) or _usage_problem(usages, _SERVER_AUTH) or _name_problem(request)
    if signer == KUBELET_CLIENT:
        return _kubelet_problem(request) or _name_problem(request) or _usage_problem(usages, _CLIENT_AUTH)
    return ""


def with_condition(request: CertificateSigningRequest, condition: codec.Doc, subresource: str) -> Update:
    """The request's conditions with one added. Raises ValueError for a view without its raw document."""
    if request.raw is None:
        raise ValueError(f"request {request.name} keeps no raw document")
    known = nested_list(codec.decode_paths(request.raw, [("status", "conditions")]), "status", "conditions")
    changes: dict[Path, Value] = {("status", "conditions"): [*known, condition]}
    reason = f"condition {condition.get('type')}"
    return Update(CERTIFICATE_SIGNING_REQUESTS, request, changes, subresource, reason=reason)


def _client_problem(usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT_AUTH):
            return f"invalid usage for client certificate: {usage}"
    return "" if _CLIENT_AUTH in usages else f"missing required usage for client certificate: {_CLIENT_AUTH}"


def _serving_problem(request: CertificateRequest) -> str:
    if request.organizations != _NODES:
        return "subject organization is not system:nodes"
    if not request.dns_names and not request.ips:
        return "DNS or IP subjectAltName is required"
    return _not_allowed(("Email", request.emails), ("URI", request.uris))


def _kubelet_problem(request: CertificateRequest) -> str:
    if request.organizations != _NODES:
        return "subject organization is not system:nodes"
    some = ("DNS", request.dns_names), ("Email", request.emails), ("IP", request.ips), ("URI", request.uris)
    return _not_allowed(*some)


def _not_allowed(*names: tuple[str, Collection[object]]) -> str:
    return next((f"{kind} subjectAltNames are not allowed" for kind, found in names if found), "")


def _name_problem(request: CertificateRequest) -> str:
    node = request.common_name.startswith("system:node:")
    return "" if node else "subject common name does not begin with system:node:"


def _usage_problem(usages: Collection[str], auth: str) -> str:
    if set(usages) in ({_SIGNATURE, auth}, {_SIGNATURE, _ENCIPHERMENT, auth}):
        return ""
    return f"usages did not match [{' '.join(sorted((_SIGNATURE, _ENCIPHERMENT, auth)))}]"

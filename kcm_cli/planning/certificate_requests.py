"""The rules of Kubernetes' own signers for CertificateSigningRequests.

upstream: pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer/signer.go
"""

import base64
from collections.abc import Collection

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS, CertificateSigningRequest
from kcm_cli.machinery import codec
from kcm_cli.machinery.documents import nested_list
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning.actions import Path, Update, Value

KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT = "kubernetes.io/kube-apiserver-client"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"

_SIGNATURE, _ENCIPHERMENT = "digital signature", "key encipherment"
_CLIENT_AUTH, _SERVER_AUTH = "client auth", "server auth"


def parse(request: CertificateSigningRequest) -> x509.CertificateSigningRequest:
    """The PKCS #10 request in the spec. Raises FormatError."""
    try:
        parsed = x509.load_pem_x509_csr(base64.b64decode(request.spec.request))
        signed = parsed.is_signature_valid
        names_of(parsed)  # raises for an unreadable one
    except (ValueError, UnsupportedAlgorithm) as error:
        raise FormatError(f"unable to parse csr {request.name!r}: {error}") from error
    if not signed:
        raise FormatError(f"csr {request.name!r} is not signed with its own key")
    return parsed


def problem(signer: str, request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    """Why the signer refuses a request; empty if it does not."""
    if signer == CLIENT:
        return _client_problem(usages)
    if signer == KUBELET_SERVING:
        return _serving_problem(request) or _usage_problem(usages, _SERVER_AUTH) or _name_problem(request)
    if signer == KUBELET_CLIENT:
        return _kubelet_problem(request) or _name_problem(request) or _usage_problem(usages, _CLIENT_AUTH)
    return ""


def names_of(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """The alternative names of the subject."""
    try:
        return list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def with_condition(request: CertificateSigningRequest, condition: codec.Doc, subresource: str) -> Update:
    """The request's conditions with one added. Raises ValueError for a view without its raw document."""
    if request.raw is None:
        raise ValueError(f"request {request.name} keeps no raw document")
    known = nested_list(codec.decode_doc(request.raw), "status", "conditions")
    changes: dict[Path, Value] = {("status", "conditions"): [*known, condition]}
    return Update(CERTIFICATE_SIGNING_REQUESTS, request, changes, subresource)


def _client_problem(usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT_AUTH):
            return f"invalid usage for client certificate: {usage}"
    return "" if _CLIENT_AUTH in usages else f"missing required usage for client certificate: {_CLIENT_AUTH}"


def _serving_problem(request: x509.CertificateSigningRequest) -> str:
    names = names_of(request)
    if values_of(request.subject, NameOID.ORGANIZATION_NAME) != ["system:nodes"]:
        return "subject organization is not system:nodes"
    if not any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
        return "DNS or IP subjectAltName is required"
    return _not_allowed(names, (("Email", x509.RFC822Name), ("URI", x509.UniformResourceIdentifier)))


def _kubelet_problem(request: x509.CertificateSigningRequest) -> str:
    if values_of(request.subject, NameOID.ORGANIZATION_NAME) != ["system:nodes"]:
        return "subject organization is not system:nodes"
    kinds = (
        ("DNS", x509.DNSName),
        ("Email", x509.RFC822Name),
        ("IP", x509.IPAddress),
        ("URI", x509.UniformResourceIdentifier),
    )
    return _not_allowed(names_of(request), kinds)


def _not_allowed(names: list[x509.GeneralName], kinds: tuple[tuple[str, type[x509.GeneralName]], ...]) -> str:
    for what, kind in kinds:
        if any(isinstance(name, kind) for name in names):
            return f"{what} subjectAltNames are not allowed"
    return ""


def _name_problem(request: x509.CertificateSigningRequest) -> str:
    names = values_of(request.subject, NameOID.COMMON_NAME)
    node = bool(names) and names[-1].startswith("system:node:")
    return "" if node else "subject common name does not begin with system:node:"


def _usage_problem(usages: Collection[str], auth: str) -> str:
    if set(usages) in ({_SIGNATURE, auth}, {_SIGNATURE, _ENCIPHERMENT, auth}):
        return ""
    return f"usages did not match [{' '.join(sorted((_SIGNATURE, _ENCIPHERMENT, auth)))}]"


def values_of(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    """The values of one attribute of a subject."""
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(oid)]

"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction.

upstream: plugin/pkg/admission/certificates, pkg/certauthorization
"""

from kcm_cli.api.well_known import MASTERS
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.machinery.quoting import quote
from kcm_cli.planning import pkcs10
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.types import Attributes, RequestInfo, Tree

_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


class CertificateRequests:
    """See the module."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def validate_approval(self, attrs: Attributes) -> None:
        """The user needs the verb approve for the signer. Raises ApiError 403."""
        signer = _signer(attrs.old)
        if not self._may(attrs, "approve", signer):
            raise denied(attrs, f"user not permitted to approve requests with signerName {quote(signer)}")

    def validate_signing(self, attrs: Attributes) -> None:
        """The user who sets the certificate needs the verb sign for the signer. Raises ApiError 403."""
        old, new = _status(attrs.old), _status(attrs.obj)
        unchanged = all(old.get(key) == new.get(key) for key in ("certificate", "conditions"))
        signer = _signer(attrs.old)
        if not unchanged and not self._may(attrs, "sign", signer):
            raise denied(attrs, f"user not permitted to sign requests with signerName {quote(signer)}")

    def validate_subject(self, attrs: Attributes) -> None:
        """Client certificates of the group system:masters are forbidden. Raises ApiError 403."""
        request: Tree = attrs.obj or {}
        if _signer(request) != _CLIENT_SIGNER:
            return
        try:
            parsed = pkcs10.from_pem(decoded_base64(request["spec"].get("request", "")))
        except FormatError as error:
            raise denied(attrs, f"failed to parse CSR: {error}") from None
        if MASTERS in parsed.organizations:
            raise denied(attrs, f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed")

    def _may(self, attrs: Attributes, verb: str, signer: str) -> bool:
        domain = signer.split("/", 1)[0]
        return any(
            self._authorizer.authorize(
                attrs.user,
                RequestInfo(verb, "", True, "certificates.k8s.io", "*", "signers", name=name),
            ).allowed
            for name in (signer, f"{domain}/*")
        )


def _signer(doc: Tree | None) -> str:
    return ((doc or {}).get("spec") or {}).get("signerName") or ""


def _status(doc: Tree | None) -> Tree:
    return (doc or {}).get("status") or {}

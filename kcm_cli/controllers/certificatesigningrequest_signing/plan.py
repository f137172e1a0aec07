"""Decides which requests are signed, and the lifetime of their certificates.

upstream: pkg/controller/certificates/signer/signer.go
"""

import base64
from datetime import datetime, timedelta

import msgspec

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS, CertificateSigningRequest
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.der import UnsupportedError
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Path, Update, Value
from kcm_cli.planning.certificate_requests import parse, problem, with_condition
from kcm_cli.planning.pkcs10 import CertificateRequest

SHORTEST_S = 600.0


class Signing(msgspec.Struct, frozen=True):
    """A request to sign, and the lifetime of its certificate."""

    request: CertificateRequest
    lifetime: timedelta


def plan(request: CertificateSigningRequest, longest_s: float, now: datetime) -> Signing | Update | None:
    """Sign the request, or reject it with the condition Failed; None if it is not to be signed.

    A request that kcm cannot read although the API server does is rejected too: it would be retried for ever. Raises
    FormatError for an invalid request.
    """
    if not is_due(request):
        return None
    spec = request.spec
    try:
        asked = parse(request)
    except UnsupportedError as error:
        return _rejected(request, str(error), now)
    if refusal := problem(spec.signer_name, asked, spec.usages):
        return _rejected(request, refusal, now)
    return Signing(asked, timedelta(seconds=duration_s(spec.expiration_seconds, longest_s)))


def _rejected(request: CertificateSigningRequest, refusal: str, now: datetime) -> Update:
    failed: Doc = {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": refusal,
        "lastUpdateTime": format_time(now),
    }
    return with_condition(request, failed, "status")


def signed(request: CertificateSigningRequest, pem: bytes) -> Update:
    """An update with the certificate."""
    changes: dict[Path, Value] = {("status", "certificate"): base64.b64encode(pem).decode()}
    return Update(CERTIFICATE_SIGNING_REQUESTS, request, changes, "status", reason="signed")


def is_due(request: CertificateSigningRequest) -> bool:
    """Whether a request is approved, not denied, and neither signed nor failed."""
    types = {condition.type for condition in request.status.conditions}
    failed = any(c.type == "Failed" and c.status in ("", "True") for c in request.status.conditions)
    return "Approved" in types and "Denied" not in types and not failed and not request.status.certificate


def duration_s(asked_s: int | None, longest_s: float) -> float:
    """The lifetime in seconds: the requested one, within 10 min and the longest one."""
    return longest_s if asked_s is None or asked_s > longest_s else max(float(asked_s), SHORTEST_S)

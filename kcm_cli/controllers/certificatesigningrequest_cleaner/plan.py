"""Decides when a CertificateSigningRequest is deleted.

upstream: pkg/controller/certificates/cleaner/cleaner.go
"""

from datetime import datetime, timedelta

from cryptography import x509

from kcm_cli.api.certificates import CertificateSigningRequest
from kcm_cli.machinery import der, pem
from kcm_cli.machinery.formats import from_base64
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.actions import Remark

DECIDED = timedelta(hours=1)
"""How long a request that was signed or denied, or has failed, is kept after its last change."""
UNDECIDED = timedelta(hours=24)
"""How long other requests are kept."""
_DECIDED_TEXT, _UNDECIDED_TEXT = "1h0m0s", "24h0m0s"
_PENDING = "Cleaning CSR as it is more than pendingExpiration duration old and unhandled."
_UNISSUED = "Cleaning CSR as it is approved but unissued for more than pendingExpiration duration."
_LINES = {
    "Approved": (
        "Cleaning CSR as it is more than approvedExpiration duration old and approved.",
        "approvedExpiration",
    ),
    "Denied": ("Cleaning CSR as it is more than deniedExpiration duration old and denied.", "deniedExpiration"),
    "Failed": ("Cleaning CSR as it is more than deniedExpiration duration old and failed.", "deniedExpiration"),
}


def plan(request: CertificateSigningRequest, now: datetime) -> bool:
    """Whether the request is deleted."""
    return remark(request, now) is not None


def remark(request: CertificateSigningRequest, now: datetime) -> Remark | None:
    """Why the request is deleted, as upstream logs it; None if it is kept."""
    conditions, signed = request.status.conditions, bool(request.status.certificate)
    csr: dict[str, object] = {"csr": request.name}
    if not conditions:
        pending = _older(request.metadata.creation_timestamp, UNDECIDED, now)
        return Remark(_PENDING, csr | {"pendingExpiration": _UNDECIDED_TEXT}, 0) if pending else None
    for condition in conditions:
        approved = condition.type == "Approved"
        if approved and signed and _has_ended(request.status.certificate, now):
            return Remark("Cleaning CSR as the associated certificate is expired.", csr, 0)
        limit = UNDECIDED if approved and not signed else DECIDED
        if condition.type in _LINES and _older(condition.last_update_time, limit, now):
            if approved and not signed:
                return Remark(_UNISSUED, csr | {"pendingExpiration": _UNDECIDED_TEXT}, 0)
            message, key = _LINES[condition.type]
            return Remark(message, csr | {key: _DECIDED_TEXT}, 0)
    return None


def _older(time: str | None, limit: timedelta, now: datetime) -> bool:
    return time is not None and now - parse_time(time) > limit


def _has_ended(certificate: str, now: datetime) -> bool:
    """Whether the first certificate in the first block has expired. False if one there cannot be parsed."""
    try:
        block = pem.first(from_base64(certificate))
        found = [x509.load_der_x509_certificate(one) for one in der.split(block.content)] if block is not None else []
        return bool(found) and now > found[0].not_valid_after_utc
    except (ValueError, x509.InvalidVersion):
        return False

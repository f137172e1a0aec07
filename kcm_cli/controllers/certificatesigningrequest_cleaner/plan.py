"""Decides when a CertificateSigningRequest is deleted.

upstream: pkg/controller/certificates/cleaner/cleaner.go
"""

from datetime import datetime, timedelta

from cryptography import x509

from kcm_cli.api.certificates import CertificateSigningRequest
from kcm_cli.machinery import der, pem
from kcm_cli.machinery.formats import from_base64
from kcm_cli.machinery.times import parse_time

DECIDED = timedelta(hours=1)
"""How long a request that was signed or denied, or has failed, is kept after its last change."""
UNDECIDED = timedelta(hours=24)
"""How long other requests are kept."""


def plan(request: CertificateSigningRequest, now: datetime) -> bool:
    """Whether the request is deleted."""
    conditions, signed = request.status.conditions, bool(request.status.certificate)
    if not conditions:
        return _older(request.metadata.creation_timestamp, UNDECIDED, now)
    for condition in conditions:
        approved = condition.type == "Approved"
        if approved and signed and _has_ended(request.status.certificate, now):
            return True
        limit = UNDECIDED if approved and not signed else DECIDED
        if condition.type in ("Approved", "Denied", "Failed") and _older(condition.last_update_time, limit, now):
            return True
    return False


def _older(time: str | None, limit: timedelta, now: datetime) -> bool:
    return time is not None and now - parse_time(time) > limit


def _has_ended(certificate: str, now: datetime) -> bool:
    """Whether the first certificate in the first block has expired. False if one there cannot be parsed."""
    try:
        block = pem.first(from_base64(certificate))
        found = [x509.load_der_x509_certificate(one) for one in der.split(block.content)] if block is not None else []
    except ValueError:
        return False
    return bool(found) and now > found[0].not_valid_after_utc

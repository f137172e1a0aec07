"""Decides when a CertificateSigningRequest is deleted.

upstream: pkg/controller/certificates/cleaner/cleaner.go
"""

import base64
from datetime import datetime, timedelta

from cryptography import x509

from kcm_cli.api.certificates import CertificateSigningRequest
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
    """Whether the first certificate has expired. False if it cannot be parsed."""
    try:
        return now > x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return False

"""When a pod's request for a certificate is too old to be of use.

upstream: pkg/controller/certificates/cleaner/pcrcleaner.go
"""

from datetime import datetime, timedelta

from kcm_cli.api.certificates import PodCertificateRequest
from kcm_cli.machinery.times import parse_time

KEPT = timedelta(minutes=15)
"""Signing a pod's certificate takes less, or the kubelet has given it up."""


def is_over(request: PodCertificateRequest, now: datetime) -> bool:
    """Whether the request can go, signed or not."""
    created = request.metadata.creation_timestamp
    return created is not None and now - parse_time(created) >= KEPT

"""podcertificaterequest-cleaner-controller: deletes old PodCertificateRequests.

upstream: pkg/controller/certificates/cleaner/pcrcleaner.go
"""

from datetime import datetime, timedelta

from kcm_cli.api.certificates import POD_CERTIFICATE_REQUESTS, PodCertificateRequest
from kcm_cli.engine.controller import Controller, Periodic, starting
from kcm_cli.engine.passes import Cleaner, ObjectFailed
from kcm_cli.machinery.times import parse_time

KEPT = timedelta(minutes=15)
"""Signing a pod's certificate takes less, or the kubelet has given it up."""
PERIOD_S = 300.0


def is_over(request: PodCertificateRequest, now: datetime) -> bool:
    """Whether the request is old enough to be deleted, signed or not."""
    created = request.metadata.creation_timestamp
    return created is not None and now - parse_time(created) >= KEPT


FAILED = ObjectFailed("Error while attempting to clean PodCertificateRequest", "pcr")
CONTROLLER = Controller(
    lambda context: Cleaner(context, POD_CERTIFICATE_REQUESTS, is_over, failed=FAILED),
    passes=(Periodic(Cleaner.clean, pause_s=lambda cleaner: PERIOD_S),),
    reads=(POD_CERTIFICATE_REQUESTS,),
    announces=starting("PodCertificateRequest cleaner controller"),
)

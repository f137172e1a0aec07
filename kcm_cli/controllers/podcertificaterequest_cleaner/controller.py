"""podcertificaterequest-cleaner-controller: removes old requests of kubelets for the certificates of pods.

upstream: pkg/controller/certificates/cleaner/pcrcleaner.go
"""

from kcm_cli.api.certificates import POD_CERTIFICATE_REQUESTS
from kcm_cli.controllers.podcertificaterequest_cleaner import plan
from kcm_cli.engine.cleaning import Cleaner
from kcm_cli.engine.context import ControllerContext, Runnable

PERIOD_S = 300.0


def build(context: ControllerContext) -> Runnable:
    return Cleaner(context, POD_CERTIFICATE_REQUESTS, plan.is_over).every(PERIOD_S)

"""certificatesigningrequest-cleaner-controller: removes requests for certificates that nobody needs any more.

upstream: pkg/controller/certificates/cleaner
"""

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.controllers.certificatesigningrequest_cleaner import plan
from kcm_cli.engine.cleaning import Cleaner
from kcm_cli.engine.context import ControllerContext, Runnable

PERIOD_S = 3600.0


def build(context: ControllerContext) -> Runnable:
    return Cleaner(context, CERTIFICATE_SIGNING_REQUESTS, plan.is_over).every(PERIOD_S)

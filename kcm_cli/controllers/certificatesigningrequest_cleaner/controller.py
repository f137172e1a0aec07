"""certificatesigningrequest-cleaner-controller: deletes requests for certificates that are no longer needed.

upstream: pkg/controller/certificates/cleaner
"""

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.controllers.certificatesigningrequest_cleaner import plan
from kcm_cli.engine.controller import Controller, Periodic, starting
from kcm_cli.engine.passes import Cleaner, ObjectFailed

PERIOD_S = 3600.0


FAILED = ObjectFailed("Error while attempting to clean CSR", "csr")
CONTROLLER = Controller(
    lambda context: Cleaner(context, CERTIFICATE_SIGNING_REQUESTS, plan.plan, plan.remark, FAILED),
    passes=(Periodic(Cleaner.clean, pause_s=lambda cleaner: PERIOD_S),),
    reads=(CERTIFICATE_SIGNING_REQUESTS,),
    announces=starting("CSR cleaner controller"),
)

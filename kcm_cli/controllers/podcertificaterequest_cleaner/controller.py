"""podcertificaterequest-cleaner-controller: removes old requests of kubelets for the certificates of pods.

upstream: pkg/controller/certificates/cleaner/pcrcleaner.go
"""

from kcm_cli.api.certificates import POD_CERTIFICATE_REQUESTS
from kcm_cli.controllers.podcertificaterequest_cleaner import plan
from kcm_cli.engine.cleaning import Cleaner
from kcm_cli.engine.controller import Controller, Periodic

PERIOD_S = 300.0


CONTROLLER = Controller(
    lambda context: Cleaner(context, POD_CERTIFICATE_REQUESTS, plan.is_over),
    passes=(Periodic(Cleaner.clean, pause_s=lambda cleaner: PERIOD_S),),
    reads=(POD_CERTIFICATE_REQUESTS,),
)

"""MutatingWebhookConfiguration.

upstream: pkg/apis/admissionregistration/v1/defaults.go,
pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.admissionregistration import webhooks
from kcm_cli.sandbox.apiserver.registry.core import Kind

KIND = Kind(
    "admissionregistration.k8s.io",
    "mutatingwebhookconfigurations",
    defaults=webhooks.defaults,
    strategy=webhooks.STRATEGY,
    table=webhooks.TABLE,
)

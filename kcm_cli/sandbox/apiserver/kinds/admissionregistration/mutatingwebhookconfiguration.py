"""MutatingWebhookConfiguration.

upstream: pkg/apis/admissionregistration/v1/defaults.go,
pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.kind import Kind

KIND = Kind(
    "admissionregistration.k8s.io",
    "mutatingwebhookconfigurations",
    defaults=common.webhooks,
    strategy=common.WEBHOOKS,
    table=common.WEBHOOK_TABLE,
)

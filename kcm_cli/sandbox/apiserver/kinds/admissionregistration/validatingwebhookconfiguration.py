"""ValidatingWebhookConfiguration.

upstream: pkg/apis/admissionregistration/v1/defaults.go,
pkg/registry/admissionregistration/validatingwebhookconfiguration/strategy.go, pkg/printers/internalversion/printers.go
"""

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.kinds.admissionregistration.mutatingwebhookconfiguration import KIND as MUTATING

KIND = replace(MUTATING, resource="validatingwebhookconfigurations")

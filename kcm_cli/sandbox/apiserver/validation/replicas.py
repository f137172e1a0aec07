"""Templates and counters of replicas, of all kinds that have them.

Source: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go.
"""

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, numbers

_RS_COUNTERS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)


def template_of(spec: Tree | None) -> Tree | None:
    return None if spec is None else spec.get("template")


def validate_replica_status(status: Tree) -> Errors:
    yield from numbers.non_negative(status, _RS_COUNTERS, "status")
    bounded = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    yield from numbers.not_above(status, bounded, "replicas", "status")
    yield from validate_available_within_ready(status)


def validate_available_within_ready(status: Tree) -> Errors:
    available = status.get("availableReplicas", 0)
    if available <= status.get("readyReplicas", 0):
        return []
    return [errors.invalid("status.availableReplicas", available, "cannot be greater than readyReplicas")]

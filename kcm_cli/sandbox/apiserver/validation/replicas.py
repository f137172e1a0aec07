"""Templates and counters of replicas, of all kinds that have them.

upstream: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go
"""

from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import rules
from kcm_cli.sandbox.apiserver.validation.numbers import not_above


def template_of(spec: Tree | None) -> Tree | None:
    return None if spec is None else spec.get("template")


available_within_ready = not_above("readyReplicas", "availableReplicas", detail="cannot be greater than readyReplicas")
_BOUNDED = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
validate_replica_status = rules.fields(
    *rules.counters("replicas", *_BOUNDED, "observedGeneration", "terminatingReplicas"),
    not_above("replicas", *_BOUNDED),
    available_within_ready,
)

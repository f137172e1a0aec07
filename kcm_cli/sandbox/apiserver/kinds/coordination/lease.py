"""Lease.

upstream: pkg/apis/coordination/validation,
pkg/registry/coordination/lease/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, of_field
from kcm_cli.sandbox.apiserver.validation import errors, rules

_SPEC = rules.fields(
    rules.optional("leaseDurationSeconds", rules.at_least(1, errors.NOT_POSITIVE)),
    *rules.counters("leaseTransitions"),
)


KIND = Kind(
    "coordination.k8s.io",
    "leases",
    strategy=Strategy(
        gated=("spec.strategy", "spec.preferredHolder"),  # CoordinatedLeaderElection
        creates_on_update=True,
        needs_version_on_update=True,
        core_finalizers=False,
        check=by_spec(_SPEC),
    ),
    table=layout(NAME, Column("Holder", *of_field("Lease", "spec.holderIdentity")), AGE),
)

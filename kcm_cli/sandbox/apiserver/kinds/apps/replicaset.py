"""ReplicaSet.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/replicaset/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.kinds.apps.common import validate_immutable_selector, validate_replica_template
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, status_check
from kcm_cli.sandbox.apiserver.strategy.warnings import workloads as warned
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.tables.templates import replica_columns, selector_at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import rules
from kcm_cli.sandbox.apiserver.validation.replicas import validate_replica_status

_COUNTS = rules.fields(*rules.counters("replicas", "minReadySeconds"))


def _check(doc: Tree, old: Tree | None) -> Errors:
    known = None if old is None else old["spec"]
    return [*_COUNTS(doc["spec"], "spec"), *validate_replica_template(doc["spec"], known)]


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    fill.absent(spec, replicas=1)
    pod.template(spec)
    _status_defaults(doc)


def _status_defaults(doc: Tree) -> None:
    fill.absent(doc.setdefault("status", {}), replicas=0)


KIND = Kind(
    "apps",
    "replicasets",
    defaults=_defaults,
    status_defaults=_status_defaults,
    strategy=Strategy(
        template="spec.template",
        new_status={"replicas": 0},
        generation=True,
        check=_check,
        check_change=validate_immutable_selector,
        check_status=status_check(validate_replica_status),
        warn=warned.of_replicas,
    ),
    table=Layout(replica_columns("ReplicaSet", selector_at("spec.selector"))),
)

"""ReplicaSet.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/replicaset/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import ONE_REPLICA, spec_of, zero_counters
from kcm_cli.sandbox.apiserver.kinds.apps.common import validate_immutable_selector, validate_replica_template
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.templates import new_with_replicas, update_with_template
from kcm_cli.sandbox.apiserver.strategy.warnings import workloads as warned
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.tables.templates import replica_columns, replicas_cells, selector_text
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import metadata, numbers
from kcm_cli.sandbox.apiserver.validation.replicas import validate_replica_status


def validate_replica_set(doc: Tree) -> Errors:
    return [*metadata.validate_meta(doc["metadata"], True, metadata.subdomain), *_replica_set_spec(doc["spec"])]


def validate_replica_set_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _replica_set_spec(new["spec"], old["spec"])
    yield from validate_immutable_selector(new, old)


def validate_replica_set_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from validate_replica_status(new.get("status") or {})


def _replica_set_spec(spec: Tree, known: Tree | None = None) -> Errors:
    return [
        *numbers.non_negative(spec, ("replicas", "minReadySeconds"), "spec"),
        *validate_replica_template(spec, known),
    ]


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    fill.absent(spec, ONE_REPLICA)
    pod.template(spec)
    zero_counters(doc, ("replicas",))


def _cells(doc: Tree, now: datetime) -> list[object]:
    return [*replicas_cells(doc, now), selector_text((doc.get("spec") or {}).get("selector"))]


KIND = Kind(
    "apps",
    "replicasets",
    defaults=_defaults,
    strategy=Strategy(
        on_create=new_with_replicas,
        on_update=update_with_template,
        on_status=parts.status_update,
        check_create=validate_replica_set,
        check_update=validate_replica_set_update,
        check_status=validate_replica_set_status,
        warn=warned.of_replicas,
    ),
    table=Layout(replica_columns("ReplicaSet"), _cells),
)

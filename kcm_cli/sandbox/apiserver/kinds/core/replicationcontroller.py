"""ReplicationController.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/replicationcontroller/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.machinery import labels as selectors
from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, status_check
from kcm_cli.sandbox.apiserver.strategy.warnings import workloads as warned
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.tables.templates import labels_at, replica_columns
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, pod_template, rules
from kcm_cli.sandbox.apiserver.validation.replicas import template_of, validate_replica_status


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec = doc["spec"]
    yield from _COUNTS(spec, "spec")
    template, selector = spec.get("template"), spec.get("selector") or {}
    if template is None:
        return
    own = (template.get("metadata") or {}).get("labels")
    if selector and any((own or {}).get(key) != value for key, value in selector.items()):
        yield errors.invalid("spec.template.metadata.labels", errors.sorted_map(own), pod_template.NO_MATCH)
    known = None if old is None else template_of(old["spec"])
    yield from pod_template.validate_template(template, "spec.template", known)
    yield from pod_template.validate_long_running(template, "ReplicationController")


_COUNTS = rules.fields(
    *rules.counters("minReadySeconds"),
    rules.required("selector"),
    *rules.counters("replicas"),
    rules.present("template"),
)


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    if (found := spec.get("template")) is not None:
        labels = (found.get("metadata") or {}).get("labels")
        if labels is not None:
            fill.empty(spec, selector=dict(labels))
            fill.empty(doc["metadata"], labels=dict(labels))
        pod.template(spec)
    fill.absent(spec, replicas=1)
    fill.absent(doc["status"], replicas=0)


KIND = Kind(
    "",
    "replicationcontrollers",
    defaults=_defaults,
    strategy=Strategy(
        template="spec.template",
        new_status={"replicas": 0},
        generation=True,
        check=_check,
        check_status=status_check(validate_replica_status),
        propagation="Orphan",
        warn=warned.of_replicas,
    ),
    scale_selector=selectors.format_set,
    etcd="controllers",
    table=Layout(replica_columns("ReplicationController", labels_at("spec.selector"))),
    selectable=Selectable({"status.replicas": "status.replicas"}, absent={"status.replicas": "0"}),
)

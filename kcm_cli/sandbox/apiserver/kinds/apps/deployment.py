"""Deployment.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/deployment/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.apply.fieldset import of_paths
from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import ONE_REPLICA, spec_of
from kcm_cli.sandbox.apiserver.kinds.apps import common
from kcm_cli.sandbox.apiserver.kinds.apps.common import (
    READY,
    shown_strategy,
    validate_immutable_selector,
    validate_replica_template,
)
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.templates import drop_gated_fields, new_with_template
from kcm_cli.sandbox.apiserver.strategy.warnings import workloads as warned
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, wide
from kcm_cli.sandbox.apiserver.tables.templates import CONTAINERS, IMAGES, NONE, containers, selector_text
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, numbers
from kcm_cli.sandbox.apiserver.validation.replicas import validate_available_within_ready

_DEPLOYMENT_COUNTERS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def validate_deployment(doc: Tree) -> Errors:
    return [*metadata.validate_meta(doc["metadata"], True, metadata.subdomain), *_deployment_spec(doc["spec"])]


def validate_deployment_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _deployment_spec(new["spec"], old["spec"])
    yield from validate_immutable_selector(new, old)


def validate_deployment_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    status = new.get("status") or {}
    yield from numbers.non_negative(status, _DEPLOYMENT_COUNTERS, "status")
    yield from numbers.not_above(
        status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "replicas", "status"
    )
    yield from validate_available_within_ready(status)
    yield from common.not_decremented(status, old.get("status") or {}, "collisionCount", "status")


def _deployment_spec(spec: Tree, known: Tree | None = None) -> Errors:
    yield from numbers.non_negative(spec, ("replicas",), "spec")
    yield from validate_replica_template(spec, known)
    yield from _deployment_strategy(spec.get("strategy") or {}, "spec.strategy")
    yield from numbers.non_negative(
        spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), "spec"
    )
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _deployment_strategy(strategy: Tree, path: str) -> Errors:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is None:
                return []
            detail = "may not be specified when strategy `type` is 'Recreate'"
            return [errors.forbidden(f"{path}.rollingUpdate", detail)]
        case "RollingUpdate":
            if rolling is None:
                return [errors.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
            return _rolling_deployment(rolling, f"{path}.rollingUpdate")
        case _:
            return [errors.not_supported(path, shown_strategy(strategy), ["Recreate", "RollingUpdate"])]


def _rolling_deployment(rolling: Tree, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from numbers.count_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from numbers.count_or_percent(surge, f"{path}.maxSurge")
    if common.amount(unavailable) == 0 and common.amount(surge) == 0:
        yield errors.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from numbers.at_most_100_percent(unavailable, f"{path}.maxUnavailable")


_DEPLOYMENT = (*ONE_REPLICA, ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600))


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    fill.absent(spec, _DEPLOYMENT)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = fill.made(strategy, "rollingUpdate")
        fill.absent(rolling, (("maxUnavailable", "25%"), ("maxSurge", "25%")))
    pod.template(spec)


def _deployment_update(new: Tree, old: Tree) -> None:
    drop_gated_fields(new, old)
    parts.keep_status(new, old)
    changed = new["metadata"].get("annotations") or {}
    if new["spec"] != old["spec"] or changed != (old["metadata"].get("annotations") or {}):
        parts.bump_generation(new, old)


def _deployment_status(new: Tree, old: Tree) -> None:
    parts.status_update(new, old)
    keep(new["metadata"], old["metadata"], "labels")


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    selector = selector_text(spec.get("selector"))
    return [
        doc["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        created(doc, now),
        *containers(spec.get("template")),
        "" if selector == NONE else selector,
    ]


KIND = Kind(
    "apps",
    "deployments",
    defaults=_defaults,
    strategy=Strategy(
        on_create=new_with_template,
        on_update=_deployment_update,
        on_status=_deployment_status,
        check_create=validate_deployment,
        check_update=validate_deployment_update,
        check_status=validate_deployment_status,
        warn=warned.of_replicas,
    ),
    table=Layout(
        (
            NAME,
            READY,
            Column("Up-to-date", "DeploymentStatus.updatedReplicas"),
            Column("Available", "DeploymentStatus.availableReplicas"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "DeploymentSpec.selector"),
        ),
        _cells,
    ),
    writable={"status": Writable(of_paths(("spec",), ("metadata", "labels")))},
)

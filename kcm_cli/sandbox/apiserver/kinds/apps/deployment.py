"""Deployment.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/deployment/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.apply.fieldset import of_paths
from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.kinds.apps import common
from kcm_cli.sandbox.apiserver.kinds.apps.common import (
    READY,
    validate_immutable_selector,
    validate_replica_template,
)
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, nothing, status_check
from kcm_cli.sandbox.apiserver.strategy.warnings import workloads as warned
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, of_field, wide
from kcm_cli.sandbox.apiserver.tables.templates import NONE, containers, selector_text
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, numbers, rules
from kcm_cli.sandbox.apiserver.validation.replicas import available_within_ready


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec = doc["spec"]
    yield from _REPLICAS(spec, "spec")
    yield from validate_replica_template(spec, None if old is None else old["spec"])
    yield from _SPEC(spec, "spec")


def _strategy(strategy: Tree, path: str) -> Errors:
    if strategy.get("type") in _STRATEGIES:
        return _STRATEGIES[strategy["type"]](strategy, path)
    shown = go_print.internal("apps.DeploymentStrategy", strategy)
    return [errors.not_supported(path, shown, ["Recreate", "RollingUpdate"])]


def _moves(rolling: Tree, path: str) -> Errors:
    unavailable = rolling.get("maxUnavailable", 0)
    if common.amount(unavailable) == 0 and common.amount(rolling.get("maxSurge", 0)) == 0:
        yield errors.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")


def _deadline(spec: Tree, path: str) -> Errors:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield errors.invalid(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


_ROLLING = rules.fields(*common.ROLLING[:2], _moves, common.ROLLING[2])
_NO_ROLLING = "may not be specified when strategy `type` is 'Recreate'"
_STRATEGIES = {
    "Recreate": rules.fields(rules.forbidden("rollingUpdate", _NO_ROLLING, zero=False)),
    "RollingUpdate": rules.fields(
        rules.present("rollingUpdate", _ROLLING, detail="this should be defaulted and never be nil")
    ),
}
_REPLICAS = rules.fields(*rules.counters("replicas"))
_SPEC = rules.fields(
    rules.always("strategy", _strategy, default={}),
    *rules.counters("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
    _deadline,
)
_BOUNDED = ("updatedReplicas", "readyReplicas", "availableReplicas")
_STATUS = rules.fields(
    *rules.counters("observedGeneration", "replicas", *_BOUNDED, "unavailableReplicas", "terminatingReplicas"),
    *rules.counters("collisionCount"),
    numbers.not_above("replicas", *_BOUNDED),
    available_within_ready,
)


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    fill.absent(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    fill.empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill.absent(fill.made(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    pod.template(spec)


def _deployment_update(new: Tree, old: Tree) -> None:
    if (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {}):
        parts.bump_generation(new, old)


def _deployment_status(new: Tree, old: Tree) -> None:
    keep(new["metadata"], old["metadata"], "labels")


def _selector(doc: Tree, now: datetime) -> str:
    text = selector_text((doc.get("spec") or {}).get("selector"))
    return "" if text == NONE else text


KIND = Kind(
    "apps",
    "deployments",
    defaults=_defaults,
    status_defaults=nothing,
    strategy=Strategy(
        template="spec.template",
        new_status={},
        generation=True,
        on_update=_deployment_update,
        on_status=_deployment_status,
        check=_check,
        check_change=validate_immutable_selector,
        check_status=status_check(_STATUS, common.collisions_not_decremented),
        warn=warned.of_replicas,
    ),
    hidden="deprecated.deployment.rollback.to",
    table=layout(
        NAME,
        READY,
        Column("Up-to-date", *of_field("Deployment", "status.updatedReplicas", 0)),
        Column("Available", *of_field("Deployment", "status.availableReplicas", 0)),
        AGE,
        *containers("spec.template"),
        wide("Selector", "DeploymentSpec.selector", _selector),
    ),
    writable={"status": Writable(of_paths(("spec",), ("metadata", "labels")))},
)

"""DaemonSet.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/daemonset/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of, zero_counters
from kcm_cli.sandbox.apiserver.kinds.apps import common
from kcm_cli.sandbox.apiserver.kinds.apps.common import shown_strategy, validate_immutable_selector
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.templates import drop_gated_fields
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, number, wide
from kcm_cli.sandbox.apiserver.tables.templates import CONTAINERS, IMAGES, containers, label_set, selector_text
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata, numbers, pod_template
from kcm_cli.sandbox.apiserver.validation.replicas import template_of

_DS_COUNTERS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def validate_daemon_set(doc: Tree) -> Errors:
    return [*metadata.validate_meta(doc["metadata"], True, metadata.subdomain), *_daemon_set_spec(doc["spec"])]


def validate_daemon_set_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from validate_immutable_selector(new, old)
    lenient = labels.has_invalid_value(old["spec"].get("selector"))
    yield from _daemon_set_spec(new["spec"], old["spec"], lenient=lenient)


def validate_daemon_set_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    status = new.get("status") or {}
    yield from numbers.non_negative(status, _DS_COUNTERS, "status")
    yield from common.not_decremented(status, old.get("status") or {}, "collisionCount", "status")


def _daemon_set_spec(spec: Tree, known: Tree | None = None, *, lenient: bool = False) -> Errors:
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    compiled = labels.compile_selector(selector)
    if compiled is not None:
        yield from pod_template.validate_match(template, compiled, "spec.template")
    if selector is not None and labels.selector_is_empty(selector):
        yield errors.invalid("spec.selector", labels.shown(selector), "empty selector is invalid for daemonset")
    yield from pod_template.validate_template(template, "spec.template", template_of(known))
    yield from pod_template.validate_long_running(template, "spec.template", "DaemonSet")
    yield from numbers.non_negative(spec, ("minReadySeconds",), "spec")
    yield from _daemon_set_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    yield from numbers.non_negative(spec, ("revisionHistoryLimit",), "spec")


def _daemon_set_strategy(strategy: Tree, path: str) -> Errors:
    match strategy.get("type"):
        case "OnDelete":
            return []
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                return [errors.required(f"{path}.rollingUpdate")]
            return _rolling_daemon_set(rolling, f"{path}.rollingUpdate")
        case _:
            return [errors.not_supported(path, shown_strategy(strategy), ["RollingUpdate", "OnDelete"])]


def _rolling_daemon_set(rolling: Tree, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from numbers.count_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from numbers.count_or_percent(surge, f"{path}.maxSurge")
    yield from numbers.at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    yield from numbers.at_most_100_percent(surge, f"{path}.maxSurge")
    has_unavailable, has_surge = common.amount(unavailable) != 0, common.amount(surge) != 0
    if has_unavailable and has_surge:
        yield errors.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not has_unavailable and not has_surge:
        yield errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation that stands for a field of older versions, which counts from 0."""


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    meta: Tree = doc.setdefault("metadata", {})
    meta["annotations"] = {TEMPLATE_GENERATION: "0", **(meta.get("annotations") or {})}
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        fill.absent(fill.made(strategy, "rollingUpdate"), (("maxUnavailable", 1), ("maxSurge", 0)))
    fill.absent(spec, (("revisionHistoryLimit", 10),))
    pod.template(spec)
    zero_counters(doc, ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"))


def of_daemon_set(new: Tree, old: Tree | None) -> list[str]:
    """A DaemonSet; an update only if its template changes."""
    template = new["spec"].get("template")
    if old is not None and template == old["spec"].get("template"):
        return []
    return pods.of_template(template, "spec.template")


_DAEMON_SET_COUNTERS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


def _set_template_generation(doc: Tree, value: str) -> None:
    meta = doc["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_GENERATION: value}


def _template_generation(doc: Tree) -> int:
    text = (doc["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return int(text) if text.isdecimal() else 0


def _new_daemon_set(doc: Tree) -> None:
    drop_gated_fields(doc)
    doc["status"] = dict.fromkeys(_DAEMON_SET_COUNTERS, 0)
    parts.first_generation(doc)
    _set_template_generation(doc, str(max(1, _template_generation(doc))))


def _daemon_set_update(new: Tree, old: Tree) -> None:
    drop_gated_fields(new, old)
    parts.keep_status(new, old)
    template = _template_generation(old)
    if new["spec"]["template"] != old["spec"]["template"]:
        template += 1
        parts.bump_generation(new, old)
    elif new["spec"] != old["spec"]:
        parts.bump_generation(new, old)
    _set_template_generation(new, str(template))


_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    template = spec.get("template") or {}
    nodes = label_set((template.get("spec") or {}).get("nodeSelector"))
    return [
        doc["metadata"]["name"],
        *(status.get(field, 0) for field in _DAEMON_COUNTS),
        nodes,
        created(doc, now),
        *containers(template),
        selector_text(spec.get("selector")),
    ]


KIND = Kind(
    "apps",
    "daemonsets",
    defaults=_defaults,
    strategy=Strategy(
        on_create=_new_daemon_set,
        on_update=_daemon_set_update,
        on_status=parts.status_update,
        check_create=validate_daemon_set,
        check_update=validate_daemon_set_update,
        check_status=validate_daemon_set_status,
        warn=of_daemon_set,
    ),
    table=Layout(
        (
            NAME,
            number("Desired", "DaemonSetStatus.desiredNumberScheduled"),
            number("Current", "DaemonSetStatus.currentNumberScheduled"),
            number("Ready", "DaemonSetStatus.numberReady"),
            number("Up-to-date", "DaemonSetStatus.updatedNumberScheduled"),
            number("Available", "DaemonSetStatus.numberAvailable"),
            Column("Node Selector", "PodSpec.nodeSelector"),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", "DaemonSetSpec.selector"),
        ),
        _cells,
    ),
)

"""DaemonSet.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/daemonset/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.api.well_known import TEMPLATE_GENERATION
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.sandbox.apiserver.defaulting import fill, pod
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.kinds.apps import common
from kcm_cli.sandbox.apiserver.kinds.apps.common import validate_immutable_selector
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, status_check
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, number, of_field, wide
from kcm_cli.sandbox.apiserver.tables.templates import containers, labels_at, selector_at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, numbers, pod_template, rules
from kcm_cli.sandbox.apiserver.validation.replicas import template_of


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec, known = doc["spec"], None if old is None else old["spec"]
    selector, template = spec.get("selector"), spec.get("template") or {}
    lenient = labels.has_invalid_value((known or {}).get("selector"))
    yield from labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    compiled = labels.compile_selector(selector)
    if compiled is not None:
        yield from pod_template.validate_match(template, compiled)
    yield from common.not_empty(selector, "daemonset")
    yield from pod_template.validate_template(template, "spec.template", template_of(known))
    yield from pod_template.validate_long_running(template, "DaemonSet")
    yield from _SPEC(spec, "spec")


def _strategy(strategy: Tree, path: str) -> Errors:
    match strategy.get("type"):
        case "OnDelete":
            return ()
        case "RollingUpdate":
            return _ROLLING(strategy, path)
        case _:
            shown = go_print.internal("apps.DaemonSetUpdateStrategy", strategy)
            return [errors.not_supported(path, shown, ["RollingUpdate", "OnDelete"])]


def _surges_or_misses(rolling: Tree, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    has_unavailable, has_surge = common.amount(unavailable) != 0, common.amount(surge) != 0
    if has_unavailable and has_surge:
        yield errors.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not has_unavailable and not has_surge:
        yield errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


_MOST = rules.always("maxSurge", numbers.at_most_100_percent, default=0)
_ROLLING = rules.fields(rules.present("rollingUpdate", rules.fields(*common.ROLLING, _MOST, _surges_or_misses)))
_SPEC = rules.fields(
    *rules.counters("minReadySeconds"),
    rules.always("updateStrategy", _strategy, default={}),
    *rules.counters("revisionHistoryLimit"),
)
_COUNTERS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_COUNTS = dict.fromkeys(_COUNTERS, 0)
_STATUS = rules.fields(
    *rules.counters(*_COUNTERS, "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"),
    *rules.counters("collisionCount"),
)


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    meta: Tree = doc.setdefault("metadata", {})
    meta["annotations"] = {TEMPLATE_GENERATION: "0", **(meta.get("annotations") or {})}
    strategy = spec.setdefault("updateStrategy", {})
    fill.empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill.absent(fill.made(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    fill.absent(spec, revisionHistoryLimit=10)
    pod.template(spec)
    fill.absent(doc["status"], **_COUNTS)


def of_daemon_set(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a DaemonSet. On updates: only if its template changes."""
    template = new["spec"].get("template")
    if old is not None and template == old["spec"].get("template"):
        return []
    return pods.of_template(template, "spec.template")


def _set_template_generation(doc: Tree, value: str) -> None:
    meta = doc["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_GENERATION: value}


def _template_generation(doc: Tree) -> int:
    text = (doc["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return parse_int64(text) or 0


def _new_daemon_set(doc: Tree) -> None:
    _set_template_generation(doc, str(max(1, _template_generation(doc))))


def _daemon_set_update(new: Tree, old: Tree) -> None:
    changed = new["spec"]["template"] != old["spec"]["template"]
    _set_template_generation(new, str(_template_generation(old) + changed))


def _daemon_set_status(new: Tree, old: Tree) -> None:
    _set_template_generation(new, str(_template_generation(old)))


KIND = Kind(
    "apps",
    "daemonsets",
    defaults=_defaults,
    strategy=Strategy(
        template="spec.template",
        new_status=_COUNTS,
        generation=True,
        on_create=_new_daemon_set,
        on_update=_daemon_set_update,
        on_status=_daemon_set_status,
        check=_check,
        check_change=validate_immutable_selector,
        update_steps=("metadata", "change", "rules"),
        check_status=status_check(_STATUS, common.collisions_not_decremented),
        warn=of_daemon_set,
    ),
    hidden=TEMPLATE_GENERATION,
    table=layout(
        NAME,
        number("Desired", *of_field("DaemonSet", "status.desiredNumberScheduled", 0)),
        number("Current", *of_field("DaemonSet", "status.currentNumberScheduled", 0)),
        number("Ready", *of_field("DaemonSet", "status.numberReady", 0)),
        number("Up-to-date", *of_field("DaemonSet", "status.updatedNumberScheduled", 0)),
        number("Available", *of_field("DaemonSet", "status.numberAvailable", 0)),
        Column("Node Selector", "PodSpec.nodeSelector", labels_at("spec.template.spec.nodeSelector")),
        AGE,
        *containers("spec.template"),
        wide("Selector", "DaemonSetSpec.selector", selector_at("spec.selector")),
    ),
)

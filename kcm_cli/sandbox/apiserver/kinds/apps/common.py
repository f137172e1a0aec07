"""What the kinds of apps share."""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.intstr import IntOrString
from kcm_cli.sandbox.apiserver.tables.column import Column
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, numbers, pod_template, rules
from kcm_cli.sandbox.apiserver.validation.replicas import template_of


def amount(value: IntOrString) -> int:
    """The number in a number or percentage; 0 for other text without a number."""
    if isinstance(value, int):
        return value
    text = value[:-1] if not names.percent(value) else value
    return parse_int64(text) or 0


def collisions_not_decremented(new: Tree, old: Tree) -> Errors:
    """Check that ``collisionCount`` does not decrease. Absent is less than any number."""
    value, known = ((doc.get("status") or {}).get("collisionCount") for doc in (new, old))
    if known is not None and (value is None or value < known):
        yield errors.invalid("status.collisionCount", value or 0, "cannot be decremented")


def validate_replica_template(spec: Tree, known: Tree | None) -> Errors:
    """Check selector and template of a Deployment or ReplicaSet."""
    selector = spec.get("selector")
    yield from validate_selector(selector, "deployment")
    compiled = labels.compile_selector(selector)
    if compiled is None:
        yield errors.invalid("spec.selector", labels.shown(selector), "invalid label selector")
        return
    template = spec.get("template") or {}
    yield from pod_template.validate_match(template, compiled)
    yield from pod_template.validate_template(template, "spec.template", template_of(known))
    yield from pod_template.validate_long_running(template, "ReplicaSet")


def validate_selector(selector: Tree | None, kind: str) -> Errors:
    """Check that a selector is present and not empty."""
    if selector is None:
        yield errors.required("spec.selector")
        return
    yield from labels.validate_selector(selector, "spec.selector")
    yield from not_empty(selector, kind)


def not_empty(selector: Tree | None, kind: str) -> Errors:
    """Check that a selector, if present, is not empty."""
    if selector is not None and labels.selector_is_empty(selector):
        yield errors.invalid("spec.selector", labels.shown(selector), f"empty selector is invalid for {kind}")


def validate_immutable_selector(new: Tree, old: Tree) -> Errors:
    selector = new["spec"].get("selector")
    return errors.fixed("spec.selector", selector, old["spec"].get("selector"), labels.shown(selector))


ROLLING = (
    rules.always("maxUnavailable", numbers.count_or_percent, default=0),
    rules.always("maxSurge", numbers.count_or_percent, default=0),
    rules.always("maxUnavailable", numbers.at_most_100_percent, default=0),
)
"""``maxUnavailable`` and ``maxSurge`` of a rolling update."""


def _ready(doc: Tree, now: datetime) -> str:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    return f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}"


READY = Column("Ready", "Number of the pod with ready state", _ready)

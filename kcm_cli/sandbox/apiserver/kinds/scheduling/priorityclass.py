"""PriorityClass.

upstream: pkg/apis/scheduling/v1/defaults.go, pkg/apis/scheduling/validation,
pkg/registry/scheduling/priorityclass/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, flag, layout, number, of_field
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _check(doc: Tree, old: Tree | None) -> Errors:
    name, value = doc["metadata"].get("name", ""), doc.get("value", 0)
    if name.startswith("system-"):
        if problem := _system_problem(name, value, doc.get("globalDefault", False)):
            start = "priority class names with 'system-' prefix are reserved for system use only. error: "
            yield errors.forbidden("metadata.name", start + problem)
    elif value > _HIGHEST:
        yield errors.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = doc.get("preemptionPolicy")
    if policy is not None:
        yield from errors.one_of("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _check_change(new: Tree, old: Tree) -> Errors:
    if new.get("value", 0) != old.get("value", 0):
        yield errors.forbidden("value", "may not be changed in an update.")
    yield from errors.fixed("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _system_problem(name: str, value: int, default: bool) -> str:
    expected = _SYSTEM.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if value != expected:
        return f"value of {name} PriorityClass must be {expected}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


def _defaults(doc: Tree) -> None:
    fill.absent(doc, preemptionPolicy="PreemptLowerPriority")


KIND = Kind(
    "scheduling.k8s.io",
    "priorityclasses",
    defaults=_defaults,
    strategy=Strategy(
        generation=True,
        check=_check,
        check_change=_check_change,
        update_steps=("metadata", "change"),
        lasting=dict.fromkeys(_SYSTEM, "this is a system priority class and cannot be deleted"),
    ),
    table=layout(
        NAME,
        number("Value", *of_field("PriorityClass", "value", 0)),
        flag("Global-Default", *of_field("PriorityClass", "globalDefault", False)),
        AGE,
        Column("PreemptionPolicy", *of_field("PriorityClass", "preemptionPolicy")),
    ),
)

"""Conditions of pods that requests set."""

from kcm_cli.sandbox.apiserver.types import Tree


def set_condition(status: Tree, condition: Tree, now: str) -> None:
    """Add or replace a condition of a pod. lastTransitionTime changes only with the status."""
    known: list[Tree] = status.get("conditions") or []
    entry = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, one in enumerate(known):
        if one["type"] == condition["type"]:
            if one.get("status") == condition["status"]:
                entry["lastTransitionTime"] = one.get("lastTransitionTime")
            status["conditions"] = [*known[:index], entry, *known[index + 1 :]]
            return
    status["conditions"] = [*known, entry]

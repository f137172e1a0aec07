"""Admission policies whose parameters were not read, which have no bindings in a twin: they would refuse what the
cluster admits."""

from collections.abc import Iterator
from typing import Any

from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.plan.snapshot import Snapshot


def unread_parameters(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """The bindings of such policies, by their resource and name, each with the name of its policy."""
    read = {(one.gvr.group, one.kind) for one in snapshot.collections.values()}
    found: dict[tuple[str, str], str] = {}
    for policies in ("mutatingadmissionpolicies", "validatingadmissionpolicies"):
        lacking = {
            nested_str(policy, "metadata", "name")
            for policy in _docs(snapshot, policies)
            if (kind := nested_map(policy, "spec", "paramKind")) and _place(kind) not in read
        }
        bindings = policies.replace("policies", "policybindings")
        for binding in _docs(snapshot, bindings) if lacking else ():
            name = nested_str(binding, "spec", "policyName")
            if name in lacking:
                found[bindings, nested_str(binding, "metadata", "name")] = name
    return found


def _place(kind: dict[str, Any]) -> tuple[str, str]:
    return nested_str(kind, "apiVersion").rpartition("/")[0], nested_str(kind, "kind")


def _docs(snapshot: Snapshot, plural: str) -> Iterator[dict[str, Any]]:
    for gvr in snapshot.collections:
        if gvr.plural == plural:
            yield from snapshot.docs(gvr)

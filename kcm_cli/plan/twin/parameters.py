"""Admission policies whose parameters were not read, which a twin leaves out: they would refuse what the cluster
admits."""

from collections.abc import Iterator
from typing import Any

from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.plan.snapshot import Snapshot


def unread_parameters(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Such policies that are bound, by their resource and name."""
    read = {(one.gvr.group, one.kind) for one in snapshot.collections.values()}
    found: set[tuple[str, str]] = set()
    for plural in ("mutatingadmissionpolicies", "validatingadmissionpolicies"):
        bindings = _docs(snapshot, plural.replace("policies", "policybindings"))
        bound = {nested_str(binding, "spec", "policyName") for binding in bindings}
        for policy in _docs(snapshot, plural):
            kind, name = nested_map(policy, "spec", "paramKind"), nested_str(policy, "metadata", "name")
            if kind and name in bound and _place(kind) not in read:
                found.add((plural, name))
    return frozenset(found)


def _place(kind: dict[str, Any]) -> tuple[str, str]:
    return nested_str(kind, "apiVersion").rpartition("/")[0], nested_str(kind, "kind")


def _docs(snapshot: Snapshot, plural: str) -> Iterator[dict[str, Any]]:
    for gvr in snapshot.collections:
        if gvr.plural == plural:
            yield from snapshot.docs(gvr)

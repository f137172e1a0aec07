"""Deletion of namespaces: first the phase becomes Terminating, and it is deleted when its finalizers are gone.

upstream: pkg/registry/core/namespace/storage/storage.go#Delete (v1.36)
"""

from datetime import datetime

from kcm_cli.api.well_known import FOREGROUND
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.registry import errors as api_errors
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.options import DeleteOptions
from kcm_cli.sandbox.apiserver.trees import put
from kcm_cli.sandbox.apiserver.types import Tree

ORPHAN = "orphan"
"""Finalizers of the garbage collector."""


def check_preconditions(call: Call, options: DeleteOptions, meta: Tree) -> None:
    """Raises ApiError 409."""
    wanted = options.preconditions
    if wanted is None:
        return
    for word, given, known in (
        ("UID", wanted.uid, meta["uid"]),
        ("ResourceVersion", wanted.resourceVersion, meta["resourceVersion"]),
    ):
        if given is not None and given != known:
            raise api_errors.conflict(call.resource, call.name, api_errors.precondition(word, given, known))


def mark_terminating(doc: Tree, options: DeleteOptions, now: datetime) -> None:
    """Mark a namespace as Terminating."""
    meta = doc["metadata"]
    meta["deletionTimestamp"] = format_time(now)
    doc["status"] = {**(doc.get("status") or {}), "phase": "Terminating"}
    finalizers: list[str] = list(meta.get("finalizers") or ())
    policy, orphan = options.propagation_policy, options.orphan_dependents
    if orphan is not None:
        policy = "Orphan" if orphan else "Foreground"
    if policy is not None:
        finalizers = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
        finalizers += {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    put(meta, "finalizers", finalizers)


def held(doc: Tree) -> bool:
    """Whether the namespace has finalizers in its spec."""
    return bool((doc.get("spec") or {}).get("finalizers"))

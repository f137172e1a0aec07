"""Namespace.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/namespace/{strategy,storage/storage}.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.api.well_known import FOREGROUND, ORPHAN
from kcm_cli.sandbox.apiserver.apply.resets import STATUS
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, Terminating
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout
from kcm_cli.sandbox.apiserver.trees import keep, put
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, rules


def _check(doc: Tree, old: Tree | None) -> Errors:
    for name in (doc.get("spec") or {}).get("finalizers") or ():
        yield from metadata.validate_finalizer(name, "spec.finalizers")


def _check_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    phase = (new.get("status") or {}).get("phase", "")
    if not new["metadata"].get("deletionTimestamp"):
        if phase != "Active":
            yield errors.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        yield errors.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


_FINALIZE = rules.fields(rules.each("finalizers", metadata.validate_finalizer))


def _defaults(doc: Tree) -> None:
    meta = doc["metadata"]
    if name := meta.get("name"):
        fill.made(meta, "labels")[_NAME_LABEL] = name
    doc.setdefault("spec", {})
    fill.empty(doc.setdefault("status", {}), phase="Active")


_FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"


def _new_namespace(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if _FINALIZER not in finalizers:
        spec["finalizers"] = [*finalizers, _FINALIZER]
    _name_label(doc)


def _namespace_update(new: Tree, old: Tree) -> None:
    keep(new.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
    _name_label(new)


def _name_label(doc: Tree) -> None:
    meta = doc["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), _NAME_LABEL: meta.get("name", "")}


def _other_update(new: Tree, old: Tree) -> None:
    _name_label(new)


def _terminate(doc: Tree, policy: str | None, now: str) -> None:
    """The phase becomes Terminating. The namespace is deleted when its finalizers are gone."""
    meta = doc["metadata"]
    meta["deletionTimestamp"] = now
    doc["status"] = {**(doc.get("status") or {}), "phase": "Terminating"}
    finalizers: list[str] = list(meta.get("finalizers") or ())
    if policy is not None:
        finalizers = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
        finalizers += {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    put(meta, "finalizers", finalizers)


KIND = Kind(
    "",
    "namespaces",
    defaults=_defaults,
    strategy=Strategy(
        new_status={"phase": "Active"},
        on_create=_new_namespace,
        on_update=_namespace_update,
        on_status=_other_update,
        names=metadata.label,
        check=_check,
        update_steps=("name", "rules", "metadata"),
        check_status=_check_status,
        returns_object_on_delete=True,
        terminating=Terminating(_terminate, held=lambda doc: bool((doc.get("spec") or {}).get("finalizers"))),
        is_namespace=True,
    ),
    subresources={
        "finalize": Strategy(
            on_update=_other_update,
            names=metadata.label,
            check=lambda new, old: _FINALIZE(new.get("spec") or {}, "spec"),
        )
    },
    table=layout(NAME, Column("Status", "The status of the namespace", at("status.phase")), AGE),
    selectable=Selectable({"status.phase": "status.phase"}, namespace=False),
    writable={"finalize": STATUS},
)

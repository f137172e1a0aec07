"""Lease.

Source: pkg/apis/coordination/validation,
pkg/registry/coordination/lease/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, numbers


def validate_lease(doc: Tree) -> Errors:
    return [*metadata.validate_plain_meta(doc["metadata"], True, metadata.subdomain), *_lease(doc.get("spec") or {})]


def validate_lease_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    yield from _lease(new.get("spec") or {})


def _lease(spec: Tree) -> Errors:
    duration_s = spec.get("leaseDurationSeconds")
    if duration_s is not None and duration_s <= 0:
        yield errors.invalid("spec.leaseDurationSeconds", duration_s, errors.NOT_POSITIVE)
    yield from numbers.non_negative(spec, ("leaseTransitions",), "spec")


_LEASE_GATED = ("strategy", "preferredHolder")


def _new_lease(doc: Tree) -> None:
    for field in _LEASE_GATED:  # gate CoordinatedLeaderElection
        doc.get("spec", {}).pop(field, None)


def _lease_update(new: Tree, old: Tree) -> None:
    for field in _LEASE_GATED:
        if (old.get("spec") or {}).get(field) is None:
            new.get("spec", {}).pop(field, None)


def _cells(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), (doc.get("spec") or {}).get("holderIdentity") or "", created(doc, now)]


KIND = Kind(
    "coordination.k8s.io",
    "leases",
    strategy=Strategy(
        on_create=_new_lease,
        on_update=_lease_update,
        creates_on_update=True,
        needs_version_on_update=True,
        check_create=validate_lease,
        check_update=validate_lease_update,
    ),
    table=Layout((NAME, Column("Holder", "LeaseSpec.holderIdentity"), AGE), _cells),
)

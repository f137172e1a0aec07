"""Removes the entries of stopped API servers from a StorageVersion.

upstream: pkg/controller/storageversiongc, staging/src/k8s.io/apiserver/pkg/storageversion/updater.go
"""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.apiserverinternal import STORAGE_VERSIONS, StorageVersion
from kcm_cli.api.coordination import Lease
from kcm_cli.api.core import Condition
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import ABSENT, Delete, Path, Update, Value
from kcm_cli.planning.conditions import find

IDENTITY, SERVER = "apiserver.kubernetes.io/identity", "kube-apiserver"
_EQUAL = "AllEncodingVersionsEqual"


def is_identity(lease: Lease | None) -> bool:
    """Whether this is the lease of a running API server."""
    return lease is not None and lease.labels.get(IDENTITY) == SERVER


def servers(versions: StorageVersion) -> list[str]:
    """The ids of the servers in its entries."""
    return [str(entry.get("apiServerID", "")) for entry in versions.status.storage_versions]


def plan(versions: StorageVersion, stopped: Collection[str], now: datetime) -> Update | Delete | None:
    """Remove the entries of these servers, or delete a StorageVersion that has no others. None if it has no entry of
    them."""
    entries = versions.status.storage_versions
    kept = [entry for entry in entries if str(entry.get("apiServerID", "")) not in stopped]
    if len(kept) == len(entries):
        return None
    if not kept:
        meta = versions.metadata
        return Delete(
            STORAGE_VERSIONS,
            "",
            meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
            reason="all its API servers have stopped",
        )
    changes = status(versions, kept, now)
    return Update(STORAGE_VERSIONS, versions, changes, subresource="status", reason="API servers have stopped")


def status(versions: StorageVersion, kept: Sequence[Doc], now: datetime) -> dict[Path, Value]:
    """The status with these entries only."""
    encodings = {str(entry.get("encodingVersion", "")) for entry in kept}
    common = encodings.pop() if len(encodings) == 1 else None
    return {
        ("status", "storageVersions"): list(kept),
        ("status", "commonEncodingVersion"): ABSENT if common is None else common,
        ("status", "conditions"): msgspec.to_builtins(_conditions(versions, common, now)),
    }


def _conditions(versions: StorageVersion, common: str | None, now: datetime) -> list[Condition]:
    """The transition time changes with the condition's status, and when the servers agree on another version."""
    status = versions.status
    current = find(status.conditions, _EQUAL)
    reason, message = ("Set", "set") if common is not None else ("Unset", "unset")
    made = Condition(
        type=_EQUAL,
        status="False" if common is None else "True",
        observed_generation=versions.metadata.generation,
        last_transition_time=format_time(now),
        reason=f"CommonEncodingVersion{reason}",
        message=f"Common encoding version {message}",
    )
    if current is None:
        return [*status.conditions, made]
    another = None not in (common, status.common_encoding_version) and common != status.common_encoding_version
    if current.status == made.status and not another:
        made = msgspec.structs.replace(made, last_transition_time=current.last_transition_time)
    return [made if condition is current else condition for condition in status.conditions]

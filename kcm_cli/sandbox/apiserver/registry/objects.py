"""Checks and changes of metadata in requests, common to all kinds.

upstream: apiserver pkg/registry/rest/{meta,create}.go, pkg/endpoints/handlers/rest.go (v1.36)
"""

import json
import random
import uuid
from collections.abc import Sequence
from datetime import datetime

from kcm_cli.machinery.names import generate_name
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree

_SYSTEM = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_DUPLICATES = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


def ordered(info: ResourceInfo, doc: Tree) -> Tree:
    """The document with kind, apiVersion and metadata first, as it is stored (see ``responses``)."""
    if "metadata" not in doc:
        doc["metadata"] = {}
    first: Tree = {"kind": info.kind, "apiVersion": info.api_version, "metadata": doc["metadata"]}
    return first | doc | first


def wipe_system_fields(meta: Tree) -> None:
    """Remove fields that only the server may set."""
    for field in _SYSTEM:
        meta.pop(field, None)


def fill_system_fields(meta: Tree, rng: random.Random, now: datetime, stem: str = "") -> None:
    """Set uid and creationTimestamp, and a name that begins with ``stem``, if that is not empty."""
    meta["uid"] = new_uid(rng)
    meta["creationTimestamp"] = format_time(now)
    if stem:
        meta["name"] = generate_name(stem, rng)


def new_uid(rng: random.Random) -> str:
    """A version 4 UUID."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def match_namespace(meta: Tree, namespace: str) -> None:
    """Set the request's namespace, or remove it from a cluster-scoped object. Raises ApiError 400 if they differ."""
    given = meta.get("namespace") or ""
    if given == namespace:
        if not given:
            meta.pop("namespace", None)
    elif not given:
        meta["namespace"] = namespace
    elif not namespace:
        del meta["namespace"]
    else:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_name(meta: Tree, name: str) -> None:
    """Raises ApiError 400 if the object's name is not the one in the URL."""
    given = meta.get("name") or ""
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def drop_repeated_owners(meta: Tree, warnings: list[str], *, mutated: bool) -> None:
    """Remove duplicate owner references, with a warning."""
    owners: Sequence[Tree] | None = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[str, Tree] = {}
    repeated: list[str] = []
    for owner in owners:
        if (same := json.dumps(owner, sort_keys=True)) in kept:
            repeated.append(owner.get("uid", ""))
        else:
            kept[same] = owner
    if repeated:
        when = " after mutating admission happens" if mutated else ""
        warnings.append(_DUPLICATES.format(when=when, uids=", ".join(repeated)))
        meta["ownerReferences"] = list(kept.values())


def emptied(new: Tree, old: Tree, rules: Strategy) -> bool:
    """Whether an update removes the last finalizer of an object that is being deleted."""
    meta, known = new["metadata"], old["metadata"]
    if meta.get("finalizers") or not known.get("deletionTimestamp") or known.get("deletionGracePeriodSeconds"):
        return False
    return rules.terminating is None or not rules.terminating.held(new)

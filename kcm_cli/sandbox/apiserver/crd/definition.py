"""CustomResourceDefinitions, decoded.

upstream: apiextensions-apiserver pkg/apiserver/customresource_discovery_controller.go
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.registry.catalog import ScalePaths
from kcm_cli.sandbox.apiserver.trees import condition, is_true
from kcm_cli.sandbox.apiserver.types import Tree

GROUP = "apiextensions.k8s.io"
PLURAL = "customresourcedefinitions"
APPROVED = "api-approved.kubernetes.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")

Use = tuple[str, str, str]
"""A name in use: its group, ``resource`` or ``kind``, and the name."""


class VersionFacts(msgspec.Struct, frozen=True):
    """A version of a definition. ``warning``: the deprecation warning for requests, if any."""

    name: str
    served: bool
    schema: Doc
    status: bool
    scale: ScalePaths | None
    selectable: tuple[str, ...]
    columns: tuple[Tree, ...]
    warning: str


@dataclass(frozen=True)
class Definition:
    """A definition. names: the accepted ones. wanted: those of its spec. storage: the name of the storage version.
    accepted, established: its conditions NamesAccepted and Established.
    """

    name: str
    uid: str
    group: str
    namespaced: bool
    names: Tree
    wanted: Tree
    versions: tuple[VersionFacts, ...]
    storage: str
    generation: int
    accepted: bool
    established: bool
    terminating: bool
    webhook: Tree | None = None
    """``spec.conversion.webhook``, if the strategy is Webhook."""

    @property
    def served(self) -> list[VersionFacts]:
        return [version for version in self.versions if version.served]

    @property
    def storage_hash(self) -> str:
        """storageVersionHash in discovery; empty if the storage version is not served."""
        if not any(version.name == self.storage for version in self.served):
            return ""
        digest = hashlib.sha256(f"{self.group}/{self.storage}/{self.names['kind']}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """Changes with the spec and the accepted names."""
        return self.uid, self.generation, tuple(sorted((key, str(value)) for key, value in self.names.items()))

    @cached_property
    def state(self) -> tuple[object, ...]:
        """All that determines how it is served."""
        return *self.identity, self.established, self.terminating

    @cached_property
    def stored_as(self) -> GVR:
        """The resource that its objects are stored as, in any version."""
        return storage_of(self.group, self.names["plural"])

    @cached_property
    def uses(self) -> frozenset[Use]:
        """The names that it has."""
        return uses_of(self.group, self.names)


def storage_of(group: str, plural: str) -> GVR:
    """The resource that objects of a custom kind are stored as, in any version."""
    return GVR(group, "", plural)


def uses_of(group: str, names: Tree) -> frozenset[Use]:
    """The names of resources and kinds among these names of a definition."""
    resources = [names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())]
    kinds = [names.get("kind") or "", names.get("listKind") or ""]
    return frozenset([(group, "resource", name) for name in resources] + [(group, "kind", name) for name in kinds])


def definition_of(doc: Tree) -> Definition:
    """Decode a stored definition."""
    meta, spec, status = doc["metadata"], doc["spec"], doc.get("status") or {}
    versions: list[Tree] = spec.get("versions") or []
    conversion: Tree = spec.get("conversion") or {}
    return Definition(
        name=meta["name"],
        uid=meta["uid"],
        group=spec["group"],
        namespaced=spec["scope"] == "Namespaced",
        names=status.get("acceptedNames") or {},
        wanted=spec["names"],
        versions=tuple(_version(spec, version) for version in versions),
        storage=next((version["name"] for version in versions if version.get("storage")), ""),
        generation=meta.get("generation") or 1,
        accepted=is_true(doc, "NamesAccepted"),
        established=is_true(doc, "Established"),
        terminating=bool(meta.get("deletionTimestamp")),
        webhook=conversion.get("webhook") if conversion.get("strategy") == "Webhook" else None,
    )


def _version(spec: Tree, version: Tree) -> VersionFacts:
    parts = version.get("subresources") or {}
    scale = parts.get("scale")
    warning = version.get("deprecationWarning") or ""
    if version.get("deprecated") and not warning:
        warning = _deprecation(spec, version["name"])
    return VersionFacts(
        name=version["name"],
        served=bool(version.get("served")),
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        status=parts.get("status") is not None,
        scale=None if scale is None else _scale(scale),
        selectable=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        warning=warning if version.get("deprecated") else "",
    )


def _deprecation(spec: Tree, name: str) -> str:
    """The default warning for a deprecated version."""
    group, kind = spec["group"], spec["names"]["kind"]
    better = {one["name"] for one in spec["versions"] if one.get("served") and not one.get("deprecated")}
    better = {one for one in better if _rank(one) < _rank(name)}
    text = f"{group}/{name} {kind} is deprecated"
    return f"{text}; use {group}/{by_priority(better)[0]} {kind}" if better else text


def _scale(scale: Tree) -> ScalePaths:
    return ScalePaths(
        spec=scale["specReplicasPath"].removeprefix("."),
        status=scale["statusReplicasPath"].removeprefix("."),
        selector=(scale.get("labelSelectorPath") or "").removeprefix("."),
    )


def set_condition(doc: Tree, now: str, type_: str, status: str, reason: str, message: str) -> None:
    """Set a condition, in place."""
    conditions: list[Tree] = doc["status"].setdefault("conditions", []) or []
    doc["status"]["conditions"] = conditions
    found = condition(doc, type_)
    if found is None:
        found = {"type": type_, "status": ""}
        conditions.append(found)
    if found["status"] != status or not found.get("lastTransitionTime"):
        found["lastTransitionTime"] = now
    found.update(status=status, reason=reason, message=message)


def by_priority(versions: set[str]) -> list[str]:
    """Versions of an API by priority: the most stable and latest first."""
    return sorted(versions, key=_rank)


def _rank(version: str) -> tuple[int | str, ...]:
    found = _VERSION.fullmatch(version)
    if found is None:
        return 1, version
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return 0, stage, -int(found[1]), -int(found[3] or 0)

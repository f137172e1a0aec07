"""Fields that a path cannot write, and so nobody comes to own through it.

upstream: the GetResetFields methods under pkg/registry and apiextensions-apiserver
pkg/registry/customresource
"""

from dataclasses import dataclass, field

from kcm_cli.sandbox.apiserver.apply.compare import Changes
from kcm_cli.sandbox.apiserver.apply.fieldset import (
    LEAF,
    SELF,
    Fields,
    of_paths,
    recursive_difference,
)
from kcm_cli.sandbox.apiserver.types import ResourceInfo

_ANY_ITEM = "*"


@dataclass(frozen=True, slots=True)
class Writable:
    """What may be owned through a path: all but ``without``, or, where given, ``only`` (``*``: any item)."""

    without: Fields = field(default_factory=dict)
    only: Fields | None = None

    def of(self, fields: Fields) -> Fields:
        """The part of a set that may be owned."""
        if self.only is not None:
            return _matching(fields, self.only)
        return recursive_difference(fields, self.without) if self.without else fields

    def narrow(self, changes: Changes) -> None:
        """Leave out of the changes what the path does not write."""
        if self.only is not None or any(
            key in part for key in self.without for part in (changes.added, changes.modified, changes.removed)
        ):
            changes.added = self.of(changes.added)
            changes.modified = self.of(changes.modified)
            changes.removed = self.of(changes.removed)


def _matching(fields: Fields, pattern: Fields) -> Fields:
    """The entries that a pattern names; a leaf of the pattern takes all that is below."""
    out: Fields = {}
    for key, entry in fields.items():
        wanted = pattern.get(key, pattern.get(_ANY_ITEM))
        if wanted is None or key == SELF:
            continue
        below = _matching(entry, wanted) if wanted else entry
        if entry and not below and SELF not in entry:
            continue
        out[key] = {SELF: LEAF, **below} if wanted and SELF in entry and below else below
    return out


_ALL = Writable()
_STATUS = Writable(of_paths(("status",)))
_SPEC = Writable(of_paths(("spec",)))
_SPEC_AND_METADATA = Writable(of_paths(("spec",), ("metadata",)))
_RESIZED: Fields = {"f:resources": {}, "f:resizePolicy": {}}

_OF_STATUS: dict[tuple[str, str], Writable] = {
    ("apps", "deployments"): Writable(of_paths(("spec",), ("metadata", "labels"))),
    ("", "pods"): Writable(of_paths(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))),
    ("certificates.k8s.io", "certificatesigningrequests"): Writable(of_paths(("spec",), ("status", "conditions"))),
    ("networking.k8s.io", "servicecidrs"): _SPEC_AND_METADATA,
    ("resource.k8s.io", "resourceclaims"): _SPEC_AND_METADATA,
    ("storage.k8s.io", "volumeattachments"): _SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): _SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): _SPEC_AND_METADATA,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _SPEC_AND_METADATA,
    ("apiregistration.k8s.io", "apiservices"): _SPEC_AND_METADATA,
}
_OTHER: dict[tuple[str, str, str], Writable] = {
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): Writable(
        of_paths(("spec",), ("status", "certificate"))
    ),
    ("", "namespaces", "finalize"): _STATUS,
    ("", "pods", "ephemeralcontainers"): Writable(only={"f:spec": {"f:ephemeralContainers": {}}}),
    ("", "pods", "resize"): Writable(
        only={"f:spec": {"f:containers": {"*": _RESIZED}, "f:initContainers": {"*": _RESIZED}}}
    ),
}
_CSR = Writable(of_paths(("spec",), ("status",)))


def writable(resource: ResourceInfo, subresource: str) -> Writable:
    """What may be owned through a resource's path or that of a subresource."""
    key = (resource.gvr.group, resource.gvr.plural)
    if subresource == "status":
        return _SPEC_AND_METADATA if resource.custom else _OF_STATUS.get(key, _SPEC)
    if subresource:
        return _OTHER.get((*key, subresource), _ALL)
    if key == ("certificates.k8s.io", "certificatesigningrequests"):
        return _CSR
    return _STATUS if "status" in resource.subresources else _ALL

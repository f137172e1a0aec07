"""A write in the version that a policy or webhook requests. The scale subresource is shown as a Scale."""

from collections.abc import Callable, Sequence

import msgspec

from kcm_cli.api.resource import GVR, group_version
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.registry.scale_form import scale_of
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

SCALE = "scale"
Kind = tuple[str, str, str]
"""Group, version and kind."""


class Versions:
    """The served versions of resources. ``changed``: callbacks, called when the served versions change."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[GVR, tuple[Served, ...]] = {}
        self.changed: list[Callable[[], None]] = [self._found.clear]
        catalog.changed.append(self._notify)

    def of(self, attrs: Attributes) -> Sequence[Served]:
        """The versions for a write, the request's first."""
        gvr = attrs.resource.gvr
        found = self._found.get(gvr)
        if found is None:
            asked = self._catalog.by_gvr(gvr) or Served(attrs.resource, gvr)
            others = (one for one in self._catalog if one.storage == asked.storage and one.info.gvr != gvr)
            found = self._found[gvr] = (asked, *others)
        return found

    def _notify(self) -> None:
        for callback in self.changed:
            callback()


class View(msgspec.Struct, frozen=True):
    """See the module. served: the version that is shown; asked: the version of the request."""

    attrs: Attributes
    served: Served
    asked: Served

    @property
    def kind(self) -> Kind:
        return kind_of(self.served, self.attrs)

    @property
    def api_version(self) -> str:
        group, version, _ = self.kind
        return group_version(group, version)

    @property
    def obj(self) -> Tree | None:
        """The object, with kind and apiVersion; None if it is deleted."""
        return self._shown(self.attrs.obj)

    @property
    def old(self) -> Tree | None:
        """The old object, with kind and apiVersion; None if it is created."""
        return self._shown(self.attrs.old)

    def _shown(self, doc: Tree | None) -> Tree | None:
        if doc is None:
            return None
        if self.attrs.subresource == SCALE:
            return scale_of(KINDS.of(self.served.info), self.served, doc)
        if "kind" in doc and not self.served.converts:
            return doc
        return {"apiVersion": self.api_version, "kind": self.kind[2], **self.served.from_storage(doc)}


def kind_of(served: Served, attrs: Attributes) -> Kind:
    """The kind of the resource, or of its subresource."""
    gvr = served.info.gvr
    sub = served.subresources.get(attrs.subresource)
    if sub is None:
        return gvr.group, gvr.version, served.info.kind
    return (sub.group, sub.version, sub.kind) if sub.version else (gvr.group, gvr.version, sub.kind)

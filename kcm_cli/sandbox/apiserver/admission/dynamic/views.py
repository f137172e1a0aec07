"""A write in the version that a policy or a webhook asks for.

A Scale subresource is seen as a Scale, though what is written is its parent.
"""

from collections.abc import Callable, Sequence

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.registry.conversion import from_storage
from kcm_cli.sandbox.apiserver.registry.scale_form import scale_of
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

SCALE = "scale"
Kind = tuple[str, str, str]
"""Group, version and kind."""


class Versions:
    """Knows the versions in which objects can be had. ``changed`` callbacks run when other ones are served."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[GVR, tuple[Served, ...]] = {}
        self.changed: list[Callable[[], None]] = [self._found.clear]
        catalog.changed.append(self._notify)

    def of(self, attrs: Attributes) -> Sequence[Served]:
        """That of the request first."""
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
    """See the module. asked: the version of the request."""

    attrs: Attributes
    served: Served
    asked: Served

    @property
    def kind(self) -> Kind:
        return kind_of(self.served, self.attrs)

    @property
    def api_version(self) -> str:
        group, version, _ = self.kind
        return f"{group}/{version}" if group else version

    @property
    def obj(self) -> Tree | None:
        """The object, with its kind; none if it is deleted."""
        return self._shown(self.attrs.obj)

    @property
    def old(self) -> Tree | None:
        """The object as it was, with its kind; none if it is created."""
        return self._shown(self.attrs.old)

    def _shown(self, doc: Tree | None) -> Tree | None:
        if doc is None:
            return None
        if self.attrs.subresource == SCALE:
            return scale_of(self.served, doc)
        if "kind" in doc and not self.served.converts:
            return doc
        return {"apiVersion": self.api_version, "kind": self.kind[2], **from_storage(self.served, doc)}


def kind_of(served: Served, attrs: Attributes) -> Kind:
    """What is written: the resource's kind, or its subresource's."""
    gvr = served.info.gvr
    sub = served.subresources.get(attrs.subresource)
    if sub is None:
        return gvr.group, gvr.version, served.info.kind
    return (sub.group, sub.version, sub.kind) if sub.version else (gvr.group, gvr.version, sub.kind)

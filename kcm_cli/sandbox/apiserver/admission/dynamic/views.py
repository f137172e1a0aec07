"""A write in the version that a policy or webhook requests. The scale subresource is shown as a Scale.

Custom objects are in the request's version. For another one they are converted, which a conversion webhook may have to
do: so what reads a view may raise Unconverted. All others are in the stored form.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR, group_version
from kcm_cli.sandbox.apiserver.errors import internal
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.registry.scale_form import scale_of
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree
from kcm_cli.sandbox.apiserver.unconverted import converted

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
    def scaled(self) -> Served:
        """The version whose paths lead to the replicas."""
        return self.asked if self.asked.info.custom else self.served

    @property
    def foreign(self) -> bool:
        """Whether it shows a custom object in another version than the request's."""
        return self.served is not self.asked and self.asked.info.custom and self.attrs.subresource != SCALE

    @property
    def at_once(self) -> "View":
        """The view; if a conversion webhook has to be called for it, that of the request's version."""
        conversion = self.served.conversion
        return self if conversion is None or conversion.lasts else replace(self, served=self.asked)

    async def prepare(self) -> None:
        """Convert the objects as they are now; inside ``one_request``. Raises ApiError 500."""
        if not self.foreign:
            return
        try:
            await converted(lambda: (self.obj, self.old))
        except ApiError as error:
            raise internal(str(error)) from None

    def back(self, doc: Tree) -> Tree:
        """A document in the view's version, in that of the write. Raises Unconverted, ApiError 500."""
        return _custom(doc, self.asked) if self.asked.info.custom else self.served.to_storage(doc)

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
            return scale_of(KINDS.of(self.scaled.info), self.scaled, doc)
        if self.served.info.custom:
            return _custom(doc, self.served)
        if "kind" in doc and not self.served.converts:
            return doc
        return {"apiVersion": self.api_version, "kind": self.kind[2], **self.served.from_storage(doc)}


def _custom(doc: Tree, served: Served) -> Tree:
    if served.conversion is None or doc.get("apiVersion") == served.info.api_version:
        return doc
    return served.conversion.versioned(doc, stored=True)


def kind_of(served: Served, attrs: Attributes) -> Kind:
    """The kind of the resource, or of its subresource."""
    gvr = served.info.gvr
    sub = served.subresources.get(attrs.subresource)
    if sub is None:
        return gvr.group, gvr.version, served.info.kind
    return (sub.group, sub.version, sub.kind) if sub.version else (gvr.group, gvr.version, sub.kind)

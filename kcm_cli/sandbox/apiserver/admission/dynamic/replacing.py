"""Replaces the object of a write by the one that a policy or webhook has made."""

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.admission.dynamic.views import SCALE, View
from kcm_cli.sandbox.apiserver.errors import internal
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.scale_form import set_replicas
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.schema.bodies import Target, misread, target_of
from kcm_cli.sandbox.apiserver.types import Attributes, ResourceInfo, Tree


class Replacer:
    """Decodes changed documents by their kind, sets defaults, and writes them to the attributes."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def replace(self, view: View, changed: object, *, strict: bool = False) -> None:
        """Replace the object. ``changed``: in the view's version; do not use it afterwards. ``strict``: it may have no
        unknown field, unless it is a custom resource. Raises ApiError 500, Unconverted.
        """
        if not isinstance(changed, dict):
            raise internal(misread(codec.encode(changed)))
        made: Tree = changed
        group, version, kind = view.kind
        target = Target(group, version, kind)
        if view.foreign:  # what another version does not know is not pruned
            self._default(view.served.info, made)
            made, target = view.back(made), target_of(view.asked.info)
        if self._schemas.node(target) is not None:
            made, unknown = self._schemas.finish_patched(target, made, internal)
            if strict and unknown and not self._schemas.is_custom(target):
                raise internal("strict decoding error: " + ", ".join(unknown))
        if view.attrs.subresource == SCALE:
            assert view.attrs.obj is not None
            set_replicas(view.scaled, view.attrs.obj, (made.get("spec") or {}).get("replicas") or 0)
            return
        if kind == view.served.info.kind and not view.foreign:
            self._default(view.served.info, made)
        _replace(view.attrs, view.back(made))

    def _default(self, info: ResourceInfo, changed: Tree) -> None:
        custom = self._schemas.custom.get(target_of(info))
        if custom is not None:
            custom.default(changed)
        else:
            KINDS.of(info).defaults(changed)


def _replace(attrs: Attributes, new: Tree) -> None:
    """Change ``attrs.obj`` to ``new``, in place, since others have references to it and its metadata."""
    current = attrs.obj
    if current is None or new is current:
        return
    metadata = current.get("metadata")
    fresh = dict(new)
    if isinstance(metadata, dict):
        changed = dict(fresh.get("metadata") or {})
        if changed.get("managedFields") == []:
            del changed["managedFields"]
        metadata.clear()
        metadata.update(changed)
        fresh["metadata"] = metadata
    current.clear()
    current.update(fresh)

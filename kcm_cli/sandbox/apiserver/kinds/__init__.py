"""The built-in kinds, one file each (see ``kind.Kind``). All modules of this package with a ``KIND`` are found."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.apply.resets import ALL, SPEC, SPEC_AND_METADATA, STATUS, Writable
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo

__all__ = ["KINDS", "Kind", "of", "strategy_of", "writable"]


def _found() -> Iterator[Kind]:
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not module.ispkg:
            kind = getattr(importlib.import_module(module.name), "KIND", None)
            if kind is not None:
                yield kind


KINDS: Mapping[tuple[str, str], Kind] = {(kind.group, kind.resource): kind for kind in _found()}
"""By group and resource (plural)."""


_PLAIN = Kind("", "", strategy=Strategy(names=None))


def of(resource: ResourceInfo) -> Kind:
    """The kind of a built-in resource; an empty one for custom resources and those without a file."""
    found = KINDS.get((resource.gvr.group, resource.gvr.plural))
    return found if found is not None and not resource.custom else _PLAIN


def strategy_of(resource: ResourceInfo, subresource: str = "") -> Strategy:
    """The strategy of a resource, or of a subresource with rules of its own (use its ``prepare_update`` and
    ``validate_update``)."""
    kind = of(resource)
    found = kind.subresources.get(subresource, _PLAIN.strategy) if subresource else kind.strategy
    return replace(found, namespaced=resource.namespaced)


def writable(resource: ResourceInfo, subresource: str) -> Writable:
    """The fields that writers of a resource or subresource can own."""
    kind = of(resource)
    own = kind.writable.get(subresource)
    if own is not None:
        return own
    if subresource == "status":
        return SPEC_AND_METADATA if resource.custom or kind.strategy.status_keeps_metadata else SPEC
    return STATUS if not subresource and "status" in resource.subresources else ALL

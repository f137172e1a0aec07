"""Kinds that a default API server does not serve, as custom resources with any content."""

from typing import Any

from kcm_cli.api.resource import Resource
from tests.kit.world import World, resource

_CRDS = resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)


async def serve(world: World, *kinds: Resource[Any], **subresources: Any) -> None:
    """From now on these are served."""
    for kind in kinds:
        await world.create(_CRDS, _definition(kind, subresources))
    await world.wait(5)


async def serve_selectable(world: World, kind: Resource[Any], field: str) -> None:
    """The same, where objects can be selected by a text of their spec."""
    doc = _definition(kind, {})
    (version,) = doc["spec"]["versions"]
    spec: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec["properties"] = {field: {"type": "string"}}
    version["schema"]["openAPIV3Schema"]["properties"] = {"spec": spec}
    version["selectableFields"] = [{"jsonPath": f".spec.{field}"}]
    await world.create(_CRDS, doc)
    await world.wait(5)


def _definition(kind: Resource[Any], subresources: dict[str, Any]) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": kind.gvr.version,
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": subresources,
    }
    named = {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind, "listKind": f"{kind.kind}List"}
    approved = {"api-approved.kubernetes.io": "unapproved, a stand-in"}
    scope = "Namespaced" if kind.namespaced else "Cluster"
    spec = {"group": kind.gvr.group, "scope": scope, "names": named, "versions": [version]}
    return {"metadata": {"name": f"{kind.plural}.{kind.gvr.group}", "annotations": approved}, "spec": spec}


async def make(world: World, kind: Resource[Any], doc: dict[str, Any]) -> None:
    """Create an object of a custom kind, which has to say what it is."""
    await world.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **doc})

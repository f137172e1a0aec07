"""A custom kind for tests: Widgets with any content."""

from typing import Any

from tests.unit.sandbox.nodes.world import World, resource

CRDS = resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)
WIDGETS = resource("widgets", "example.com")


async def serve_widgets(world: World, *, plural: str = "widgets", **subresources: Any) -> None:
    """From now on example.com/v1 Widget (of another plural, another kind) is served."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
    }
    kind = "Widget" if plural == "widgets" else plural.capitalize()
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await world.create(CRDS, {"metadata": {"name": f"{plural}.example.com"}, "spec": spec})
    await world.wait(5)

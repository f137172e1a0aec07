"""A custom kind for tests that need one: Widgets, whose content is as one likes."""

from typing import Any

from tests.unit.sandbox.nodes.world import World, resource

CRDS = resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)
WIDGETS = resource("widgets", "example.com")


async def serve_widgets(world: World, **subresources: Any) -> None:
    """From now on example.com/v1 Widget is served."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await world.create(CRDS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    await world.wait(5)

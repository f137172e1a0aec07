"""A custom kind for tests: Widgets with any content."""

from typing import Any

from tests.kit.world import World, resource

CRDS = resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)
WIDGETS = resource("widgets", "example.com")


def definition(plural: str, kind: str = "", **subresources: Any) -> dict[str, Any]:
    """The definition of example.com/v1 objects with any content."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
    }
    kind = kind or plural.capitalize()
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


async def serve_widgets(
    world: World, *, plural: str = "widgets", kind: str = "", wait_s: float = 5, **subresources: Any
) -> None:
    """From now on example.com/v1 Widget (of another plural, another kind) is served."""
    kind = kind or ("Widget" if plural == "widgets" else "")
    await world.create(CRDS, definition(plural, kind, **subresources))
    await world.wait(wait_s)

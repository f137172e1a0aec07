"""Kinds of Kubernetes that the sandbox does not serve, as custom resources: for controllers behind gates."""

from typing import Any

from tests.kit.world import World, resource

_DEFINITIONS = resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)


async def serve(world: World, plural: str, kind: str, group: str, version: str) -> None:
    """From now on it is served, for the whole cluster, with a status."""
    schema: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    form = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": group, "scope": "Cluster", "names": names, "versions": [{**form, "subresources": {"status": {}}}]}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes"}
    metadata = {"name": f"{plural}.{group}", "annotations": approved}
    await world.create(_DEFINITIONS, {"metadata": metadata, "spec": spec})
    await world.wait(5)

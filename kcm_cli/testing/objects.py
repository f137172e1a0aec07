"""Reads objects of any kind, as the API server sends them."""

from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.rest.transport import Request
from kcm_cli.trace.join import Target

Object = dict[str, Any]
"""An object as decoded JSON."""


async def get(client: Client, kind: str, name: str, namespace: str) -> Object:
    """An object. See ``Sandbox.get``."""
    path = _path(await _of_one(client, kind, name, namespace), namespace, name)
    return codec.decode(await client.call(Request("GET", path)), Object)


async def list_all(client: Client, kind: str, namespace: str, selector: str) -> list[Object]:
    """Objects. See ``Sandbox.list``."""
    query = (("labelSelector", selector),) if selector else ()
    resource = await _served(client, kind)
    answer = codec.decode(await client.call(Request("GET", _path(resource, namespace), query)), Object)
    version = resource.gvr.group_version
    return [{"apiVersion": version, "kind": resource.kind, **item} for item in answer["items"]]


async def target_of(client: Client, kind: str, name: str, namespace: str) -> Target:
    """An object, by the kind of the cluster. See ``Sandbox.trace``."""
    served = await _of_one(client, kind, name, namespace)
    return Target(served.kind, namespace if served.namespaced else "", name)


async def _of_one(client: Client, kind: str, name: str, namespace: str) -> ServedResource:
    """The resource of one object. Raises ValueError."""
    if not name or "/" in name:
        raise ValueError(f"an object has a name, which {name!r} is not; for several objects: list")
    served = await _served(client, kind)
    if served.namespaced and not namespace:
        raise ValueError(f"{served.gvr.plural} are in namespaces, and {name} is in none")
    return served


async def _served(client: Client, kind: str) -> ServedResource:
    known = await discover(client)
    found = known.named(kind)
    if found is None:
        near = known.near(kind)
        hint = f"did you mean {near}?" if near else "a custom one needs its CustomResourceDefinition"
        raise ValueError(f"the cluster serves no kind {kind!r} ({hint})")
    return found


def _path(resource: ServedResource, namespace: str, name: str = "") -> str:
    return resource.gvr.path(namespace if resource.namespaced else "", name)

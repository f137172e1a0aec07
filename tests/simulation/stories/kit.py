"""What stories are made of: what people do, step by step, and what the cluster around them is like."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Transport
from tests.kit.simulation import NAMESPACE, World

Tree = dict[str, Any]
Step = Callable[[World], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Story:
    """What people do, and what has to be so for it.

    about: the controllers that have to write something in it. steps: each is followed by a wait until all is settled.
    before: done before the first manager starts. only: the controllers that run, by name; all if empty (long times are
    cheap without those that do something every second). flags, through, served: see ``World.manager``. start: what goes
    wrong at the start of the manager counts, too; it is the same in all stories. check: what is wrong at the end beside
    what differs.
    """

    about: Sequence[str]
    steps: Sequence[Step]
    before: Sequence[Step] = ()
    nodes: int = 0
    only: Sequence[str] = ()
    flags: Sequence[str] = ()
    served: frozenset[str] = frozenset()
    through: Callable[[Transport], Transport] = lambda transport: transport
    start: bool = False
    check: Callable[[World], Sequence[str]] = lambda world: ()


def kind(path: str, *, namespaced: bool = True) -> Resource[PartialObject]:
    """A resource by its path: ``apps/v1/deployments``."""
    *group, version, plural = path.split("/")
    return Resource(GVR("/".join(group), version, plural), "", PartialObject, namespaced)


def wide(path: str) -> Resource[PartialObject]:
    """One of the whole cluster."""
    return kind(path, namespaced=False)


def of(kind: Resource[Any], namespace: str) -> str:
    return namespace if kind.namespaced else ""


# -- steps


def create(resource: Resource[Any], name: str, namespace: str = NAMESPACE, /, **fields: Any) -> Step:
    """Create an object. fields: its parts, ``metadata`` among them."""
    doc = {**fields, "metadata": {"name": name, **fields.get("metadata", {})}}

    async def step(world: World) -> None:
        await world.client.create(resource, of(resource, namespace), doc)

    return step


def create_doc(resource: Resource[Any], doc: Tree, namespace: str = NAMESPACE) -> Step:
    """Create an object of a document."""

    async def step(world: World) -> None:
        await world.client.create(resource, of(resource, namespace), doc)

    return step


def patch(resource: Resource[Any], name: str, body: Tree, namespace: str = NAMESPACE, *, subresource: str = "") -> Step:
    """Merge into an object."""

    async def step(world: World) -> None:
        where = of(resource, namespace)
        await world.client.patch(resource, where, name, body, content_type=MERGE, subresource=subresource)

    return step


def delete(resource: Resource[Any], name: str, propagation: str = "Background", namespace: str = NAMESPACE) -> Step:
    """Delete an object."""

    async def step(world: World) -> None:
        await world.client.delete(resource, of(resource, namespace), name, propagation=propagation)

    return step


def together(*steps: Step) -> Step:
    """Several at once."""

    async def step(world: World) -> None:
        for one in steps:
            await one(world)

    return step


def until(seconds: float) -> Step:
    """Let time pass until so long after the cluster began."""

    async def step(world: World) -> None:
        await world.clock.sleep(max(0.0, seconds - world.clock.monotonic()))

    return step


def wait(seconds: float) -> Step:
    """Let time pass."""

    async def step(world: World) -> None:
        await world.clock.sleep(seconds)

    return step


# -- kinds that a default API server lacks

DEFINITIONS = wide("apiextensions.k8s.io/v1/customresourcedefinitions")


def serving(resource: Resource[Any], kind: str, *selectable: str) -> Step:
    """From now on it is served, with a status. selectable: texts of its spec by which it is selected."""
    schema: Tree = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if selectable:
        spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema["properties"] = {"spec": {**spec, "properties": {name: {"type": "string"} for name in selectable}}}
    version: Tree = {
        "name": resource.gvr.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    if selectable:
        version["selectableFields"] = [{"jsonPath": f".spec.{name}"} for name in selectable]
    names = {"plural": resource.plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    scope = "Namespaced" if resource.namespaced else "Cluster"
    spec = {"group": resource.gvr.group, "scope": scope, "names": names, "versions": [version]}
    approved = {"api-approved.kubernetes.io": "unapproved, a stand-in"}
    metadata = {"annotations": approved}

    async def step(world: World) -> None:
        await create(DEFINITIONS, f"{resource.plural}.{resource.gvr.group}", metadata=metadata, spec=spec)(world)
        await world.clock.sleep(5)

    return step


def typed(resource: Resource[Any], kind: str, doc: Tree) -> Step:
    """Create an object of a custom kind, which has to say what it is."""
    return create_doc(resource, {"apiVersion": resource.api_version, "kind": kind, **doc})


# -- objects


def pod_spec(**fields: Any) -> Tree:
    return {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}], **fields}


def labels(**given: str) -> Mapping[str, Any]:
    return {"labels": given}


PODS = kind("v1/pods")
NODES = wide("v1/nodes")
SECRETS = kind("v1/secrets")
ACCOUNTS = kind("v1/serviceaccounts")
CONFIG_MAPS = kind("v1/configmaps")
SPACES = wide("v1/namespaces")
SERVICES = kind("v1/services")

"""Makes changes in a twin as the usual tools do: kubectl apply, drain, scale and delete, and the loss of nodes.

upstream: staging/src/k8s.io/kubectl/pkg/drain/{drain,filters}.go, pkg/cmd/apply/apply.go
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.api.well_known import HOSTNAME, MIRROR
from kcm_cli.machinery import codec, labels
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object as ObjectView
from kcm_cli.machinery.meta import PartialObject, controller_of
from kcm_cli.machinery.times import format_time
from kcm_cli.plan.answer import Object
from kcm_cli.plan.changes import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Metric,
    Options,
    RemoveNode,
    Scale,
    SetImage,
    Target,
)
from kcm_cli.plan.files import without_env
from kcm_cli.plan.observe import NODES, PODS, seen
from kcm_cli.plan.snapshot import PlanError
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.planning.actions import APPLY, MERGE, STRATEGIC_MERGE
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError, Conflict, NotFound, TooManyRequests
from kcm_cli.rest.served import Discovery, ServedResource
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.views import SimulatedPod

MANAGER = "kubectl"
RETRY_S, POLL_S = 5.0, 1.0
"""How often kubectl drain tries an eviction that a budget blocks again, and looks whether pods are gone."""
_OWN_MANAGERS = ("kubectl-client-side-apply", "kubectl", "before-first-apply", "kubectl-edit", "kubectl-create")
_TEMPLATES = ("deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers", "jobs", "cronjobs")
Note = Callable[[str, Object, str], None]


class Refusal(msgspec.Struct):
    """A request that the API server, or kubectl, rejected. kind: that of a Problem."""

    kind: str
    about: Object
    text: str


class Applying(msgspec.Struct):
    """Makes the changes. refusals: what failed. blocked: evictions that are waiting, with the reason."""

    twin: Twin
    options: Options
    note: Note
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    blocked: dict[Object, str] = msgspec.field(default_factory=dict)
    images: set[str] = msgspec.field(default_factory=set)
    _known: Discovery = msgspec.field(default_factory=Discovery)

    async def begin(self, changes: tuple[Change, ...]) -> list[str]:
        """Make all immediate changes. Returns the nodes to drain. Raises PlanError."""
        self._known = await discover(self.twin.client)
        drains: list[str] = []
        for change in changes:
            match change:
                case Drain(node=word):
                    drains += self._nodes(word)
                case FailNode(node=word) | RemoveNode(node=word):
                    for name in self._nodes(word):
                        await self._lose(name, removed=isinstance(change, RemoveNode))
                case Metric():
                    if problem := self.twin.metrics.give(change):
                        raise PlanError(problem)
                case _:
                    await self._write(change)
        return drains

    async def _write(self, change: Change) -> None:
        match change:
            case Apply():
                await self._apply(change)
            case AddNode():
                await self._add(change)
            case SetImage():
                await self._set_image(change)
            case Scale():
                await self._scale(change)
            case Delete():
                await self._delete(change)

    # -- nodes

    def _nodes(self, word: str) -> list[str]:
        """The node with this name, or the nodes that a label selector matches."""
        if "=" not in word:
            if self.twin.store.get(NODES, "", word) is None:
                raise PlanError(f'Error from server (NotFound): nodes "{word}" not found')
            return [word]
        try:
            selector = labels.parse(word)
        except FormatError as error:
            raise PlanError(f"error: {error}") from None
        nodes = ((stored.name, nested_map(stored.doc, "metadata", "labels")) for stored in self.twin.store.list(NODES))
        found = [name for name, own in nodes if selector.matches(own)]
        if not found:
            raise PlanError(f"error: no node has the label {word}")
        return found

    async def _lose(self, name: str, *, removed: bool) -> None:
        """Stop a node's kubelet, or delete its Node object."""
        if removed:
            await self.twin.client.delete(_NODES, "", name)
            return
        self.twin.agents.fail(name)
        self.note("node", Object("Node", "", name), "its kubelet stops")

    async def _add(self, change: AddNode) -> None:
        stored = self.twin.store.get(NODES, "", self._nodes(change.like)[0])
        assert stored is not None
        for number in range(1, change.count + 1):
            doc = node_like(stored.copy(), f"{change.like}-copy-{number}", format_time(self.twin.clock.now()))
            await self.twin.client.create(_NODES, "", doc)

    async def drain(self, node: str) -> None:
        """Cordon the node, and evict pods until none is left to evict."""
        client, about = self.twin.client, Object("Node", "", node)
        await client.patch(_NODES, "", node, {"spec": {"unschedulable": True}}, content_type=STRATEGIC_MERGE)
        waiting = {pod.key: pod for pod in self._pods_to_evict(node)}
        asked: set[str] = set()
        while waiting:
            for key, pod in sorted(waiting.items()):
                if not self._is_there(pod):
                    del waiting[key]
                    self.blocked.pop(_named(key), None)
                elif key not in asked and await self._evict(pod):
                    asked.add(key)
            if waiting:
                await self.twin.clock.sleep(RETRY_S if len(asked) < len(waiting) else POLL_S)
        self.note("drained", about, "")

    def _pods_to_evict(self, node: str) -> Iterator[SimulatedPod]:
        about = Object("Node", "", node)
        unmanaged, with_data = [], []
        for pod in self._pods_on(node):
            ref = controller_of(pod)
            if MIRROR in pod.annotations or (ref is not None and ref.kind == "DaemonSet"):
                continue
            over = pod.status.phase in ("Succeeded", "Failed")
            if ref is None and not over:
                unmanaged.append(pod.key)
            if not over and _has_empty_dir(self.twin.store.get(PODS, pod.namespace, pod.name)):
                with_data.append(pod.key)
            yield pod
        if unmanaged:
            names = ", ".join(unmanaged)
            text = f"kubectl drain needs --force: no controller will make these pods again: {names}"
            self.refusals.append(Refusal("drain", about, text))
        if with_data:
            text = f"kubectl drain needs --delete-emptydir-data: local data is lost of {', '.join(with_data)}"
            self.refusals.append(Refusal("drain", about, text))

    def _pods_on(self, node: str) -> Iterator[SimulatedPod]:
        for stored in self.twin.store.list(PODS):
            try:
                pod = codec.decode(stored.data, SimulatedPod)
            except codec.DecodeError:
                continue
            if pod.spec.node_name == node:
                yield pod

    def _is_there(self, pod: SimulatedPod) -> bool:
        stored = self.twin.store.get(PODS, pod.namespace, pod.name)
        return stored is not None and seen(stored.data).metadata.uid == pod.uid

    async def _evict(self, pod: SimulatedPod) -> bool:
        """Evict the pod. Returns whether it was accepted."""
        about = _named(pod.key)
        body: Doc = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
        path = PODS.path(pod.namespace, pod.name, "eviction")
        headers = {"content-type": "application/json"}
        try:
            await self.twin.client.call(Request("POST", path, (), headers, codec.encode(body)))
        except NotFound:
            return True
        except TooManyRequests as error:
            text = _budget(error)
            if about not in self.blocked:
                self.note("blocked", about, text)
            self.blocked[about] = text
            return False
        except ApiError as error:
            self.refusals.append(Refusal("refused", about, f"it cannot be evicted: {error}"))
            return True
        self.blocked.pop(about, None)
        self.note("evicted", about, f"from {pod.spec.node_name}")
        return True

    # -- objects

    async def _apply(self, change: Apply) -> None:
        doc = change.doc
        if self.twin.snapshot.salt:  # the live objects have digests in the place of these values
            doc = codec.decode_doc(codec.encode(doc))
            without_env(doc, self.twin.snapshot.salt)
        version, kind = str(doc.get("apiVersion") or ""), str(doc.get("kind") or "")
        name, named = (nested_str(doc, "metadata", field) for field in ("name", "namespace"))
        if kind and not name and (prefix := nested_str(doc, "metadata", "generateName")):
            raise PlanError(f"error: {change.where}: from {prefix}: cannot use generate name with apply")
        if not kind or not name:
            raise PlanError(f"error: {change.where}: {'kind' if not kind else 'metadata.name'} is missing")
        group, _, bare = version.rpartition("/")
        served = self._known.find_kind(group, kind, bare)
        if served is None:
            text = f'no matches for kind "{kind}" in version "{version}"'
            raise PlanError(f"error: resource mapping not found for name: {name} from {change.where}: {text}")
        namespace = (named or self._namespace) if served.namespaced else ""
        about = Object(kind, namespace, name)
        path = served.gvr.path(namespace, name)
        try:
            await self._send(path, {**doc}, force=self.options.force_conflicts)
        except Conflict as error:
            if error.causes and all(_is_own(cause.message) for cause in error.causes):
                await self._send(path, {**doc}, force=True)  # kubectl moves these fields to server-side apply
                return
            hint = "--force-conflicts takes them over"
            self.refusals.append(Refusal("refused", about, f"{_kubectl(error, change.where)} ({hint})"))
        except ApiError as error:
            self.refusals.append(Refusal("refused", about, _kubectl(error, change.where)))
        if served.gvr.plural == "customresourcedefinitions":
            await self.twin.clock.sleep(POLL_S)
            self._known = await discover(self.twin.client)

    async def _send(self, path: str, doc: Doc, *, force: bool) -> None:
        query = (("fieldManager", MANAGER), ("force", "true" if force else "false"))
        await self.twin.client.call(Request("PATCH", path, query, {"content-type": APPLY}, codec.encode(doc)))

    async def _set_image(self, change: SetImage) -> None:
        served, namespace, doc = await self._found(change.target)
        if served.gvr.plural not in _TEMPLATES:
            raise PlanError(f"--set-image: {change.target} has no pod template")
        spec: Any = doc.get("spec") or {}
        if served.gvr.plural == "cronjobs":
            spec = ((spec.get("jobTemplate") or {}).get("spec")) or {}
        pod: Any = ((spec.get("template") or {}).get("spec")) or {}
        names = [str(one.get("name")) for one in pod.get("containers") or ()]
        inits = [str(one.get("name")) for one in pod.get("initContainers") or ()]
        container = change.container or (names[0] if len(names) == 1 else "")
        if container not in (*names, *inits):
            what = f"has no container {container}" if container else "has several containers"
            raise PlanError(f"--set-image: {change.target} {what}: name one of {', '.join((*names, *inits))}")
        field_name = "initContainers" if container in inits else "containers"
        body: Doc = {"spec": {field_name: [{"name": container, "image": change.image}]}}
        patch: Doc = {"spec": {"template": body}}
        if served.gvr.plural == "cronjobs":
            patch = {"spec": {"jobTemplate": patch}}
        await self._change(change.target, served, namespace, patch, STRATEGIC_MERGE, "")

    async def _scale(self, change: Scale) -> None:
        served, namespace, _ = await self._found(change.target)
        if "scale" not in served.subresources:
            raise PlanError(f"--scale: {change.target} cannot be scaled")
        await self._change(change.target, served, namespace, {"spec": {"replicas": change.replicas}}, MERGE, "scale")

    async def _change(
        self, target: Target, served: ServedResource, namespace: str, patch: Doc, type_: str, subresource: str
    ) -> None:
        try:
            await self.twin.client.patch(
                served.partial(), namespace, target.name, patch, content_type=type_, subresource=subresource
            )
        except ApiError as error:
            about = Object(served.kind, namespace, target.name)
            self.refusals.append(Refusal("refused", about, _kubectl(error, str(target))))

    async def _delete(self, change: Delete) -> None:
        target = change.target
        served, namespace, _ = await self._found(target)
        await self.twin.client.delete(served.partial(), namespace, target.name, propagation=change.propagation)

    async def _found(self, target: Target) -> tuple[ServedResource, str, Doc]:
        """(resource, namespace, document) of a target. Raises PlanError."""
        served = resource_named(self._known, target.kind)
        if served is None:
            raise PlanError(f'error: the server doesn\'t have a resource type "{target.kind}"')
        namespace = (target.namespace or self._namespace) if served.namespaced else ""
        try:
            return served, namespace, await self.twin.client.get_doc(served.partial(), namespace, target.name)
        except NotFound as error:
            where = f" in namespace {namespace}" if namespace else ""
            raise PlanError(f"Error from server (NotFound): {error}{where}") from None
        except (ApiError, ValueError) as error:
            raise PlanError(f"{target}: {error}") from None

    @property
    def _namespace(self) -> str:
        return self.options.namespace or "default"


_NODES: Resource[ObjectView] = Resource(NODES, "Node", PartialObject, False)


def resource_named(known: Discovery, word: str) -> ServedResource | None:
    """The resource with this plural, singular, short name or kind, with or without its group; None if there is none."""
    bare, _, group = word.lower().partition(".")
    for served in known.preferred():
        words = (served.gvr.plural, served.singular, *served.short_names, served.kind.lower())
        if bare in words and (not group or served.gvr.group == group):
            return served
    return None


def node_like(node: Doc, name: str, now: str) -> Doc:
    """The body of a new Node with the properties of another one."""
    status = nested_map(node, "status")
    labels = {**nested_map(node, "metadata", "labels"), HOSTNAME: name}
    keeps = ("capacity", "allocatable", "nodeInfo", "daemonEndpoints", "declaredFeatures", "features")
    conditions: list[object] = [
        {**one, "lastHeartbeatTime": now, "lastTransitionTime": now}
        for one in nested_list(status, "conditions")
        if isinstance(one, dict) and one.get("type") != "Ready"
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    conditions.append({**ready, "message": "kubelet is posting ready status", "lastTransitionTime": now})
    kept = (one for one in nested_list(node, "spec", "taints") if isinstance(one, dict))
    taints = [one for one in kept if not nested_str(one, "key").startswith("node.kubernetes.io/")]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {**{key: status[key] for key in keeps if key in status}, "conditions": conditions},
    }


def _named(key: str) -> Object:
    namespace, _, name = key.partition("/")
    return Object("Pod", namespace, name)


def _has_empty_dir(stored: Any) -> bool:
    volumes = nested_list(stored.doc, "spec", "volumes") if stored is not None else ()
    return any("emptyDir" in nested_map(volume) for volume in volumes)


def _budget(error: ApiError) -> str:
    causes = "; ".join(cause.message for cause in error.causes if cause.message)
    return f"{error}{f' ({causes})' if causes else ''}"


def _is_own(message: str) -> bool:
    """Whether a conflict is about fields that kubectl itself has set."""
    return any(f'conflict with "{name}"' in message for name in _OWN_MANAGERS)


def _kubectl(error: ApiError, where: str) -> str:
    """An error in kubectl's format."""
    if isinstance(error, Conflict):
        return f"error: {error}"
    return f'Error from server ({error.reason}): error when creating "{where}": {error}'

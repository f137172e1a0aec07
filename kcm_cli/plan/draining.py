"""Drains nodes as ``kubectl drain`` does: all are cordoned first, then emptied one after the other.

upstream: staging/src/k8s.io/kubectl/pkg/cmd/drain/drain.go, pkg/drain/{drain,filters}.go
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.api.well_known import MIRROR
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map
from kcm_cli.machinery.meta import Object as ObjectView
from kcm_cli.machinery.meta import PartialObject, controller_of, split_key
from kcm_cli.plan.answer import Object
from kcm_cli.plan.formatting import counted
from kcm_cli.plan.observe import DAEMON_SETS, NODES, PODS, seen
from kcm_cli.plan.refusals import Refusal, as_kubectl, refused
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.planning.actions import STRATEGIC_MERGE
from kcm_cli.rest.errors import ApiError, NotFound, TooManyRequests
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.store import Event, Stored
from kcm_cli.sandbox.views import SimulatedPod

RETRY_S, POLL_S = 5.0, 1.0
"""How often kubectl drain tries an eviction that a budget blocks again, and looks whether pods are gone."""
_DAEMONS, _DATA, _FORCE = "--ignore-daemonsets", "--delete-emptydir-data", "--force"
NODE_RESOURCE: Resource[ObjectView] = Resource(NODES, "Node", PartialObject, False)


class _Eviction(Enum):
    """The answer to an eviction: LATER if a budget blocks it, NEVER if it fails otherwise."""

    DONE, LATER, NEVER = range(3)


class Note(Protocol):
    """Records what occurs. at: the twin's time; now by default."""

    def __call__(self, what: str, about: Object, detail: str = "", at: float | None = None) -> None: ...


class Draining(msgspec.Struct):
    """One ``kubectl drain`` of several nodes. blocked: evictions that are waiting, with the reason. left: the nodes
    that are not drained yet, with their pods that are left; None before its turn.

    Where each pod is, is learned once for all nodes, and kept up to date: a look at all pods for each node would cost
    nodes times pods.
    """

    twin: Twin
    note: Note
    refusals: list[Refusal]
    blocked: dict[Object, str] = msgspec.field(default_factory=dict)
    left: dict[str, list[str] | None] = msgspec.field(default_factory=dict)
    _nodes: dict[str, str] = msgspec.field(default_factory=dict)
    _placed: dict[str, set[str]] = msgspec.field(default_factory=dict)
    _looks: bool = False

    async def run(self, nodes: Sequence[str]) -> None:
        """Cordon the nodes and evict their pods. Takes as long as budgets block."""
        self._look()
        self.left = dict.fromkeys(nodes)
        for node in self.left:
            await self._cordon(node)
        for node in list(self.left):
            failed = await self._drain(node)
            del self.left[node]
            about = Object("Node", "", node)
            if failed:
                text = f"it is not drained: {counted(failed, 'pod')} cannot be evicted, and kubectl gives it up"
                self.refusals.append(Refusal("drain", about, text))
            else:
                self.note("drained", about, "")

    def command(self, nodes: Sequence[str]) -> str:
        """The command that does this, with the flags that it needs for the pods that are there now."""
        self._look()
        needed = {flag for node in nodes for pod in self._pods_on(node) for flag in self._flags(pod)}
        flags = (flag for flag in (_DAEMONS, _DATA, _FORCE) if flag in needed)
        return " ".join(("kubectl drain", *dict.fromkeys(nodes), *flags))

    def _flags(self, pod: SimulatedPod) -> tuple[str, ...]:
        """The flags without which kubectl refuses to drain the node of a pod. A pod with _DAEMONS stays on it."""
        ref = controller_of(pod)
        if MIRROR in pod.annotations or pod.status.phase in ("Succeeded", "Failed"):
            return ()
        unmanaged = ref is None
        if ref is not None and ref.kind == "DaemonSet":
            if self.twin.store.get(DAEMON_SETS, pod.namespace, ref.name) is not None:
                return (_DAEMONS,)
            unmanaged = True
        has_data = _has_empty_dir(self.twin.store.get(PODS, pod.namespace, pod.name))
        return ((_DATA,) if has_data else ()) + ((_FORCE,) if unmanaged else ())

    def problems(self, within: str) -> Iterator[Refusal]:
        """What is not done. within: the time that it had, such as ``30m``."""
        for about, text in sorted(self.blocked.items()):
            yield Refusal("pdb", about, text)
        current = next((node for node, pods in self.left.items() if pods is not None), "")
        for node, pods in self.left.items():
            about = Object("Node", "", node)
            if pods is None:
                text = f"its drain has not begun within {within}: {current or 'another node'} is not drained yet"
                yield Refusal("drain", about, text)
                continue
            waiting = sum(_named(key) in self.blocked for key in pods)
            of_them = "" if waiting == len(pods) else f"{waiting} of them "
            why = f", {of_them}held by disruption budgets" if waiting else ", which do not end"
            yield Refusal("drain", about, f"it is not drained within {within}: {counted(len(pods), 'pod')} left{why}")

    async def _cordon(self, node: str) -> None:
        body: Doc = {"spec": {"unschedulable": True}}
        try:
            await self.twin.client.patch(NODE_RESOURCE, "", node, body, content_type=STRATEGIC_MERGE)
        except ApiError as error:
            text = f'error: unable to cordon node "{node}": {error}'
            self.refusals.append(Refusal("drain", Object("Node", "", node), text))

    async def _drain(self, node: str) -> int:
        """Evict the pods of a node, and wait until they are gone. Returns how many cannot be evicted: kubectl goes on
        with the next node when the others are gone."""
        waiting = {pod.key: pod for pod in self._pods_to_evict(node)}
        asked: dict[str, _Eviction] = {}
        while waiting:
            for key, pod in sorted(waiting.items()):
                if not self._is_there(pod):
                    del waiting[key]
                    self.blocked.pop(_named(key), None)
                elif asked.get(key, _Eviction.LATER) is _Eviction.LATER:
                    asked[key] = await self._evict(pod)
            self.left[node] = sorted(waiting)
            answers = {asked[key] for key in waiting}
            if answers <= {_Eviction.NEVER}:
                break
            await self.twin.clock.sleep(RETRY_S if _Eviction.LATER in answers else POLL_S)
        return len(waiting)

    def _pods_to_evict(self, node: str) -> Iterator[SimulatedPod]:
        about = Object("Node", "", node)
        unmanaged, with_data = [], []
        for pod in self._pods_on(node):
            flags = self._flags(pod)
            if MIRROR in pod.annotations or _DAEMONS in flags:
                continue
            if _FORCE in flags:
                unmanaged.append(pod.key)
            if _DATA in flags:
                with_data.append(pod.key)
            yield pod
        if unmanaged:
            names = ", ".join(unmanaged)
            text = f"kubectl drain needs {_FORCE}: no controller will make these pods again: {names}"
            self.refusals.append(Refusal("drain", about, text))
        if with_data:
            text = f"kubectl drain needs {_DATA}: local data is lost of {', '.join(with_data)}"
            self.refusals.append(Refusal("drain", about, text))

    def _look(self) -> None:
        """Begin to keep track of which pods are on which node."""
        if self._looks:
            return
        self._looks = True
        for stored in self.twin.store.list(PODS):
            self._place(stored)
        self.twin.store.subscribe(PODS, self._written)

    def _written(self, event: Event) -> None:
        key = event.stored.key
        if event.type == "DELETED":
            self._placed.get(self._nodes.pop(key, ""), set()).discard(key)
        elif key not in self._nodes:  # a pod stays on its node
            self._place(event.stored)

    def _place(self, stored: Stored) -> None:
        pod = codec.decode_or_none(stored.data, SimulatedPod)
        if pod is not None and pod.spec.node_name:
            self._nodes[stored.key] = pod.spec.node_name
            self._placed.setdefault(pod.spec.node_name, set()).add(stored.key)

    def _pods_on(self, node: str) -> Iterator[SimulatedPod]:
        for key in sorted(self._placed.get(node, ())):
            stored = self.twin.store.get(PODS, *split_key(key))
            pod = codec.decode_or_none(stored.data, SimulatedPod) if stored is not None else None
            if pod is not None:
                yield pod

    def _is_there(self, pod: SimulatedPod) -> bool:
        stored = self.twin.store.get(PODS, pod.namespace, pod.name)
        return stored is not None and seen(stored.data).metadata.uid == pod.uid

    async def _evict(self, pod: SimulatedPod) -> _Eviction:
        """Evict the pod."""
        about = _named(pod.key)
        body: Doc = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
        path = PODS.path(pod.namespace, pod.name, "eviction")
        headers = {"content-type": "application/json"}
        began = self.twin.clock.monotonic()
        try:
            await self.twin.client.call(Request("POST", path, (), headers, codec.encode(body)))
        except NotFound:
            return _Eviction.DONE
        except TooManyRequests as error:
            text = _budget(error)
            if about not in self.blocked:
                self.note("blocked", about, text)
            self.blocked[about] = text
            return _Eviction.LATER
        except ApiError as error:
            if error.namespace_terminating:
                return _Eviction.DONE if self._is_deleted(pod) else _Eviction.LATER
            self.refusals.append(refused(about, error, f"it cannot be evicted: {as_kubectl(error)}"))
            return _Eviction.NEVER
        self.blocked.pop(about, None)
        self.note("evicted", about, f"from {pod.spec.node_name}", began)
        return _Eviction.DONE

    def _is_deleted(self, pod: SimulatedPod) -> bool:
        stored = self.twin.store.get(PODS, pod.namespace, pod.name)
        return stored is None or seen(stored.data).deleting


def _named(key: str) -> Object:
    return Object("Pod", *split_key(key))


def _has_empty_dir(stored: Any) -> bool:
    volumes = nested_list(stored.doc, "spec", "volumes") if stored is not None else ()
    return any("emptyDir" in nested_map(volume) for volume in volumes)


def _budget(error: ApiError) -> str:
    causes = "; ".join(cause.message for cause in error.causes if cause.message)
    return f"{error}{f' ({causes})' if causes else ''}"

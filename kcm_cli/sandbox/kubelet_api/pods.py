"""Stored pods, and the runs of their containers."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.pods import is_terminal
from kcm_cli.sandbox.apiserver.store import Compacted, Store, Stored, Watcher
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.nodes import shape
from kcm_cli.sandbox.nodes.annotations import PREFIX
from kcm_cli.sandbox.views import SimulatedPod

PODS, _NODES = GVR("", "v1", "pods"), GVR("", "v1", "nodes")
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_UNSEEN = datetime(1, 1, 1, tzinfo=UTC)
_REASONS = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


class Run(msgspec.Struct, frozen=True):
    """One run of a container, from the pod's status."""

    started: datetime
    finished: datetime | None
    number: int = 1
    id: str = ""
    """That of its container."""


class Pod:
    """A stored pod."""

    def __init__(self, stored: Stored, annotated: Callable[[SimulatedPod], Mapping[str, str]]) -> None:
        doc: Tree = stored.doc
        self.doc = doc
        self.namespace, self.name = stored.namespace, stored.name
        self.key = f"{stored.namespace}/{stored.name}"
        self.view = codec.decode(stored.data, SimulatedPod)
        self._annotations = annotated(self.view)
        self.default = str(self.doc["spec"]["containers"][0]["name"])

    @property
    def ended(self) -> bool:
        """Whether its kubelet has stopped it, so that there is no network any more."""
        return is_terminal(self.view)

    def annotation(self, name: str, container: str) -> str | None:
        """The annotation for a container, or for all."""
        annotations = self._annotations
        own = annotations.get(f"{PREFIX}{name}.{container}")
        return annotations.get(f"{PREFIX}{name}") if own is None else own

    def run(self, name: str, *, previous: bool) -> Run | None:
        """The current run of a container, or the previous one."""
        return _run(self.doc, name, previous=previous)

    def no_logs(self, name: str, *, previous: bool) -> str:
        """Why there are no logs of a container that has not run, in the words of a kubelet.

        upstream: pkg/kubelet/kubelet_pods.go#validateContainerLogStatus
        """
        status = _status(self.doc, name)
        shown = f"container {quote(name)} in pod {quote(self.name)}"
        if status is None and self._is_reported:
            return f"{shown} is not available"
        if previous:
            return f"previous terminated {shown} not found"
        if status is None:  # what a kubelet has not reported yet, it knows
            return f"{shown} is waiting to start: ContainerCreating"
        state: Tree = status.get("state") or {}
        if state.get("terminated") or (status.get("lastState") or {}).get("terminated"):
            return f"{shown} is terminated"
        if state.get("waiting") is None:
            return f"{shown} is waiting to start - no logs yet"
        reason = str(state["waiting"].get("reason") or "")
        return f"{shown} is waiting to start: {_REASONS.get(reason, reason)}"

    @property
    def _is_reported(self) -> bool:
        """Whether the status has all containers that the kubelet knows. A pod that it has rejected has none."""
        return is_terminal(self.view) or any((self.doc.get("status") or {}).get(each) for each in _STATUSES)


def _status(doc: Tree, name: str) -> Tree | None:
    status: Tree = doc.get("status") or {}
    found: Iterator[Tree] = (one for each in _STATUSES for one in status.get(each) or () if one.get("name") == name)
    return next(found, None)


def _run(doc: Tree, name: str, *, previous: bool) -> Run | None:
    status = _status(doc, name) or {}
    number = int(status.get("restartCount") or 0) + 1
    if previous:
        states: list[Tree] = [status.get("lastState") or {}]
        if not (status.get("state") or {}).get("waiting"):  # otherwise the previous run is the latest one
            number -= 1
    else:
        states = [status.get("state") or {}, status.get("lastState") or {}]
    for state in states:
        running, ended = state.get("running"), state.get("terminated")
        if running and running.get("startedAt"):
            return Run(parse_time(running["startedAt"]), None, number, status.get("containerID") or "")
        if ended and ended.get("containerID"):  # otherwise no container was seen
            started = parse_time(ended["startedAt"]) if ended.get("startedAt") else _UNSEEN
            finished = parse_time(ended["finishedAt"]) if ended.get("finishedAt") else started
            return Run(started, finished, number, ended["containerID"])
    return None


def shown_since(store: Store, pod: Pod, run: Run) -> Stored | None:
    """The first version of a pod that shows a run, as far as its history is kept; None if no version does."""
    found: Stored | None = None
    wanted = run.id.encode()
    for version in store.versions(PODS, pod.namespace, pod.name):
        if wanted in version.data:
            found = version
        elif found is not None:
            break
    return found


def failed_kubelet(store: Store, pod: Pod) -> str:
    """The address of a pod's kubelet if nobody can connect to it, since its node is a failed one; otherwise empty."""
    node = store.get(_NODES, "", pod.doc["spec"].get("nodeName") or "")
    doc: Tree = {"metadata": {}} if node is None else node.doc
    annotations: Tree = doc["metadata"].get("annotations") or {}
    if not all(annotations.get(each) == "true" for each in (shape.SIMULATED, shape.FAILED)):
        return ""
    addresses: list[Tree] = (doc.get("status") or {}).get("addresses") or []
    known = (one.get("address") for one in addresses if one.get("type") == "InternalIP")
    address = next(filter(None, known), doc["metadata"]["name"])
    return host_and_port(address, shape.KUBELET_PORT)


def end_of(store: Store, pod: Pod, name: str) -> datetime | None:
    """When the run that ``pod`` shows ended; None if it has not."""
    stored = store.get(PODS, pod.namespace, pod.name)
    if stored is None:
        return _UNSEEN
    doc: Tree = stored.doc
    if doc["metadata"].get("uid") != pod.view.uid:
        return _UNSEEN
    before, now = _status(pod.doc, name) or {}, _status(doc, name) or {}
    if before.get("containerID") != now.get("containerID"):
        return _UNSEEN
    found = _run(doc, name, previous=False)
    return _UNSEEN if found is None else found.finished


class Changes:
    """Waits for the changes of a pod from now on. For one reader."""

    def __init__(self, store: Store, pod: Pod) -> None:
        self._store = store
        self._pod = pod
        self._watcher = self._watched()
        self._woken = False

    async def wait(self) -> None:
        """Wait until the pod may have changed, or for ``wake``."""
        while not (self._woken or self._changed()):
            await self._watcher.wait()
        self._woken = False

    def wake(self) -> None:
        """Make ``wait`` return, or the next one."""
        self._woken = True
        self._watcher.wake()

    def close(self) -> None:
        """Stop watching. May be called twice."""
        self._watcher.close()

    def _changed(self) -> bool:
        try:
            return any(event.stored.name == self._pod.name for event in self._watcher.take())
        except Compacted:  # it may be among the changes that were missed
            self._watcher.close()
            self._watcher = self._watched()
            return True

    def _watched(self) -> Watcher:
        return self._store.watch(PODS, self._pod.namespace, self._store.revision)


async def until(store: Store, pod: Pod, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds that changes of a pod may make true."""
    changes = Changes(store, pod)
    try:
        while not holds():
            await changes.wait()
    finally:
        changes.close()

"""The pod side of the simulated kubelets: one informer, one workqueue and a few workers for all nodes.

Guarantees: a status is written only if it differs from the last one written. Changes that become due while a write
waits are written together. A pod is deleted (grace period 0, with its UID as precondition) only a moment after its last
status was written.

upstream: pkg/kubelet/kubelet.go, pkg/kubelet/pod_workers.go, pkg/kubelet/status/status_manager.go
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import Condition, PodIP
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.actions import STRATEGIC_MERGE, Notice
from kcm_cli.planning.pods import is_terminal
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.runtime.cause_ring import EVICTED
from kcm_cli.runtime.store import NODE, by_node
from kcm_cli.sandbox.events import ref_of
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes import eviction, machine, resizing
from kcm_cli.sandbox.nodes.admission import Rejection
from kcm_cli.sandbox.nodes.agents import Agent
from kcm_cli.sandbox.nodes.behaviour import Behaviour
from kcm_cli.sandbox.nodes.conditions import Reported
from kcm_cli.sandbox.nodes.eviction import Alive
from kcm_cli.sandbox.nodes.hostnames import problem_of
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.nodes.machine import SANDBOX, Hold, PodState
from kcm_cli.sandbox.nodes.pod_events import notices, replaced, resized, unhealthy
from kcm_cli.sandbox.nodes.probes import Verdicts
from kcm_cli.sandbox.nodes.references import referred_to
from kcm_cli.sandbox.nodes.resizing import Pending, differs, with_granted
from kcm_cli.sandbox.nodes.restore import restore
from kcm_cli.sandbox.nodes.script import PodScript, Role
from kcm_cli.sandbox.nodes.status import Known, PodAddresses, rejected, render
from kcm_cli.sandbox.nodes.status_patches import (
    contradicted,
    shown_by,
    status_patch,
    with_removed_addresses,
    with_removed_reasons,
)
from kcm_cli.sandbox.views import (
    NODES,
    POD_METADATA,
    PODS,
    SimulatedPod,
    SimulatedPodSpec,
    containers_of,
)
from kcm_cli.sandbox.work import act_for, work_on

WORKERS = 16
_ENDING = frozenset(("TERM", "INT", "QUIT"))
"""The signals that end programs which handle them, as those of most images do."""
UNMOUNT_S = 0.3
"""How long a pod exists after its last status, while its volumes are unmounted."""


class Life(msgspec.Struct):
    """A pod on its node.

    granted: a spec with the resources allocated to it. pending: a deferred resize. reported: the last status as
    JSON, which takes a fifth of the memory of the document.
    """

    uid: str
    agent: Agent
    pod: SimulatedPod
    script: PodScript
    state: PodState
    place: PodAddresses
    conditions: Sequence[Condition | Reported]
    granted: SimulatedPodSpec
    reported: bytes = b""
    version: str = ""
    pending: Pending | None = None
    kills: list[tuple[int, int, str]] = msgspec.field(default_factory=list)
    """Containers to be killed: index, exit code, reason."""
    evicted: str = ""
    """The message of its eviction; empty if it is not to be evicted."""
    files: frozenset[str] = frozenset()
    """The files that it found in folders of the node."""
    seen_at: float = -math.inf
    """The time until which Events about its probes have been emitted."""
    restored: int = 0
    """The version with the status of a snapshot, from which it is to go on; 0 for none."""

    def share(self, pod: SimulatedPod) -> None:
        """Refer to the version in the cache, which has the status that this kubelet has written, and not to the one
        before: both take 7 KiB. Only if the pod is otherwise as it was: what another client changed waits for a sync.
        """
        old = self.pod
        if _as_played(old) == _as_played(pod):
            self.pod = pod
            if self.granted is old.spec:
                self.granted = pod.spec


class _Ended(msgspec.Struct, frozen=True):
    """A pod whose containers have ended, or that was rejected.

    version: the resourceVersion with which that was reported. unmounted_at: the monotonic time from which the pod may
    be deleted.
    """

    uid: str
    version: str
    unmounted_at: float

    def is_shown_by(self, pod: SimulatedPod) -> bool:
        """Whether the pod in the cache is that which was reported, or a later one."""
        return pod.version >= (parse_int64(self.version) or 0)


class Obstructions(Protocol):
    """Finds what keeps pods from starting."""

    async def synced(self) -> None:
        """Wait until its caches are filled."""

    def of_volumes(self, pod: SimulatedPod) -> Hold | None:
        """Return what keeps the whole pod from starting, or None."""

    def of_containers(self, pod: SimulatedPod, script: PodScript, images: Images) -> Sequence[Hold | None]:
        """Return what keeps each container from starting, in the order of the script."""

    def remarks(self, pod: SimulatedPod) -> Iterable[tuple[str, str]]:
        """Return reason and message of the Events about what is wrong with a pod that starts nevertheless."""


class Kubelets:
    """The pod side of all simulated kubelets."""

    def __init__(self, means: Means, agents: Alive, behaviour: Behaviour, obstacles: Obstructions) -> None:
        """behaviour: what pods do. obstacles: finds what keeps them from starting."""
        self._client, self._events, self._clock = means.kubelet, means.events, means.clock
        self._pods = pods = means.informers.get(PODS)
        self._nodes = means.informers.get(NODES)
        self._agents, self._behaviour, self._obstacles = agents, behaviour, obstacles
        self._lives: dict[str, Life] = {}
        self._resting: dict[str, Agent] = {}
        self._waiting: dict[str, frozenset[str]] = {}
        """The pods with volumes or containers that cannot start, each with the ids of the objects that it refers to."""
        self._awaited: dict[str, set[str]] = {}
        """The same by object. Some are written often, and not one of a thousand waiting pods may refer to them."""
        self._ended: dict[str, _Ended] = {}
        """The pods that have ended: those that are being deleted stay for a moment, and of the others the cache still
        shows an earlier version."""
        self._queue = means.queue("pods")
        self._ruled = means.queue("rules of pods")
        """The pods whose rules have changed. All of a large cluster take seconds."""
        self._record = means.record("kubelet", "Pod")
        agents.listen(self.node_changed)
        pods.store.add_index(NODE, by_node)
        pods.listen(on_add=self._seen, on_update=lambda _, pod: self._seen(pod), on_delete=self._deleted)

    async def run(self) -> None:
        """Run the workers until cancelled."""
        await self._obstacles.synced()
        await self._pods.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(work_on(self._queue, WORKERS, self._sync, self._record), name="pods")
            group.create_task(work_on(self._ruled, 1, self._apply_rules, self._record), name="rules of pods")

    def node_changed(self, name: str) -> None:
        """Enqueue the pods of a node that was added or removed, failed or recovered. If it was added again under its
        name, its new kubelet first takes over those that are still there, with their addresses and resources."""
        agent = self._agents.alive(name)
        for pod in self._pods.store.by_index(NODE, name):
            life = self._lives.get(pod.key)
            if agent is not None and life is not None and life.agent is not agent:
                self._hand_over(pod.key, life, agent)
            self._queue.add(pod.key)

    @staticmethod
    def _hand_over(key: str, life: Life, agent: Agent) -> None:
        life.agent, life.place = agent, PodAddresses(life.place.pod_ip, agent.host_ip)
        agent.occupancy.add(key, with_granted(life.pod, life.granted))
        if life.pending is not None:
            agent.deferred.add(key)
        if life.place.pod_ip and not life.pod.spec.host_network:
            agent.addresses.claim(life.place.pod_ip)

    def object_changed(self, which: str) -> None:
        """Enqueue the waiting pods that refer to an object, by its id (all, if it is empty), because it has changed."""
        for key in self._awaited.get(which, ()) if which else self._waiting:
            self._queue.add(key)

    def volumes_attached(self, node: str) -> None:
        """Enqueue the waiting pods of a node whose attached volumes have changed."""
        for key in self._waiting:
            if self._lives[key].agent.name == node:
                self._queue.add(key)

    def kill(self, key: str, container: str, code: int, reason: str) -> None:
        """Kill a running container, by default the first regular one. Raises LookupError."""
        life = self._lives.get(key)
        if life is None:
            raise LookupError(f"pod {key} does not run on a simulated node")
        for index, each in enumerate(life.script.containers):
            if each.name == container or (not container and each.role is Role.MAIN):
                if life.state.containers[index].started_at is None:
                    raise LookupError(f"container {each.name} of pod {key} does not run")
                life.kills.append((index, code, reason))
                self._queue.add(key)
                return
        raise LookupError(f"pod {key} has no container {container}")

    def signal(self, key: str, container: str, name: str) -> None:
        """Send a signal to the first process of a running container. Those that end programs end it as a stop does; it
        ignores the others, and SIGKILL, as the first process."""
        life = self._lives.get(key)
        if life is None or name not in _ENDING:
            return
        index = next((at for at, each in enumerate(life.script.containers) if each.name == container), -1)
        if not 0 <= index < len(life.state.containers):
            return
        now, current = self._clock.now().timestamp(), life.state.containers[index]
        found = machine.ends_after_signal(life.script, life.state, index, now)
        if found is None:
            return
        at, code = found

        def end() -> None:
            if self._lives.get(key) is life and life.state.containers[index].starts == current.starts:
                life.kills.append((index, code, ""))
                self._queue.add(key)

        self._clock.call_later(max(0.0, at - now), end)

    def running_on(self, node: str) -> Sequence[SimulatedPod]:
        """The pods of a node that are not being stopped."""
        return [
            pod
            for pod in self._pods.store.by_index(NODE, node)
            if (life := self._lives.get(pod.key)) is not None and life.uid == pod.uid and life.state.stop is None
        ]

    def evict(self, key: str, why: str) -> None:
        """Stop a pod, which fails."""
        life = self._lives.get(key)
        if life is not None:
            life.evicted = why
            self._queue.add(key)

    def set_probe_results(self, key: str, container: str, verdicts: Verdicts) -> None:
        """Apply new probe results to a running container whose files have changed."""
        life = self._lives.get(key)
        if life is None:
            return
        now = self._clock.now().timestamp()
        for index, each in enumerate(life.script.containers[: len(life.state.containers)]):
            if each.name == container:
                life.state = machine.tell(machine.advance(life.script, life.state, now), index, now, verdicts)
                self._queue.add(key)

    def restored(self, versions: Mapping[str, int]) -> None:
        """Go on with these pods as their status says since this revision: a snapshot has restored it. What their
        containers have done since the snapshot is forgotten."""
        for key, version in versions.items():
            if (life := self._lives.get(key)) is not None:
                life.restored = version

    def rules_changed(self, namespace: str) -> None:
        """Apply changed rules to the pods of a namespace (all, if it is empty), from now on."""
        for key, life in self._lives.items():
            if namespace in ("", life.pod.namespace):
                self._ruled.add(key)

    async def _apply_rules(self, key: str) -> None:
        life = self._lives.get(key)
        if life is None:
            return
        new = self._script(life.pod, life.place, life.files)
        if new != life.script:
            now = self._clock.now().timestamp()
            state = machine.advance(life.script, life.state, now)
            known = life.script.problems
            life.state, life.script = machine.rewrite(life.script, new, state, now), new
            self._emit_problems(life, known)
            self._queue.add(key)

    def enqueue_all(self) -> None:
        """Enqueue every pod."""
        for key in self._lives:
            self._queue.add(key)

    def _seen(self, pod: SimulatedPod) -> None:
        if not pod.spec.node_name:
            return
        life = self._lives.get(pod.key)
        known = life or self._ended.get(pod.key)
        if known is None or known.version != pod.metadata.resource_version:
            self._queue.add(pod.key)
        elif life is not None:
            life.share(pod)
        elif not pod.deleting:
            del self._ended[pod.key]

    def _deleted(self, pod: SimulatedPod) -> None:
        if any(pod.key in known for known in (self._lives, self._resting, self._ended)):
            self._queue.add(pod.key)

    async def _sync(self, key: str) -> None:
        pod = self._pods.store.get(key)
        life, files = self._life_of(key, pod)
        self._wake(key)
        ended = self._ended.get(key)
        if ended is not None and (pod is None or ended.uid != pod.uid or (ended.is_shown_by(pod) and not pod.deleting)):
            del self._ended[key]
            ended = None
        if pod is None or (ended is not None and not pod.deleting):
            return  # it has ended, and the event that says so follows
        agent = self._agents.alive(pod.spec.node_name)
        if agent is None:
            return
        act_for(agent.name)
        if ended is not None and (rest_s := ended.unmounted_at - self._clock.monotonic()) > 0:
            self._queue.add_after(key, rest_s)
            return
        if ended is not None or is_terminal(pod):
            if life is not None:
                self._forget(key, life)  # another client has reported that it ended
            self._ended.pop(key, None)
            await self._delete(pod)
            return
        if life is None and not pod.deleting:
            rest_s = self._behaviour.rests_s(pod, self._clock.now().timestamp())
            if rest_s > 0:
                self._rest(key, pod, agent, rest_s)
                return
        life = life or await self._accept(key, pod, agent, agent.files if files is None else files)
        if life is not None:
            await self._play(key, pod, life)

    def _life_of(self, key: str, pod: SimulatedPod | None) -> tuple[Life | None, frozenset[str] | None]:
        """The life of a pod; if it has to go on from its status, the files that it found in folders of its node
        instead."""
        life = self._lives.get(key)
        if life is None:
            return None, None
        same = pod is not None and life.uid == pod.uid
        if pod is not None and same and not 0 < life.restored <= pod.version:
            return life, None
        self._forget(key, life)
        return None, life.files if same else None

    def _rest(self, key: str, pod: SimulatedPod, agent: Agent, seconds: float) -> None:
        """Leave a pod as it is for this many seconds. It still takes up its resources and address on the node."""
        self._resting[key] = agent
        agent.occupancy.add(key, pod)
        if pod.status.pod_ip:
            agent.addresses.claim(pod.status.pod_ip)
        if seconds < float("inf"):
            self._queue.add_after(key, seconds)

    def _wake(self, key: str) -> None:
        agent = self._resting.pop(key, None)
        if agent is not None:
            agent.occupancy.remove(key)

    async def _play(self, key: str, pod: SimulatedPod, life: Life) -> None:
        """Advance a pod to now, report its status, and requeue it for the next change."""
        now = self._clock.now().timestamp()
        before = life.state
        state = self._reread(life, self._held(life, pod, before, now), now)
        state = machine.advance(life.script, state, now)
        if life.pod is not pod:
            state = self._changed(life, pod, state, now)
        state = _forced(life, state, now)
        if not pod.deleting:
            state = self._resize(key, life, state, now)
        if pod.deleting:
            grace_s = pod.metadata.deletion_grace_period_seconds
            state = machine.stop(state, now, life.script.grace_s if grace_s is None else float(grace_s))
        state = self._held(life, pod, state, now)
        state = machine.advance(life.script, state, now)
        life.state = state
        if state.hold is not None or any(container.hold is not None for container in state.containers):
            self._wait(key, pod)
        else:
            self._go_on(key)
        before = machine.extend(life.script, before, now)
        if before.sandbox_at is None and state.sandbox_at is not None:
            for reason, text in self._obstacles.remarks(pod):
                self._emit(life, "Warning", reason, text)
        for notice in (
            *notices(pod, life.script, before, state, life.agent.images),
            *unhealthy(pod, life.script, state, life.seen_at, now),
        ):
            self._events.kubelet(life.agent.name, notice)
        life.seen_at = now
        await self._report(pod, life, now)
        if machine.finished(life.script, state):
            self._forget(key, life)
            self._end(pod, life.version, UNMOUNT_S if pod.deleting else 0.0)
            if pod.deleting:
                self._queue.add_after(key, UNMOUNT_S)
            return
        due_s = machine.due(life.script, state, now) - now
        if life.pending is not None:
            due_s = min(due_s, resizing.RETRY_S if life.pending.since < now else resizing.FIRST_RETRY_S)
        if due_s < float("inf"):
            self._queue.add_after(key, due_s)

    def _wait(self, key: str, pod: SimulatedPod) -> None:
        ids = referred_to(pod)
        if self._waiting.get(key) != ids:
            self._go_on(key)
            self._waiting[key] = ids
            for which in ids:
                self._awaited.setdefault(which, set()).add(key)

    def _go_on(self, key: str) -> None:
        """The pod does not wait any more."""
        for which in self._waiting.pop(key, ()):
            keys = self._awaited[which]
            keys.discard(key)
            if not keys:
                del self._awaited[which]

    def _end(self, pod: SimulatedPod, version: str, mounted_s: float = 0.0) -> None:
        """Remember that a pod has ended, as was reported with this version. Until the cache shows that, an event about
        something else must not start it again. Of a pod that is gone no event follows."""
        current = self._pods.store.get(pod.key)
        if current is not None and current.uid == pod.uid:
            self._ended[pod.key] = _Ended(pod.uid, version, self._clock.monotonic() + mounted_s)

    def _script(self, pod: SimulatedPod, place: PodAddresses, files: frozenset[str]) -> PodScript:
        """What a pod's containers do, which know its addresses before the API server does."""
        addresses = (PodIP(place.pod_ip),) if place.pod_ip else ()
        status = replace(pod.status, host_ip=place.host_ip, pod_ip=place.pod_ip, pod_ips=addresses)
        return self._behaviour.script(replace(pod, status=status), files)

    def _held(self, life: Life, pod: SimulatedPod, state: PodState, now: float) -> PodState:
        if state.stop is not None:
            return state
        whole = None
        if state.sandbox_at is None:
            whole = self._obstacles.of_volumes(pod)
            if whole is None and (why := problem_of(pod)):
                whole = Hold(SANDBOX, f"Failed to create pod sandbox: {why}")
        held = machine.hold(state, whole, self._obstacles.of_containers(pod, life.script, life.agent.images), now)
        if not _freed(state, held):
            return held
        before, life.script = life.script, self._script(pod, life.place, life.files)  # now it finds what it waited for
        return machine.rewrite(before, life.script, held, now)

    def _reread(self, life: Life, state: PodState, now: float) -> PodState:
        """Update the scripts of containers that will restart from their volumes and variables."""
        again = [current.started_at is None and current.restart_at < math.inf for current in state.containers]
        if not any(again):
            return state
        before, read = life.script, self._script(life.pod, life.place, life.files)
        chosen = zip(before.containers, read.containers, again, strict=False)
        containers = tuple(new if ends else old for old, new, ends in chosen)
        if containers == before.containers[: len(again)]:
            return state
        life.script = replace(before, containers=(*containers, *before.containers[len(again) :]))
        return machine.rewrite(before, life.script, state, now)

    def _changed(self, life: Life, pod: SimulatedPod, state: PodState, now: float) -> PodState:
        """Apply a change of the pod's spec, metadata or status."""
        old, life.pod = life.pod, pod
        if _as_played(old) != _as_played(pod):
            before, life.script = life.script, self._script(pod, life.place, life.files)
            self._emit_problems(life, before.problems)
            state = machine.rewrite(before, life.script, state, now)
        if old.spec is not pod.spec and old.metadata.generation != pod.metadata.generation:
            images = {container.name: container.image for container in containers_of(old)}
            for index, container in enumerate(containers_of(pod)):
                if images.get(container.name, container.image) != container.image:
                    state = self._replaced(life, state, index, now)
        return state

    def _replaced(self, life: Life, state: PodState, index: int, now: float) -> PodState:
        """Restart a container because its image has changed. An init container that runs goes on."""
        container, runs = life.script.containers[index], state.containers[index].started_at is not None
        if container.role is Role.INIT and runs:
            return machine.renew(state, index, now)
        if runs:
            self._events.kubelet(life.agent.name, replaced(life.pod, container))
        return machine.change(state, index, now)

    def _resize(self, key: str, life: Life, state: PodState, now: float) -> PodState:
        """Resize a pod as its spec asks, or defer the resize until there is room."""
        agent, pod, before = life.agent, life.pod, life.pending
        if not differs(pod.spec, life.granted):
            if before is not None:  # it requests what it has again
                life.pending = None
                agent.deferred.discard(key)
            return state
        node = self._nodes.store.get(agent.name)
        refusal = agent.occupancy.refuses_resize(key, pod, node) if node is not None else None
        if refusal is not None:
            generation = pod.metadata.generation
            life.pending = resizing.deferred(before, refusal.message, generation, now)
            agent.deferred.add(key)
            if before is None or before.generation != generation:
                text = resizing.message(f"Pod resize {refusal.reason}", pod, refusal.message)
                self._emit(life, "Warning", "ResizeDeferred", text)
            return state
        restarts = resizing.changed(pod.spec, life.granted)
        for index, container in enumerate(life.script.containers):
            if restarts.get(container.name) and state.containers[index].started_at is not None:
                self._events.kubelet(agent.name, resized(pod, container))
                state = machine.change(state, index, now)
            elif container.name in restarts:
                state = machine.renew(state, index, now)
        life.granted, life.pending = pod.spec, None
        agent.deferred.discard(key)
        agent.occupancy.add(key, pod)
        self._retry_resizes(agent)
        self._emit(life, "Normal", "ResizeStarted", resizing.message("Pod resize started", pod))
        self._emit(life, "Normal", "ResizeCompleted", resizing.message("Pod resize completed", pod))
        return state

    def _retry_resizes(self, agent: Agent) -> None:
        """Enqueue the pods with a deferred resize, because resources became free."""
        for key in sorted(agent.deferred, key=self._turn):
            self._queue.add(key)

    def _turn(self, key: str) -> tuple[int, bool, float, str]:
        """The sort key of deferred resizes: by priority, then Guaranteed pods first, then the longest wait."""
        pod, pending = self._lives[key].pod, self._lives[key].pending
        return (
            -(pod.spec.priority or 0),
            pod.status.qos_class != "Guaranteed",
            pending.since if pending is not None else 0.0,
            key,
        )

    def _emit_problems(self, life: Life, known: Sequence[str] = ()) -> None:
        for problem in life.script.problems:
            if problem not in known:
                self._emit(life, "Warning", "InvalidAnnotation", problem)

    def _emit(self, life: Life, type_: str, reason: str, text: str) -> None:
        self._events.kubelet(life.agent.name, Notice(ref_of("Pod", life.pod), type_, reason, text))

    async def _report(self, pod: SimulatedPod, life: Life, now: float) -> None:
        shown = with_granted(pod, life.granted)
        status, conditions = render(
            shown, life.script, life.state, life.place, now, Known(life.conditions, life.pending)
        )
        encoded = codec.encode(status)
        if encoded == life.reported and not contradicted(pod, life.version, life.conditions, encoded):
            return
        before = shown_by(pod, life.version, life.reported)
        reason = f"{EVICTED}{life.evicted}" if life.evicted else ""
        answer = await self._write(pod, status_patch(status, before), life.conditions, reason)
        if answer is not None:
            life.reported, life.conditions, life.version = encoded, conditions, answer

    async def _write(
        self, pod: SimulatedPod, status: Doc, before: Sequence[Condition | Reported] = (), reason: str = ""
    ) -> str | None:
        """Patch the pod's status. Return the new resourceVersion, or None if the pod no longer exists.

        before: the conditions that were reported last. reason: for the record of causes.
        """
        status = with_removed_addresses(with_removed_reasons(status, pod, before), pod)
        body: Doc = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            answer = await self._client.patch(
                POD_METADATA,
                pod.namespace,
                pod.name,
                body,
                content_type=STRATEGIC_MERGE,
                subresource="status",
                reason=reason or "status changed",
            )
        except NotFound:
            return None
        except Conflict:
            current = self._pods.store.get(pod.key)
            if current is not None and current.uid == pod.uid:  # perhaps an event follows that says otherwise
                raise
            return None
        return answer.metadata.resource_version

    async def _delete(self, pod: SimulatedPod) -> None:
        """Delete an ended pod with grace period 0. Does nothing if that was done and finalizers still hold the pod."""
        if not pod.deleting or (pod.metadata.finalizers and pod.metadata.deletion_grace_period_seconds == 0):
            return
        try:
            await self._client.delete(PODS, pod.namespace, pod.name, uid=pod.uid, grace_s=0, reason="ended")
        except (NotFound, Conflict):
            return

    async def _accept(self, key: str, pod: SimulatedPod, agent: Agent, files: frozenset[str]) -> Life | None:
        """Admit a pod that this kubelet sees for the first time, or go on with it as its status says. Return None if it
        is rejected.

        files: those that it finds in folders of the node.
        """
        now = self._clock.now().timestamp()
        node = self._nodes.store.get(agent.name)
        if pod.status.start_time is None and node is not None:
            rejection = eviction.refuses(pod, agent.pressures) or agent.occupancy.rejects(pod, agent.knows(node))
            if rejection is not None:
                await self._reject(pod, agent, rejection)
                return None
        place = PodAddresses(self._address(pod, agent), pod.status.host_ip or agent.host_ip)
        played = self._script(pod, place, files)
        state = restore(pod, played, now)
        granted = resizing.granted_before(pod)
        life = Life(pod.uid, agent, pod, played, state, place, pod.status.conditions, granted.spec, files=files)
        if pod.status.start_time is not None:
            life.seen_at = now
        self._lives[key] = life
        agent.keep(played.left)
        agent.occupancy.add(key, granted)
        self._emit_problems(life)
        return life

    async def _reject(self, pod: SimulatedPod, agent: Agent, rejection: Rejection) -> None:
        notice = Notice(ref_of("Pod", pod), "Warning", rejection.reason, rejection.message)
        self._events.kubelet(agent.name, notice)
        version = await self._write(pod, rejected(pod, rejection, self._clock.now().timestamp()))
        self._end(pod, version or "")

    def _address(self, pod: SimulatedPod, agent: Agent) -> str:
        if pod.spec.host_network:
            return agent.host_ip
        if pod.status.pod_ip:
            agent.addresses.claim(pod.status.pod_ip)
            return pod.status.pod_ip
        if not agent.has_looked:
            agent.has_looked = True
            self._claim_all(agent)
        return agent.addresses.take()

    def _claim_all(self, agent: Agent) -> None:
        """Claim the addresses that the pods of a node have from the time before this kubelet."""
        for pod in self._pods.store.by_index(NODE, agent.name):
            if pod.status.pod_ip and not (pod.spec.host_network or is_terminal(pod)):
                agent.addresses.claim(pod.status.pod_ip)

    def _forget(self, key: str, life: Life) -> None:
        self._lives.pop(key, None)
        self._go_on(key)
        life.agent.occupancy.remove(key)
        life.agent.deferred.discard(key)
        self._retry_resizes(life.agent)
        if not life.pod.spec.host_network:
            life.agent.addresses.free(life.place.pod_ip)


def _as_played(pod: SimulatedPod) -> tuple[object, ...]:
    """What a pod's script is made from, except for its status."""
    return pod.spec, pod.annotations, pod.metadata.owner_references


def _forced(life: Life, state: PodState, now: float) -> PodState:
    """The state after what is to be killed has been killed."""
    for index, code, reason in life.kills:
        state = machine.kill(life.script, state, index, now, code, reason)
    life.kills.clear()
    if life.evicted:
        state = machine.evict(life.script, state, now, life.evicted)
    return state


def _freed(before: PodState, after: PodState) -> bool:
    """Whether the pod or a container is not held any longer."""
    return (before.hold is not None and after.hold is None) or any(
        old.hold is not None and new.hold is None for old, new in zip(before.containers, after.containers, strict=True)
    )

"""The behaviour of pods in the twin: existing ones go on as their status says, new ones behave like earlier pods did.

Three durations are taken from pods of the same owner, or else of the same workload (a new ReplicaSet's are those of
its Deployment): from scheduling to the first container, from there to Ready, and from start to end if they end. Without
such pods there are defaults. A status tells when a pod last became Ready: a time that exceeds the Deployment's progress
deadline (600 s for other workloads) is that of a later change, or of a pod that waited for something else.

- A running pod stays as it is, ready or not, until it is deleted or, if it is meant to end, until such pods usually do.
  Without such pods, one that has run for longer than the default stays.
- A starting pod takes as long as others did. One that is overdue stays as it is.
- A new pod is not ready before its own probes allow it.
- New pods do not become ready if no pod of their template did, or if their image cannot be pulled.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from statistics import median

import msgspec
from msgspec.structs import replace

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.core import Condition
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object, OwnerReference, controller_of
from kcm_cli.machinery.times import seconds_of
from kcm_cli.plan.kinds import kind_of_owner
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.plan.twin.existence import Existence
from kcm_cli.planning.pods import is_ready, is_terminal
from kcm_cli.planning.revisions import POD_HASH_LABEL
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.nodes import script
from kcm_cli.sandbox.nodes.annotations import PREFIX
from kcm_cli.sandbox.nodes.containers import full_image
from kcm_cli.sandbox.nodes.images import MOST_REPORTED, Images
from kcm_cli.sandbox.nodes.machine import MOUNT, PULL, Hold
from kcm_cli.sandbox.nodes.obstacles import CONFIG_ERROR, INVALID_IMAGE, NEVER_PULL, is_image, root_problems
from kcm_cli.sandbox.nodes.script import ContainerScript, PodScript, Role
from kcm_cli.sandbox.views import PODS, SimulatedContainer, SimulatedNode, SimulatedPod, containers_of

PULL_S = 5.0
"""To pull an image that is not on the node."""
RUN_S = 30.0
"""How long pods run that are meant to end."""
STOP_S = 1.0
"""From the request to stop to the end."""
PATIENCE_S = 60.0
"""How long a pod may be on its way, at least, until it counts as stuck."""
DEADLINE_S = 600
"""The progress deadline where there is none."""
_NO_DEADLINE = 2**31 - 1
"""The value that stands for none."""
_NEVER = "Never"
_SLOW = 0.9
"""The share of the pods that started sooner than one that pulled its image."""
_PULL_FAILURES = frozenset(
    ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
)
_STUCK = _PULL_FAILURES | frozenset(
    ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "PreStartHookError")
)
DEFAULTS = (
    f"pods without a precedent: {PULL_S:g} s to pull an image that is not on the node, Ready as soon as their probes "
    f"allow, {RUN_S:g} s for those that end, {STOP_S:g} s to stop"
)


class _Times(msgspec.Struct):
    """Samples in seconds, those of ``start`` and ``ready`` up to the deadline. ``alive``: the number of pods that
    became ready. ``never``: the number of pods that are stuck before that."""

    start: list[float] = msgspec.field(default_factory=list)
    ready: list[float] = msgspec.field(default_factory=list)
    run: list[float] = msgspec.field(default_factory=list)
    alive: int = 0
    never: int = 0
    why: str = ""


_NOTHING = _Times()


class Learned:
    """Implements ``nodes.behaviour.Behaviour`` and ``nodes.kubelet.Obstructions``. Call ``owned`` for each object that
    is created, so that pods of a new ReplicaSet or Job are known as those of their workload.

    now: the twin's time, in seconds. unpullable: images that are assumed not to exist. existence: of the ConfigMaps and
    Secrets that new pods refer to; all exist without it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        now: Callable[[], float],
        unpullable: Iterable[str] = (),
        existence: Existence | None = None,
    ) -> None:
        self._now = now
        self._taken_s = snapshot.taken_at.timestamp()
        self._generations: dict[str, int] = {}
        self._owners = _owners(snapshot)
        self._deadlines = dict(_deadlines(snapshot))
        self._times: dict[str, _Times] = {}
        self._delays: dict[str, float] = {}
        """How long a pod takes to start, by its uid: it is asked for more than once."""
        self._images: dict[str, dict[str, float]] = {}
        """By node, when an image is there."""
        self._unpullable = frozenset(unpullable)
        self._failing: dict[str, dict[str, str]] = {}
        """Images that pods fail to pull, with why, by namespace."""
        self._running: set[tuple[str, str]] = set()
        """The namespaces in which images run."""
        self._complete: set[str] = set()
        """The nodes that report all of their images."""
        self._existence = existence
        self.assumed: set[str] = set()
        """Images of new pods that were on no node."""
        self.refused: dict[str, str] = {}
        """Images of new pods that could not be pulled, with why."""
        self.hopeless: dict[str, str] = {}
        """Owners whose new pods do not get ready, since none of theirs did, with why."""
        for item in snapshot.items(NODES_GVR):
            self._note_node(item.data)
        there, lacking = set[tuple[str, str]](), set[tuple[str, str]]()
        for item in snapshot.items(PODS.gvr):
            try:
                self._note_pod(PODS.decode(item.data), there, lacking)
            except codec.DecodeError:
                continue  # its informers will not see it, either
        for node, image in lacking - there:  # whatever the node reports
            self._images.get(node, {}).pop(image, None)
        for node, image in there:
            self._images.setdefault(node, {})[image] = 0.0

    # -- Behaviour

    def script(self, pod: SimulatedPod, files: frozenset[str] = frozenset()) -> PodScript:
        """What the containers of a pod do."""
        read = script.read(pod, commands=False)
        own, workload = self._of(pod)
        delay_s = self._delays.get(pod.uid)
        if delay_s is None:
            delay_s = self._delays[pod.uid] = self._start_s(pod, _first(own.start, workload.start))
        if _is_scripted(pod):
            return read
        run = _first(own.run, workload.run) or [RUN_S]
        ready_s = _middle(_first(own.ready, workload.ready))
        if pod.uid not in self._generations and own.never and not own.alive:
            ready_s = math.inf
            ref = controller_of(pod)
            if ref is not None:
                self.hopeless[f"{pod.namespace}/{kind_of_owner(ref)}/{ref.name}"] = own.why
        containers = tuple(_played(container, median(run), ready_s) for container in read.containers)
        return replace(read, containers=containers, start_delay_s=delay_s)

    def rests_s(self, pod: SimulatedPod, now: float) -> float:
        """The seconds for which a pod of the snapshot stays as it is."""
        generation = self._generations.get(pod.uid)
        if generation is None or generation != pod.metadata.generation:
            return 0.0
        status = pod.status
        states = [s.state for s in (*status.init_container_statuses, *status.container_statuses) if s.state is not None]
        if any(s.waiting is not None and s.waiting.reason in _STUCK for s in states):
            return math.inf
        since = seconds_of(status.start_time) or seconds_of(pod.metadata.creation_timestamp) or now
        own, workload = self._of(pod)
        if status.phase != "Running":
            usual = max([PATIENCE_S, *(2 * s for s in _first(own.start, workload.start))])
            return 0.0 if now - since <= usual else math.inf
        started = [at for s in states if s.running is not None and (at := seconds_of(s.running.started_at)) is not None]
        if pod.spec.restart_policy in ("Never", "OnFailure"):
            known = _first(own.run, workload.run)
            ends = max(started, default=now) + median(known or [RUN_S])
            return ends - now if ends > now else 0.0 if known or _is_scripted(pod) else math.inf
        if is_ready(pod):
            return math.inf
        usual = _middle(_first(own.ready, workload.ready)) or 0.0
        age = now - max(started, default=since)
        return 0.0 if age <= max(PATIENCE_S, 2 * usual) and not _restarted(pod) else math.inf

    # -- Obstructions

    async def synced(self) -> None:
        """Returns at once, since there is nothing to wait for."""

    def has_begun(self, pod: SimulatedPod) -> bool:
        """Whether a pod was on its node in the snapshot."""
        return pod.uid in self._generations

    def of_volumes(self, pod: SimulatedPod) -> Hold | None:
        """The obstacle of a new pod whose volumes show ConfigMaps or Secrets that do not exist."""
        if pod.uid in self._generations or self._existence is None:
            return None
        texts = self._existence.references.of_volumes(pod)
        return Hold(MOUNT, texts[0], tuple(texts[1:])) if texts else None

    def of_containers(self, pod: SimulatedPod, script: PodScript, images: Images) -> list[Hold | None]:
        """The obstacles of new pods: images that cannot be pulled, variables that cannot be read, and a user who is
        root and must not be."""
        if pod.uid in self._generations:
            return [None] * len(script.containers)
        return [self._hold(pod, container) or self._config(pod, container) for container in containers_of(pod)]

    def _config(self, pod: SimulatedPod, container: SimulatedContainer) -> Hold | None:
        problems = self._existence.references.of_variables(pod, container) if self._existence is not None else ()
        return next((Hold(CONFIG_ERROR, text) for text in chain(problems, root_problems(pod, container))), None)

    def remarks(self, pod: SimulatedPod) -> tuple[tuple[str, str], ...]:
        """Empty: image pull Secrets are assumed to exist."""
        return ()

    def _hold(self, pod: SimulatedPod, container: SimulatedContainer) -> Hold | None:
        image, why = container.image, self._no_pull(pod, container)
        if not why:
            return None
        if not is_image(image):
            return Hold(INVALID_IMAGE, f'couldn\'t parse image name "{image}": invalid reference format')
        if container.image_pull_policy == _NEVER:
            return Hold(NEVER_PULL, f'Container image "{image}" is not present with pull policy of Never')
        return Hold(PULL, f'Failed to pull image "{image}": {why}')

    def _no_pull(self, pod: SimulatedPod, container: SimulatedContainer) -> str:
        """Why a new pod cannot have the image of a container; empty if it can.

        An image that is on its node is not pulled, unless the policy is Always. One that pods fail to pull today cannot
        be pulled in their namespaces, nor in others in which it does not run: credentials are those of a namespace.
        """
        image, policy, node = container.image, container.image_pull_policy, pod.spec.node_name
        if not is_image(image):
            return "that is no image's name (InvalidImageName)"
        if image in self._unpullable:
            return "taken for one that does not exist"
        name = full_image(image)
        if policy != "Always" and name in self._images.get(node, ()):
            return ""
        if policy == _NEVER and node in self._complete:
            return f"it is not on {node}, and its policy is Never"
        if _host(image).endswith(".invalid"):
            return "there are no hosts under .invalid"
        failing = self._failing.get(name, {})
        if pod.namespace not in failing and (pod.namespace, name) in self._running:
            return ""
        return failing.get(pod.namespace) or next(iter(failing.values()), "")

    def owned(self, event: Event) -> None:
        """Something was written that may own pods, and belong to a workload itself."""
        if event.previous is not None or event.type == "DELETED":
            return
        made = codec.decode_or_none(event.stored.data, Object)
        if made is None:
            return
        above = controller_of(made)
        if above is not None:
            self._owners[made.uid] = above

    # -- facts from the snapshot

    def _of(self, pod: SimulatedPod) -> tuple[_Times, _Times]:
        """The samples of a pod's owner with this template, and those of the workload."""
        ref = controller_of(pod)
        if ref is None:
            return _NOTHING, _NOTHING
        own, root = _owner_key(pod, ref), self._root(pod.namespace, ref)
        return self._times.get(own, _NOTHING), self._times.get(root, _NOTHING)

    def _root(self, namespace: str, ref: OwnerReference) -> str:
        above = self._owners.get(ref.uid)
        top = above if above is not None else ref
        return f"{namespace}/{kind_of_owner(top)}/{top.name}"

    def _note_node(self, data: bytes) -> None:
        node = codec.decode_or_none(data, SimulatedNode)
        if node is None:
            return
        images = node.status.images
        self._images[node.name] = {full_image(name): 0.0 for image in images for name in image.names}
        if 0 < len(images) < MOST_REPORTED:
            self._complete.add(node.name)

    def _note_pod(self, pod: SimulatedPod, there: set[tuple[str, str]], lacking: set[tuple[str, str]]) -> None:
        """there, lacking: to add to, the images that are on a node by what runs, and that are not."""
        if pod.spec.node_name:  # others are new to their kubelet, whenever they come to it
            self._generations[pod.uid] = pod.metadata.generation
        self._note_images(pod, there, lacking)
        has_started = any(s.state is not None and s.state.waiting is None for s in pod.status.container_statuses)
        if has_started and self._existence is not None:
            self._existence.used_by(pod)
        ref = controller_of(pod)
        if ref is None:
            return
        root = self._root(pod.namespace, ref)
        deadline_s = self._deadlines.get(root, DEADLINE_S)
        for key in (_owner_key(pod, ref), root):
            self._measure(pod, self._times.setdefault(key, _Times()), deadline_s)

    def _note_images(self, pod: SimulatedPod, there: set[tuple[str, str]], lacking: set[tuple[str, str]]) -> None:
        images = {container.name: container.image for container in containers_of(pod)}
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            image, state = full_image(images.get(status.name, "")), status.state
            if state is not None and state.waiting is not None and state.waiting.reason in _PULL_FAILURES:
                why = f"{state.waiting.reason} in pod {pod.namespace}/{pod.name}"
                self._failing.setdefault(image, {})[pod.namespace] = why
                lacking.add((pod.spec.node_name, image))
            elif state is not None and (state.running is not None or state.terminated is not None):
                self._running.add((pod.namespace, image))
                there.add((pod.spec.node_name, image))

    def _measure(self, pod: SimulatedPod, times: _Times, deadline_s: float) -> None:
        conditions = {c.type: c for c in pod.status.conditions}
        states = [s for s in pod.status.container_statuses if s.state is not None]
        began = sorted(_starts(pod))
        scheduled = conditions.get("PodScheduled")
        placed = seconds_of(scheduled.last_transition_time) if scheduled is not None else None
        if began and placed is not None and not _restarted(pod) and began[0] - placed <= deadline_s:
            times.start.append(max(0.0, began[0] - placed))
        ready = conditions.get("Ready")
        if ready is not None and ready.status == "True":
            times.alive += 1
            at = seconds_of(ready.last_transition_time)
            if at is not None and began and not _restarted(pod) and 0 <= at - began[-1] <= deadline_s:
                times.ready.append(at - began[-1])
        elif not is_terminal(pod) and not pod.deleting and (why := self._never_ready(pod, ready, deadline_s)):
            times.never, times.why = times.never + 1, why
        if pod.status.phase == "Succeeded":
            ended = [t for s in states if s.state is not None and (t := s.state.terminated) is not None]
            spans = [(seconds_of(t.started_at), seconds_of(t.finished_at)) for t in ended]
            times.run += [max(0.0, end - start) for start, end in spans if start is not None and end is not None]

    def _never_ready(self, pod: SimulatedPod, ready: Condition | None, deadline_s: float) -> str:
        """Why a pod is not Ready and will not be; empty if it may be on its way."""
        status, name = pod.status, f"pod {pod.namespace}/{pod.name}"
        states = [s.state for s in (*status.init_container_statuses, *status.container_statuses) if s.state is not None]
        if stuck := next((s.waiting.reason for s in states if s.waiting and s.waiting.reason in _STUCK), ""):
            return f"{stuck} in {name}"
        times = (status.start_time, ready.last_transition_time if ready is not None else None)
        since = [at for text in times if (at := seconds_of(text)) is not None]
        serves = status.phase == "Running" and pod.spec.restart_policy == "Always"
        late = bool(since) and self._taken_s - max(since) > deadline_s
        return f"{name} runs and does not get Ready" if serves and late else ""

    def _start_s(self, pod: SimulatedPod, known: list[float]) -> float:
        """Seconds until the pod's containers start, if all images can be pulled. known: those of earlier pods, of which
        the slow ones pulled their images, too."""
        there, now = self._images.setdefault(pod.spec.node_name, {}), self._now()
        delay_s, pull_s = (median(known), _slow(known)) if known else (0.0, PULL_S)
        for container in containers_of(pod):
            image = container.image
            why = self._no_pull(pod, container)
            if why and pod.uid not in self._generations:
                self.refused[image] = why
            elif full_image(image) not in there:
                if not any(full_image(image) in images for images in self._images.values()):
                    self.assumed.add(image)
                there[full_image(image)] = now + pull_s
            delay_s = max(delay_s, there.get(full_image(image), now) - now)
        return delay_s


NODES_GVR = replace(PODS.gvr, plural="nodes")


def _owners(snapshot: Snapshot) -> dict[str, OwnerReference]:
    """The controllers of ReplicaSets and Jobs, by uid of these."""
    found: dict[str, OwnerReference] = {}
    for collection in snapshot.collections.values():
        if collection.gvr.plural in ("replicasets", "jobs"):
            for item in collection.items:
                owned = codec.decode_or_none(item.data, Object)
                owner = controller_of(owned) if owned is not None else None
                if owner is not None:
                    found[item.uid] = owner
    return found


def _deadlines(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """The progress deadlines of Deployments that have one, in seconds, as ``namespace/Deployment/name``."""
    for item in snapshot.items(DEPLOYMENTS.gvr):
        try:
            deadline_s = DEPLOYMENTS.decode(item.data).spec.progress_deadline_seconds
        except codec.DecodeError:
            continue
        if deadline_s is not None and 0 < deadline_s < _NO_DEADLINE:
            yield f"{item.namespace}/{DEPLOYMENTS.kind}/{item.name}", deadline_s


def _is_scripted(pod: SimulatedPod) -> bool:
    """Whether annotations say how it behaves."""
    return any(name.startswith(PREFIX) for name in pod.annotations)


def _played(container: ContainerScript, run_s: float, ready_s: float | None) -> ContainerScript:
    """ready_s: that of earlier pods, which may have had other probes."""
    run, last = container.run, container.last_run
    if container.role is Role.MAIN and run.lasts_s == script.SHORT_RUN_S and container.restart != "Always":
        run = last = replace(run, lasts_s=run_s)
    ready, later = container.ready_s, container.later
    if ready_s is not None and container.role is Role.MAIN:
        ready = max(ready, ready_s)
        later = None if later is None else replace(later, ready_s=max(later.ready_s, ready_s))
    stop_s = max(container.stop_s, STOP_S)
    return replace(container, run=run, last_run=last, ready_s=ready, stop_s=stop_s, later=later)


def _owner_key(pod: SimulatedPod, ref: OwnerReference) -> str:
    """A pod's owner and its template: a StatefulSet and a DaemonSet have several."""
    return f"{ref.uid}/{pod.labels.get(POD_HASH_LABEL, '')}"


def _starts(pod: SimulatedPod) -> Iterator[float]:
    for status in pod.status.container_statuses:
        if status.state is not None and status.state.running is not None:
            at = seconds_of(status.state.running.started_at)
            if at is not None:
                yield at


def _host(image: str) -> str:
    """The name of the registry; empty for an image without one."""
    first, slash, _ = full_image(image).partition("/")
    return first.partition(":")[0] if slash and "." in first else ""


def _restarted(pod: SimulatedPod) -> bool:
    return any(status.restart_count for status in pod.status.container_statuses)


def _first(*samples: list[float]) -> list[float]:
    return next((one for one in samples if one), [])


def _slow(samples: Sequence[float]) -> float:
    """The sample that nine of ten do not exceed; the largest of a few."""
    return sorted(samples)[math.ceil(_SLOW * len(samples)) - 1]


def _middle(samples: Iterable[float]) -> float | None:
    found = list(samples)
    return median(found) if found else None

"""The Events that a kubelet emits when a pod goes from one state to another.

upstream: pkg/kubelet/events/event.go, pkg/kubelet/kuberuntime
"""

import math
from collections.abc import Iterator

from kcm_cli.planning.actions import Notice
from kcm_cli.sandbox.events import ref_of
from kcm_cli.sandbox.nodes import machine
from kcm_cli.sandbox.nodes.containers import waiting
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.nodes.machine import ATTACH, EVICTED, PULL, ContainerState, Hold, PodState, ended_by_hook
from kcm_cli.sandbox.nodes.obstacles import INVALID_IMAGE, NEVER_PULL
from kcm_cli.sandbox.nodes.script import SIMULATED_FAILURE, ContainerScript, PodScript, Role
from kcm_cli.sandbox.views import SimulatedPod, containers_of

NORMAL, WARNING = "Normal", "Warning"
_IMAGE_REASONS = {INVALID_IMAGE: "InspectFailed", NEVER_PULL: NEVER_PULL}
_FIELDS = {Role.MAIN: "containers", Role.DEBUG: "ephemeralContainers"}


def notices(
    pod: SimulatedPod, script: PodScript, before: PodState, after: PodState, images: Images
) -> Iterator[Notice]:
    """The Events about a change of state. Images that are pulled are added to ``images``."""
    if before is after:
        return
    killed = before.stop is None and after.stop is not None
    left = _left_over(script, before, after)
    if before.stop is None and after.stop is not None and after.stop.reason:
        type_ = WARNING if after.stop.reason == EVICTED else NORMAL
        yield Notice(ref_of("Pod", pod), type_, after.stop.reason, after.stop.message)
    hold = after.hold
    if hold is not None and hold.reason != ATTACH and after.attempts and after.attempted_at != before.attempted_at:
        for text in (hold.message, *hold.more):
            yield Notice(ref_of("Pod", pod), WARNING, hold.reason, text)
    if before.sandbox_at is None and after.sandbox_at is not None:
        yield from _of_volumes(pod, after, images)
    for container, old, new in zip(script.containers, before.containers, after.containers, strict=True):
        if (killed and old.started_at is not None) or container.name in left:
            yield _notice(pod, container, NORMAL, "Killing", f"Stopping container {container.name}")
            if container.pre_stop.fails:
                yield _notice(pod, container, WARNING, "FailedPreStopHook", "PreStopHook failed")
        if new is not old:
            if after.stop is None:
                yield from _of_probe(pod, container, old, new)
                yield from _of_hook(pod, container, old, new)
            yield from _of_container(pod, container, old, new, images)


def _left_over(script: PodScript, before: PodState, after: PodState) -> set[str]:
    """The sidecars and ephemeral containers that ran when the others had ended, which is new."""
    over_at = machine.over_at(script, after)
    if after.stop is not None or over_at is None or machine.over_at(script, before) is not None:
        return set()
    return {
        container.name
        for container, current in zip(script.containers, after.containers, strict=True)
        if container.role in (Role.SIDECAR, Role.DEBUG) and _ran(current, over_at)
    }


def _ran(current: ContainerState, at: float) -> bool:
    if current.started_at is not None:
        return current.started_at <= at
    return current.exit is not None and current.exit.started <= at <= current.exit.finished


def replaced(pod: SimulatedPod, container: ContainerScript) -> Notice:
    """The Event about a container that restarts with another definition."""
    title, end = ("Container", ", will be restarted") if container.role is Role.MAIN else ("Init container", "")
    return _notice(pod, container, NORMAL, "Killing", f"{title} {container.name} definition changed{end}")


def resized(pod: SimulatedPod, container: ContainerScript) -> Notice:
    """The Event about a container that restarts with other resources."""
    return _notice(pod, container, NORMAL, "Killing", f"Container {container.name} resize requires restart")


def _of_volumes(pod: SimulatedPod, state: PodState, images: Images) -> Iterator[Notice]:
    """Events about the image volumes that can be pulled."""
    held = {current.hold.image for current in state.containers if current.hold is not None}
    for volume in pod.spec.volumes:
        if volume.image is not None and volume.image.reference not in held:
            for reason, text in _pulled(volume.image.reference, volume.image.pull_policy, images):
                yield Notice(ref_of("Pod", pod), NORMAL, reason, text)


def _of_container(
    pod: SimulatedPod, container: ContainerScript, old: ContainerState, new: ContainerState, images: Images
) -> Iterator[Notice]:
    if new.starts > old.starts:
        yield from _of_image(pod, container, images)
        yield _notice(pod, container, NORMAL, "Created", "Container created")
        yield _notice(pod, container, NORMAL, "Started", "Container started")
    if new.base > old.base and old.started_at is not None:
        yield _notice(pod, container, NORMAL, "Killing", "killing")
    if new.hold is not None and new.attempts and new.attempted_at != old.attempted_at:
        yield from _of_hold(pod, container, new, new.hold, images)
    ended = new.exit
    if ended is not None and ended.finished < new.restart_at < float("inf"):
        where = f"{pod.name}_{pod.namespace}({pod.uid})"
        text = f"Back-off restarting failed container {container.name} in pod {where}"
        yield _notice(pod, container, WARNING, "BackOff", text)


def _of_probe(
    pod: SimulatedPod, container: ContainerScript, old: ContainerState, new: ContainerState
) -> Iterator[Notice]:
    """Events about a run that a failing probe has ended."""
    ended = new.exit or new.previous
    if ended is None or old.started_at is None or ended.run != old.starts:
        return
    probe = ended.cause
    if probe in ("liveness", "startup"):
        failures = container.probing(ended.run).failures
        text = next((failure.text for failure in failures if failure.probe == probe), SIMULATED_FAILURE)
        yield _unhealthy(pod, container, probe, text)
        title = "Container" if container.role is Role.MAIN else "Init container"
        end = ", will be restarted" if container.role is Role.MAIN and container.restart != "Never" else ""
        yield _notice(pod, container, NORMAL, "Killing", f"{title} {container.name} failed {probe} probe{end}")


def unhealthy(pod: SimulatedPod, script: PodScript, state: PodState, since: float, now: float) -> Iterator[Notice]:
    """The Events about failed probes in the time after ``since`` until ``now``. While a pod is being stopped, only
    readiness is probed."""
    stop_at = state.stop.at if state.stop is not None else math.inf
    for container, current in zip(script.containers, state.containers, strict=True):
        for failure in container.probing(current.starts).failures if current.started_at is not None else ():
            at = (current.started_at or 0.0) + failure.at_s
            if since < at <= now and (failure.probe == "readiness" or at < stop_at):
                yield _unhealthy(pod, container, failure.probe, failure.text)


def _unhealthy(pod: SimulatedPod, container: ContainerScript, probe: str, text: str) -> Notice:
    return _notice(pod, container, WARNING, "Unhealthy", f"{probe.capitalize()} probe failed: {text}")


def _of_hook(
    pod: SimulatedPod, container: ContainerScript, old: ContainerState, new: ContainerState
) -> Iterator[Notice]:
    """Events about a run that its ``postStart`` hook has ended."""
    ended = new.exit or new.previous
    if ended is not None and ended.run <= (old.exit.run if old.exit is not None else 0):
        return
    if ended_by_hook(container, ended):
        yield _notice(pod, container, WARNING, "FailedPostStartHook", "PostStartHook failed")
        yield _notice(pod, container, NORMAL, "Killing", "FailedPostStartHook")


def _of_hold(
    pod: SimulatedPod, container: ContainerScript, state: ContainerState, hold: Hold, images: Images
) -> Iterator[Notice]:
    image = hold.image or next((c.image for c in containers_of(pod) if c.name == container.name), "")
    reason, _ = waiting(image, hold, state.attempts)
    error = reason
    if reason == PULL:
        yield _notice(pod, container, NORMAL, "Pulling", f'Pulling image "{image}"')
        yield _notice(pod, container, WARNING, "Failed", f'Failed to pull image "{image}": {hold.message}')
    elif hold.reason == PULL:
        yield _notice(pod, container, NORMAL, "BackOff", f'Back-off pulling image "{image}"')
    elif reason in _IMAGE_REASONS:
        yield _notice(pod, container, WARNING, _IMAGE_REASONS[reason], hold.message)
    else:
        yield from _of_image(pod, container, images)
        error = hold.message
    yield _notice(pod, container, WARNING, "Failed", f"Error: {error}")


def _of_image(pod: SimulatedPod, container: ContainerScript, images: Images) -> Iterator[Notice]:
    spec = next((c for c in containers_of(pod) if c.name == container.name), None)
    if spec is not None:
        for reason, text in _pulled(spec.image, spec.image_pull_policy, images):
            yield _notice(pod, container, NORMAL, reason, text)


def _pulled(image: str, policy: str, images: Images) -> Iterator[tuple[str, str]]:
    """The reasons and messages of the Events about an image, which is added to ``images``."""
    pull = images.use(image, policy)
    if pull is None:
        yield "Pulled", f'Container image "{image}" already present on machine and can be accessed by the pod'
        return
    yield "Pulling", f'Pulling image "{image}"'
    took = f"{pull.took_ms}ms"
    text = f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {pull.size} bytes.'
    yield "Pulled", text


def _notice(pod: SimulatedPod, container: ContainerScript, type_: str, reason: str, message: str) -> Notice:
    ref = ref_of("Pod", pod, f"spec.{_FIELDS.get(container.role, 'initContainers')}{{{container.name}}}")
    return Notice(ref, type_, reason, message)

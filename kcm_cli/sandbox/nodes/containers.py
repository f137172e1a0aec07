"""The status of one container as a kubelet reports it.

upstream: pkg/kubelet/kubelet_pods.go#convertToAPIContainerStatuses
"""

from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.remembered import remembered
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.nodes.machine import (
    KILLED,
    PULL,
    RESET_S,
    RESTARTING_ALL,
    RESTARTING_ALL_MESSAGE,
    RESYNC_S,
    ContainerState,
    Exit,
    Hold,
    ended_by_hook,
)
from kcm_cli.sandbox.nodes.script import ContainerScript, Role
from kcm_cli.sandbox.programs.execution import cut
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod, containers_of

_LONGEST_MESSAGES = 12 << 10
"""The limit for the termination messages of a pod, shared equally by its containers, in bytes. upstream:
pkg/kubelet/status/status_manager.go#normalizeStatus"""
CRASH_LOOP, HOOK_FAILED = "CrashLoopBackOff", "PostStartHookError"
_LOST = "ContainerStatusUnknown"
_LOST_MESSAGE = "The container could not be located when the pod was terminated"


class Report(msgspec.Struct, frozen=True):
    """The reported status of one container, and the facts in it that conditions are computed from."""

    name: str
    role: Role
    ready: bool
    started: bool
    doc: Doc


def report(
    pod: SimulatedPod,
    spec: SimulatedContainer,
    script: ContainerScript,
    current: ContainerState,
    now: float,
    *,
    lost: bool,
) -> Report:
    """The status of a container. spec, script, current: what it is, what it does, and where that has got to. now: in
    seconds, as the times of ``current``. lost: the pod has ended, and the container is reported as
    lost if it did not run."""
    running = current.started_at is not None
    age_s = now - current.started_at if current.started_at is not None else -1.0
    probing = script.probing(current.starts)
    started = running and age_s >= probing.started_s
    turns = sum(turn_s <= age_s for turn_s in probing.turns_s)
    ready = started and age_s >= probing.ready_s and turns % 2 == 0
    if started and current.set_ready is not None and current.set_ready[0] <= now:
        ready = current.set_ready[1]
    ended = current.exit
    if script.role is Role.INIT:
        ready = ended is not None and ended.code == 0
        started = running
    elif script.role is Role.DEBUG:
        ready = False
    doc: Doc = {
        "name": spec.name,
        "image": spec.image,
        "imageID": "",
        "ready": ready,
        "restartCount": current.starts if current.fresh else current.starts - 1,
        "state": _state(pod, spec, script, current, now, lost=lost),
        "lastState": _last_state(pod, spec.name, current, now),
    }
    if script.role is not Role.DEBUG:
        doc["started"] = started
    if not current.fresh:
        image = full_image(spec.image)
        doc["image"] = image
        doc["imageID"] = image_id(image)
        doc["containerID"] = container_id(pod.uid, spec.name, current.starts)
        doc["resources"] = _resources(spec)
        doc["user"] = _user(pod, spec)
        if spec.resources is not None and spec.resources.requests:
            doc["allocatedResources"] = spec.resources.requests
    if spec.volume_mounts:
        doc["volumeMounts"] = _mounts(spec)
    return Report(spec.name, script.role, ready, started, doc)


def waiting(image: str, hold: Hold, attempts: int) -> tuple[str, str]:
    """Return the reason and the message of a container that cannot start."""
    if hold.reason == PULL and attempts % 2 == 0:
        return "ImagePullBackOff", f'Back-off pulling image "{image}": {PULL}: {hold.message}'
    return hold.reason, hold.message


def _state(
    pod: SimulatedPod,
    spec: SimulatedContainer,
    script: ContainerScript,
    current: ContainerState,
    now: float,
    *,
    lost: bool,
) -> Doc:
    if current.started_at is not None:
        return {"running": {"startedAt": instant(current.started_at)}}
    ended = current.exit
    if current.hold is not None and current.attempts and not lost and not (pod.deleting and current.exit):
        reason, message = waiting(current.hold.image or spec.image, current.hold, current.attempts)
        return {"waiting": {"reason": reason, "message": message}}
    if ended is None or current.fresh:
        if lost:
            return {"terminated": {"exitCode": KILLED, "reason": _LOST, "message": _LOST_MESSAGE, **_NO_TIMES}}
        if ended is not None and now < ended.finished + RESET_S:
            return {"waiting": {"reason": RESTARTING_ALL, "message": RESTARTING_ALL_MESSAGE}}
        reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
        return {"waiting": {"reason": reason}}
    if _backing_off(pod, current, now):
        if ended_by_hook(script, ended) and now < ended.finished + RESYNC_S:
            return {"waiting": {"reason": HOOK_FAILED, "message": script.post_start.error}}
        message = (
            f"back-off {_go_seconds(current.backoff_s)} restarting failed container={spec.name} "
            f"pod={pod.name}_{pod.namespace}({pod.uid})"
        )
        return {"waiting": {"reason": CRASH_LOOP, "message": message}}
    return {"terminated": _terminated(pod, spec.name, ended)}


_NO_TIMES: Doc = {"startedAt": None, "finishedAt": None}


def _backing_off(pod: SimulatedPod, current: ContainerState, now: float) -> bool:
    """Whether the container will be restarted later. Containers of a pod that is being deleted are not."""
    if pod.deleting:
        return False
    ended = current.exit
    return ended is not None and ended.finished < current.restart_at < float("inf") and now < current.restart_at


def _last_state(pod: SimulatedPod, name: str, current: ContainerState, now: float) -> Doc:
    held = current.hold is not None and current.attempts > 0 and not pod.deleting
    over = current.started_at is None and (held or current.fresh or _backing_off(pod, current, now))
    last = current.exit if over and current.exit is not None else current.previous
    return {"terminated": _terminated(pod, name, last)} if last is not None else {}


def _terminated(pod: SimulatedPod, name: str, ended: Exit) -> Doc:
    text = cut(ended.message, _LONGEST_MESSAGES // max(1, len(containers_of(pod))))
    message: Doc = {"message": text} if text else {}
    if ended.reason == RESTARTING_ALL:  # its exit was not observed
        return {"exitCode": ended.code, "reason": ended.reason, **message, **_NO_TIMES}
    return {
        "exitCode": ended.code,
        "reason": ended.reason,
        **message,
        "startedAt": instant(ended.started),
        "finishedAt": instant(ended.finished),
        "containerID": container_id(pod.uid, name, ended.run),
    }


def _go_seconds(seconds: float) -> str:
    """Format whole seconds as Go does: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def container_id(uid: str, name: str, run: int) -> str:
    """Return the ID of one run of a container. It is always the same for the same run."""
    return f"containerd://{sha256(f'{uid}/{name}/{run}'.encode()).hexdigest()}"


def full_image(image: str) -> str:
    """Return the full image name, as a container runtime stores it: with its registry, and with a digest or a tag."""
    name, _, digest = image.partition("@")
    registry, slash, repository = name.partition("/")
    if not slash or not (set(registry) & set(".:") or registry == "localhost"):
        registry, repository = _REGISTRY, name
    if registry in (_REGISTRY, f"index.{_REGISTRY}"):
        registry, repository = _REGISTRY, repository if "/" in repository else f"library/{repository}"
    folder, slash, last = repository.rpartition("/")
    title, _, tag = last.partition(":")
    version = f"@{digest}" if digest else f":{tag or 'latest'}"
    return f"{registry}/{folder}{slash}{title}{version}"


_REGISTRY = "docker.io"


@remembered(1024)
def image_id(image: str) -> str:
    """Return a full image name with its digest."""
    if "@" in image:
        return image
    return f"{image[: image.rindex(':')]}@sha256:{sha256(image.encode()).hexdigest()}"


def _resources(spec: SimulatedContainer) -> Doc:
    doc: Doc = {}
    if spec.resources is not None:
        if spec.resources.limits:
            doc["limits"] = spec.resources.limits
        if spec.resources.requests:
            doc["requests"] = spec.resources.requests
    return doc


def _user(pod: SimulatedPod, spec: SimulatedContainer) -> Doc:
    """The user and groups that the container runs as. Users that images define are not known."""
    contexts = [context for context in (spec.security_context, pod.spec.security_context) if context is not None]
    uid = next((context.run_as_user for context in contexts if context.run_as_user is not None), 0)
    gid = next((context.run_as_group for context in contexts if context.run_as_group is not None), 0)
    groups = [gid]
    if pod.spec.security_context is not None:
        more = (pod.spec.security_context.fs_group, *pod.spec.security_context.supplemental_groups)
        groups += [group for group in more if group is not None]
    return {"linux": {"uid": uid, "gid": gid, "supplementalGroups": sorted(set(groups))}}


def _mounts(spec: SimulatedContainer) -> list[Doc]:
    mounts: list[Doc] = []
    for mount in spec.volume_mounts:
        doc: Doc = {"name": mount.name, "mountPath": mount.mount_path}
        if mount.read_only:
            doc["readOnly"] = True
            recursive = mount.recursive_read_only in ("Enabled", "IfPossible")
            doc["recursiveReadOnly"] = "Enabled" if recursive else "Disabled"
        mounts.append(doc)
    return mounts


def instant(at: float) -> str:
    """Format a time in seconds since the epoch as the API does."""
    return format_time(datetime.fromtimestamp(at, UTC))

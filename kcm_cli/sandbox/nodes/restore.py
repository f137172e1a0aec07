"""Restores the state of a pod that ran before its kubelet started from its status."""

from collections.abc import Sequence
from math import inf

from kcm_cli.api.core import ContainerStatus, Terminated
from kcm_cli.machinery.times import seconds_of
from kcm_cli.sandbox.nodes.machine import (
    BACKOFF_MAX_S,
    BACKOFF_S,
    RESET_S,
    RESTARTING_ALL,
    ContainerState,
    Exit,
    PodState,
    accept,
)
from kcm_cli.sandbox.nodes.script import ContainerScript, PodScript, Role
from kcm_cli.sandbox.views import SimulatedPod


def restore(pod: SimulatedPod, script: PodScript, now: float) -> PodState:
    """The state of a pod with this status; that of a new pod if it has no start time."""
    started = seconds_of(pod.status.start_time)
    if started is None:
        return accept(script, now)
    status = pod.status
    every = (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
    statuses = {status.name: status for status in every}
    containers = tuple(_container(container, statuses.get(container.name), now) for container in script.containers)
    has_sandbox = any(container.starts for container in containers)
    removed = any(container.fresh and container.starts for container in containers)
    return PodState(
        started,
        containers,
        _first_start(containers, started) if has_sandbox else None,
        reset_at=now - RESET_S if removed else -inf,  # so that they start now
    )


def _container(script: ContainerScript, status: ContainerStatus | None, now: float) -> ContainerState:
    if status is None or status.state is None:
        return ContainerState(restart_at=now) if script.role is Role.DEBUG else ContainerState()
    starts = status.restart_count + 1
    last = status.last_state.terminated if status.last_state is not None else None
    previous = _exit(last, starts - 1)
    backoff_s = min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** min(status.restart_count - 1, 8)) if status.restart_count else 0.0
    state = status.state
    if state.running is not None:
        at = seconds_of(state.running.started_at)
        return ContainerState(starts, at, None, previous, backoff_s=backoff_s, backoff_at=at or 0.0)
    if state.terminated is not None:
        ended = _exit(state.terminated, starts)
    elif last is not None and last.reason == RESTARTING_ALL:  # removed with the others, and not started again yet
        removed = _exit(last, status.restart_count)
        return ContainerState(status.restart_count, exit=removed, base=status.restart_count)
    elif last is not None:
        ended, previous = _exit(last, starts), None
    else:
        return ContainerState()
    if ended is None:
        return ContainerState()
    again = script.restarts_after(ended.code) and not (script.role is Role.INIT and ended.code == 0)
    restart_at = ended.finished + backoff_s if again else float("inf")
    return ContainerState(starts, None, ended, previous, restart_at, backoff_s, ended.started)


def _exit(terminated: Terminated | None, run: int) -> Exit | None:
    if terminated is None:
        return None
    finished = seconds_of(terminated.finished_at) or 0.0
    started = seconds_of(terminated.started_at) or finished
    return Exit(terminated.exit_code, terminated.reason, started, finished, run, terminated.message)


def _first_start(containers: Sequence[ContainerState], default: float) -> float:
    starts = [container.started_at for container in containers if container.started_at is not None]
    starts += [ended.started for c in containers if (ended := c.exit) is not None]
    return max(default, min(starts, default=default))

"""A pod's life on its node as a state machine, without a clock or I/O: the time is a parameter.

Guarantees: changes happen at their own times, however rarely ``advance`` is called: ``advance(a, t2) ==
advance(advance(a, t1), t2)``. ``due`` returns the time of the next change. Times are seconds since the epoch.

upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go, staging/src/k8s.io/client-go/util/flowcontrol/backoff.go
"""

import math
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.nodes.probes import Verdicts
from kcm_cli.sandbox.nodes.script import ContainerScript, PodScript, Role

BACKOFF_S, BACKOFF_MAX_S = 10.0, 300.0
KILLED = 137
"""The exit code of a process that was killed (SIGKILL)."""


class Exit(msgspec.Struct, frozen=True):
    """How a run of a container ended."""

    code: int
    reason: str
    started: float
    finished: float
    run: int
    message: str = ""
    cause: str = ""
    """Why its kubelet ended it to start another one: the probe that failed, or ``change`` of its definition."""


class Hold(msgspec.Struct, frozen=True):
    """Why something cannot start now: the reason and message for its status or Event.

    more: the messages of further Events with this reason. image: the image of a volume, if that is the cause.
    """

    reason: str
    message: str
    more: tuple[str, ...] = ()
    image: str = ""


PULL, MOUNT = "ErrImagePull", "FailedMount"
ATTACH = "FailedAttachVolume"
"""The attach/detach controller emits its Event, not the kubelet."""
SANDBOX = "FailedCreatePodSandBox"
_LEAST_GRACE_S = 2.0
"""The minimum time from SIGTERM to SIGKILL, however short the rest of the grace period is."""
_PULL_FAILS_S = 2.0
"""How long the status reports a failed pull (ErrImagePull) before it reports the back-off (ImagePullBackOff)."""
_MOUNT_BACKOFF_S, _MOUNT_BACKOFF_MAX_S, _SANDBOX_BACKOFF_S = 0.5, 122.0, 10.0


class ContainerState(msgspec.Struct, frozen=True):
    """The state of one container. It runs if ``started_at`` is set; otherwise it has ended (``exit``) or not started
    yet.

    previous: the end of the run before. restart_at: infinite if it will not restart. run_from: where the current run's
    time starts to count, if the script changed during the run. hold: what prevents it from starting. free_from: when
    that last changed. attempts: the attempts to start it since then; for images, every second one is the back-off after
    a failed pull. set_ready: since when it is ready or not, whatever the script says. fails_at: when the failing
    liveness probe ends the run. base: the number of starts when all containers of the pod were last restarted.
    """

    starts: int = 0
    started_at: float | None = None
    exit: Exit | None = None
    previous: Exit | None = None
    restart_at: float = math.inf
    backoff_s: float = 0.0
    backoff_at: float = 0.0
    run_from: float = 0.0
    hold: Hold | None = None
    attempts: int = 0
    attempted_at: float = 0.0
    free_from: float = 0.0
    set_ready: tuple[float, bool] | None = None
    fails_at: float = math.inf
    base: int = 0

    @property
    def fresh(self) -> bool:
        """Whether it has not started since the pod's creation or since all its containers were last restarted."""
        return self.starts == self.base


class Stop(msgspec.Struct, frozen=True):
    """The pod has been stopping since ``at``. What still runs at ``deadline`` is killed."""

    at: float
    deadline: float
    reason: str = ""
    message: str = ""


class PodState(msgspec.Struct, frozen=True):
    """A pod as its kubelet knows it.

    sandbox_at: when it got its address and containers could start. changed_at: when its script or hold last changed.
    reset_at: when all its containers were last restarted.
    """

    accepted_at: float
    containers: tuple[ContainerState, ...]
    sandbox_at: float | None = None
    stop: Stop | None = None
    changed_at: float = 0.0
    hold: Hold | None = None
    attempts: int = 0
    attempted_at: float = 0.0
    reset_at: float = -math.inf


RESTARTING_ALL = "RestartingAllContainers"
RESTARTING_ALL_MESSAGE = "The container is removed because RestartAllContainers in place"
RESET_S = 1.0
"""How long it takes to remove all containers of a pod."""
RESYNC_S = 60.0
"""The interval in which a kubelet syncs a pod that does not change, and how long a failed ``postStart`` hook is the
reason of its waiting container."""
DEADLINE_EXCEEDED, EVICTED = "DeadlineExceeded", "Evicted"
_EVICTION_GRACE_S = 1.0
_DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def accept(script: PodScript, now: float) -> PodState:
    """Return the state of a pod that its kubelet has just seen."""
    return extend(
        script, PodState(now, tuple(ContainerState() for c in script.containers if c.role is not Role.DEBUG)), now
    )


def stop(state: PodState, now: float, grace_s: float) -> PodState:
    """Stop a pod. A second call can only shorten the grace period."""
    deadline = now + grace_s
    if state.stop is None:
        return replace(state, stop=Stop(now, deadline))
    if deadline < state.stop.deadline:
        return replace(state, stop=replace(state.stop, deadline=deadline))
    return state


def evict(script: PodScript, state: PodState, now: float, message: str) -> PodState:
    """Stop a pod at once, which fails, unless it has ended or is being stopped."""
    if state.stop is not None or finished(script, state):
        return state
    return replace(state, stop=Stop(now, now + _EVICTION_GRACE_S, EVICTED, message))


def change(state: PodState, index: int, now: float) -> PodState:
    """Restart a container at once, because its definition has changed: one that runs or waits for its backoff, which
    begins anew."""
    current = state.containers[index]
    if current.started_at is None:
        return renew(state, index, now)
    ended = Exit(0, "Completed", current.started_at, now, current.starts, cause="change")
    return _with(state, index, replace(current, started_at=None, exit=ended, restart_at=now, backoff_s=0.0))


def renew(state: PodState, index: int, now: float) -> PodState:
    """Let a container's backoff begin anew, because its image or resources have changed. One that waits restarts."""
    current = state.containers[index]
    waits = current.started_at is None and not current.fresh and now < current.restart_at < math.inf
    return _with(state, index, replace(current, backoff_s=0.0, restart_at=now if waits else current.restart_at))


def kill(script: PodScript, state: PodState, index: int, now: float, code: int, reason: str) -> PodState:
    """End a running container as if its process had been killed. Its restart policy applies."""
    current = state.containers[index]
    if current.started_at is None:
        return state
    ended = Exit(code, reason or _reason(code), current.started_at, now, current.starts)
    _, killed = _exit(script, state, index, ended)
    return killed or state


def ends_after_signal(script: PodScript, state: PodState, index: int, now: float) -> tuple[float, int] | None:
    """When a running container ends after a signal at ``now``, and its exit code; None if it does not."""
    container, current = script.containers[index], state.containers[index]
    if current.started_at is None:
        return None
    signals = container.nth_run(current.starts).signals
    answer = signals.answer(now - current.started_at) if signals is not None else None
    at, code = (now + container.stop_s, 0) if answer is None else (current.started_at + answer[0], answer[1])
    return None if at == math.inf else (at, code)


def tell(state: PodState, index: int, now: float, verdicts: Verdicts) -> PodState:
    """Apply new probe results to a running container."""
    current = state.containers[index]
    if current.started_at is None:
        return state
    if verdicts.ready is not None:
        ready, after_s = verdicts.ready
        current = replace(current, set_ready=(now + after_s, ready))
    if verdicts.alive is not None:
        alive, after_s = verdicts.alive
        current = replace(current, fails_at=math.inf if alive else min(current.fails_at, now + after_s))
    return _with(state, index, current)


def _reason(code: int) -> str:
    return "Completed" if code == 0 else "Error"


def hold(state: PodState, volumes: Hold | None, containers: Sequence[Hold | None], now: float) -> PodState:
    """Set what keeps the pod as a whole, and each of its first containers, from starting."""
    if state.hold != volumes:
        state = replace(state, hold=volumes, attempts=0, changed_at=now)
    for index, new in enumerate(containers[: len(state.containers)]):
        current = state.containers[index]
        if current.hold != new:
            state = _with(state, index, replace(current, hold=new, attempts=0, free_from=now))
    return state


def rewrite(old: PodScript, new: PodScript, state: PodState, now: float) -> PodState:
    """Apply another script from now on. The past stays, and runs that the new script changes are timed from now.

    state: advanced with the old script.
    """
    containers = list(state.containers)
    for index, current in enumerate(containers):
        before, after = old.containers[index], new.containers[index]
        runs = (each.nth_run(current.starts).silent for each in (before, after))
        if current.started_at is not None and next(runs) != next(runs):
            containers[index] = replace(current, run_from=now)
    return extend(new, replace(state, containers=tuple(containers), changed_at=now), now)


def extend(script: PodScript, state: PodState, now: float) -> PodState:
    """Add the containers that were added to the pod. They start now."""
    added = script.containers[len(state.containers) :]
    if not added:
        return state
    return replace(state, containers=(*state.containers, *(ContainerState(restart_at=now) for _ in added)))


def advance(script: PodScript, state: PodState, now: float) -> PodState:
    """Return the state at this time."""
    while True:
        at, changed = _next(script, state)
        if changed is None or at > now:
            return state
        state = changed


def due(script: PodScript, state: PodState, now: float) -> float:
    """Return the time of the next change after ``now``, or infinity if there is none.

    state: advanced to ``now``.
    """
    at, _ = _next(script, state)
    if now < state.reset_at + RESET_S < at:
        at = state.reset_at + RESET_S
    for index, (container, current) in enumerate(zip(script.containers, state.containers, strict=True)):
        if current.started_at is not None:
            if now < (unready := _unready_at(script, state, index)) < at:
                at = unready
            probing = container.probing(current.starts)
            looks = (failure.at_s for failure in probing.failures)
            for delay_s in (
                container.post_start.lasts_s,
                probing.started_s,
                probing.ready_s,
                *probing.turns_s,
                *looks,
            ):
                instant = current.started_at + delay_s
                if now < instant < at:
                    at = instant
            if current.set_ready is not None and now < current.set_ready[0] < at:
                at = current.set_ready[0]
        elif state.stop is None and current.restart_at < math.inf and current.exit is not None:
            resync_at = current.exit.finished + RESYNC_S
            if ended_by_hook(container, current.exit) and now < resync_at < at:
                at = resync_at
    return at


def ended_by_hook(container: ContainerScript, ended: Exit | None) -> bool:
    """Whether a failing ``postStart`` hook ended the run."""
    hook = container.post_start
    return hook.fails and ended is not None and ended.finished == ended.started + hook.lasts_s


def finished(script: PodScript, state: PodState) -> bool:
    """Whether nothing runs, and nothing will run again."""
    if any(current.started_at is not None for current in state.containers):
        return False
    return state.stop is not None or over_at(script, state) is not None


def shown(script: PodScript, state: PodState, now: float) -> PodState:
    """Return the state that a kubelet reports: without runs whose ``postStart`` hook has not finished, and with
    containers unready that are so while they stop."""
    found = state
    for index, (container, current) in enumerate(zip(script.containers, state.containers, strict=True)):
        if current.started_at is None:
            continue
        if now < current.started_at + container.post_start.lasts_s:
            hidden = replace(current, starts=current.starts - 1, started_at=None, exit=current.previous, previous=None)
            found = _with(found, index, hidden)
        elif now >= (unready := _unready_at(script, state, index)):
            found = _with(found, index, replace(current, set_ready=(unready, False)))
    return found


def initialized(script: PodScript, state: PodState, now: float) -> bool:
    """Whether all init containers are done, or a regular container has started."""
    for container, current in zip(script.containers, state.containers, strict=True):
        if container.role is Role.MAIN and current.starts:
            return True
    return all(
        _passed_at(container, current) <= now
        for container, current in zip(script.containers, state.containers, strict=True)
        if container.role in (Role.INIT, Role.SIDECAR)
    )


# -- the next change

_Change = tuple[float, PodState | None]
_NOTHING: _Change = (math.inf, None)


def _next(script: PodScript, state: PodState) -> _Change:
    """The earliest change, and the state after it."""
    best = _NOTHING
    for change in _changes(script, state):
        if change[0] < best[0]:
            best = change
    return best


def _changes(script: PodScript, state: PodState) -> Iterator[_Change]:
    stopping = _stopping(script, state)
    if stopping is None:
        yield from _setting_up(script, state)
    free_at = 0.0 if state.sandbox_at is None else max(state.sandbox_at, state.reset_at + RESET_S)
    for index, container in enumerate(script.containers):
        current = state.containers[index]
        if current.started_at is not None:
            yield _exit(script, state, index, _end(script, state, index, stopping))
        elif stopping is None and state.sandbox_at is not None:
            if current.fresh:
                added = container.role is Role.DEBUG
                yield _start(state, index, max(state.sandbox_at, current.restart_at) if added else free_at)
            elif current.restart_at < math.inf:
                yield _start(state, index, current.restart_at)
        if container.role in (Role.INIT, Role.SIDECAR):
            free_at = max(free_at, _passed_at(container, current))
        elif container.post_start.lasts_s > 0 and current.hold is None and not (current.exit and not current.fresh):
            begun = current.started_at
            free_at = math.inf if begun is None else max(free_at, begun + container.post_start.lasts_s)


def _stopping(script: PodScript, state: PodState) -> Stop | None:
    """Since when the pod is being stopped, or what is left of one that has ended by itself."""
    ended_at = over_at(script, state) if state.stop is None else None
    return state.stop if ended_at is None else Stop(ended_at, ended_at + script.grace_s)


def _setting_up(script: PodScript, state: PodState) -> Iterator[_Change]:
    if state.sandbox_at is None:
        at = max(state.accepted_at + script.start_delay_s, state.changed_at)
        if state.hold is None:
            yield at, replace(state, sandbox_at=at)
        else:
            at = _attempt_at(state.hold, state.attempts, state.attempted_at, at)
            yield at, replace(state, attempts=state.attempts + 1, attempted_at=at)
    at = max(state.accepted_at + script.deadline_s, state.changed_at)
    if at < math.inf:
        yield at, replace(state, stop=Stop(at, at + script.grace_s, DEADLINE_EXCEEDED, _DEADLINE_MESSAGE))


def _passed_at(container: ContainerScript, current: ContainerState) -> float:
    """When an init container lets the next one start; infinity if it does not yet."""
    if container.role is Role.SIDECAR:
        begun = current.started_at
        started_s = container.probing(current.starts).started_s
        return math.inf if begun is None else begun + max(started_s, container.post_start.lasts_s)
    ended = current.exit
    return ended.finished if ended is not None and ended.code == 0 else math.inf


def over_at(script: PodScript, state: PodState) -> float | None:
    """When the pod ended by itself: all regular containers ended, or an init container failed, and will not restart."""
    latest = 0.0
    for container, current in zip(script.containers, state.containers, strict=True):
        if container.role in (Role.SIDECAR, Role.DEBUG):
            continue
        ended = current.exit
        over = not current.fresh and current.started_at is None and current.restart_at == math.inf
        for_good = ended is not None and over
        if container.role is Role.INIT:
            if for_good and ended is not None and ended.code != 0:
                return ended.finished
        elif not for_good or ended is None:
            return None
        else:
            latest = max(latest, ended.finished)
    return latest


# -- starts and ends


def _start(state: PodState, index: int, at: float) -> _Change:
    if at == math.inf:
        return _NOTHING
    old = state.containers[index]
    at = max(at, old.free_from)
    if old.hold is not None:
        at = _attempt_at(old.hold, old.attempts, old.attempted_at, at)
        return at, _with(state, index, replace(old, attempts=old.attempts + 1, attempted_at=at))
    backoff_s, backoff_at = old.backoff_s, old.backoff_at
    replaced = old.exit is not None and bool(old.exit.cause)
    if not (old.fresh or (replaced and old.previous is None)):
        expired = old.exit is None or (not replaced and old.exit.finished - backoff_at > 2 * BACKOFF_MAX_S)
        backoff_s = BACKOFF_S if expired or backoff_s == 0.0 else min(BACKOFF_MAX_S, backoff_s * 2)
        backoff_at = at
    new = ContainerState(old.starts + 1, at, None, old.exit, math.inf, backoff_s, backoff_at, base=old.base)
    return at, _with(state, index, new)


def _attempt_at(hold: Hold, attempts: int, attempted_at: float, first_at: float) -> float:
    """When the next attempt to start something that is held is made."""
    if attempts == 0:
        return first_at
    if hold.reason == PULL:
        if attempts % 2:
            return attempted_at + _PULL_FAILS_S
        return attempted_at - _PULL_FAILS_S + min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** min(attempts // 2 - 1, 8))
    if hold.reason == MOUNT:
        return attempted_at + min(_MOUNT_BACKOFF_MAX_S, _MOUNT_BACKOFF_S * 2.0 ** min(attempts - 1, 8))
    return attempted_at + _SANDBOX_BACKOFF_S if hold.reason == SANDBOX else math.inf


def _end(script: PodScript, state: PodState, index: int, stopping: Stop | None) -> Exit | None:
    """How and when the current run of a container will end."""
    container, current = script.containers[index], state.containers[index]
    started = current.started_at or 0.0
    run = container.nth_run(current.starts)
    if stopping is not None:
        run = run.while_stopping
    at, code, reason = max(started, current.run_from) + run.lasts_s, run.exit_code, run.exit_reason
    message, cause = run.message, run.probe
    if current.fails_at < at and stopping is None:
        at, code, reason, message, cause = current.fails_at, KILLED, "", "", "liveness"
    if container.post_start.fails and stopping is None and started + container.post_start.lasts_s < at:
        at, code, reason, message, cause = started + container.post_start.lasts_s, 0, "", "", ""
    if stopping is not None:
        cause = ""
        asked_at = _asked_at(script, state, index, stopping)
        answer = run.signals.answer(asked_at - started) if run.signals is not None else None
        stopped_at, stop_code = asked_at + container.stop_s, 0
        if answer is not None:
            stopped_at, stop_code = started + answer[0], answer[1]
        killed_at = max(stopping.deadline, asked_at + _LEAST_GRACE_S)
        if stopped_at < at and started + run.done_s <= asked_at:
            at = asked_at
        elif stopped_at < at:
            at, code, reason, message = stopped_at, stop_code, "", ""
        if killed_at < at:
            at, code, reason, message = killed_at, KILLED, "", ""
    if at == math.inf:
        return None
    return Exit(code, reason or _reason(code), started, at, current.starts, message, cause)


def _asked_at(script: PodScript, state: PodState, index: int, stopping: Stop) -> float:
    """When a container gets SIGTERM, at the latest at the end of the grace period."""
    hook_s = min(script.containers[index].pre_stop.lasts_s, stopping.deadline - stopping.at)
    turn_at = min(_asked_to_stop_at(script, state, index, stopping), stopping.deadline)
    return max(state.containers[index].started_at or 0.0, turn_at, stopping.at + hook_s)


def _unready_at(script: PodScript, state: PodState, index: int) -> float:
    """When a running container becomes unready by what its program does when it is asked to stop; infinity: not."""
    container, current = script.containers[index], state.containers[index]
    signals = container.nth_run(current.starts).signals
    if signals is None or current.started_at is None:
        return math.inf
    stopping = _stopping(script, state)
    if stopping is None:
        return math.inf
    asked_at = _asked_at(script, state, index, stopping)
    return current.started_at + signals.unready(asked_at - current.started_at)


def _asked_to_stop_at(script: PodScript, state: PodState, index: int, stopping: Stop) -> float:
    """When it is a container's turn to get SIGTERM. Sidecars stop last, in reverse order."""
    if script.containers[index].role is not Role.SIDECAR:
        return stopping.at
    at = stopping.at
    for container, current in zip(script.containers[index + 1 :], state.containers[index + 1 :], strict=True):
        if current.started_at is not None:
            return math.inf
        if container.role is not Role.INIT and current.exit is not None:
            at = max(at, current.exit.finished)
    return at


def _exit(script: PodScript, state: PodState, index: int, ended: Exit | None) -> _Change:
    if ended is None:
        return _NOTHING
    container = script.containers[index]
    if state.stop is None and container.role is not Role.DEBUG and container.restarts_all_after(ended.code):
        return ended.finished, _restart_all(script, state, ended.finished)
    old = state.containers[index]
    restart_at = math.inf
    if container.restarts_after(ended.code) and not (container.role is Role.INIT and ended.code == 0):
        waits = old.backoff_s > 0.0 and ended.finished - old.backoff_at <= 2 * BACKOFF_MAX_S
        if ended.cause:  # a kubelet restarts it in the same pass, in which the run before is the last that it saw end
            waits = old.previous is not None and ended.finished - old.previous.finished < old.backoff_s
        restart_at = ended.finished + (old.backoff_s if waits else 0.0)
    new = replace(old, started_at=None, exit=ended, restart_at=restart_at, run_from=0.0, set_ready=None)
    return ended.finished, _with(state, index, new)


def _restart_all(script: PodScript, state: PodState, at: float) -> PodState:
    """Kill and remove all containers except ephemeral ones, and start them again in order."""
    containers: list[ContainerState] = []
    for container, old in zip(script.containers, state.containers, strict=True):
        if container.role is Role.DEBUG or old.fresh:
            containers.append(old)
            continue
        removed = Exit(KILLED, RESTARTING_ALL, at, at, old.starts, RESTARTING_ALL_MESSAGE)
        containers.append(
            ContainerState(old.starts, exit=removed, hold=old.hold, free_from=old.free_from, base=old.starts)
        )
    return replace(state, containers=tuple(containers), reset_at=at)


def _with(state: PodState, index: int, new: ContainerState) -> PodState:
    containers = state.containers
    return replace(state, containers=(*containers[:index], new, *containers[index + 1 :]))

"""The behaviour of a pod's containers, read once from its spec and annotations. ``machine`` executes it.

An annotation whose value cannot be parsed counts as absent and is reported in ``PodScript.problems``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from posixpath import normpath

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.nodes.annotations import (
    EXIT_CODE,
    EXIT_REASON,
    FAILING_PROBES,
    PULL_ERROR,
    READY_DELAY,
    RESTARTS,
    RUN_TIME,
    START_DELAY,
    STOP_TIME,
    Annotations,
)
from kcm_cli.sandbox.nodes.container_program import Program, hooked, is_pause, made_at_start, own_folders, program_of
from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs
from kcm_cli.sandbox.nodes.env_files import env_file_problems
from kcm_cli.sandbox.nodes.probes import Failure, Probed, fails_after, probed
from kcm_cli.sandbox.nodes.volumes import Objects, ReadOnce
from kcm_cli.sandbox.programs.execution import Execution, cut
from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.programs.signals import Signals, Stages
from kcm_cli.sandbox.programs.simulate import Environment, sharing
from kcm_cli.sandbox.views import Lifecycle, LifecycleHandler, Probe, RestartRule, SimulatedContainer, SimulatedPod

SIMULATED_FAILURE = "simulated failure"
RESTART_ALL = "RestartAllContainers"
_LONGEST_MESSAGE, _LAST_OF_LOG, _LAST_LINES = 4096, 2048, 80
"""The limits for a termination message in bytes, and for the end of a log that replaces it in bytes and lines."""
_NO_HOOKS = Lifecycle()
_NO_FILES: frozenset[str] = frozenset()
SHORT_RUN_S = 1.0
"""The time until a container ends whose annotations do not set it, and the least time of a program."""


class Role(Enum):
    """INIT ends before the next container starts; SIDECAR: an init container that keeps running; DEBUG: an ephemeral
    container; MAIN: a regular one."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"
    DEBUG = "debug"


class Run(msgspec.Struct, frozen=True):
    """One run of a container: seconds until it ends by itself (infinite: not at all), and how."""

    lasts_s: float
    exit_code: int
    exit_reason: str = ""
    probe: str = ""
    """The probe whose failure ends it."""
    message: str = ""
    """The termination message."""
    done_s: float = math.inf
    """When its program has ended, at most ``lasts_s``: a later stop does not change the result."""
    signals: Signals | None = None
    """The program's reaction to SIGTERM; None if it is unknown."""
    unprobed: "Run | None" = None
    """The run that ``probe`` ends, as it is without: while a pod is being stopped, only readiness is probed."""

    @property
    def while_stopping(self) -> "Run":
        """The run, if its pod is being stopped before it ends."""
        return self.unprobed or self

    @property
    def silent(self) -> "Run":
        """The run without its message."""
        unprobed = None if self.unprobed is None else replace(self.unprobed, message="")
        return replace(self, message="", unprobed=unprobed)


class Hook(msgspec.Struct, frozen=True):
    """A lifecycle hook: its duration, whether it fails, and the error."""

    lasts_s: float = 0.0
    fails: bool = False
    error: str = ""


NO_HOOK = Hook()


class Probing(msgspec.Struct, frozen=True):
    """What the probes of a run say, as in ``ContainerScript``."""

    started_s: float
    ready_s: float
    turns_s: tuple[float, ...] = ()
    failures: tuple[Failure, ...] = ()


class ContainerScript(msgspec.Struct, frozen=True):
    """A container's behaviour, in seconds from its start. ``stop_s``: from SIGTERM to its end, if its run has no
    ``signals``."""

    name: str
    role: Role
    restart: str
    rules: tuple[RestartRule, ...]
    run: Run
    failing_runs: int
    last_run: Run
    started_s: float
    ready_s: float
    stop_s: float
    pull_error: str = ""
    turns_s: tuple[float, ...] = ()
    """When it becomes unready and ready again, alternately, after ``ready_s``."""
    post_start: Hook = NO_HOOK
    pre_stop: Hook = NO_HOOK
    failures: tuple[Failure, ...] = ()
    """The failures of its probes."""
    env_problems: tuple[tuple[str, str], ...] = ()
    """The variables whose values are not in files of emptyDirs as they should be, each with the error."""
    later: Probing | None = None
    """What the probes of runs after ``failing_runs`` say, where they find other files."""

    def probing(self, number: int) -> "ContainerScript | Probing":
        """What the probes of the run with this number say."""
        return self if self.later is None or number <= self.failing_runs else self.later

    def nth_run(self, number: int) -> Run:
        """The run with this number, counted from 1."""
        return self.run if number <= self.failing_runs else self.last_run

    def restarts_all_after(self, code: int) -> bool:
        """Whether all containers of the pod are restarted after a run that ended with this code."""
        rule = next((rule for rule in self.rules if _covers(rule, code)), None)
        return rule is not None and rule.action == RESTART_ALL

    def restarts_after(self, code: int) -> bool:
        """Whether another run follows one that ended with this code."""
        for rule in self.rules:
            if _covers(rule, code):
                return True
        if self.restart == "OnFailure":
            return code != 0
        return self.restart == "Always"


class PodScript(msgspec.Struct, frozen=True):
    """A pod's behaviour. ``containers``: init containers, then regular ones, then ephemeral ones."""

    containers: tuple[ContainerScript, ...]
    start_delay_s: float
    deadline_s: float
    grace_s: float
    problems: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()
    """The files that its containers' first runs write in folders of the node."""


def read(
    pod: SimulatedPod,
    *,
    commands: bool = True,
    annotations: Mapping[str, str] | None = None,
    files: frozenset[str] = frozenset(),
    objects: Objects | None = None,
) -> PodScript:
    """The behaviour of a pod. annotations: instead of its own. files: those that earlier pods have written in folders
    of the node (hostPath of type DirectoryOrCreate). objects: those that its variables and volumes refer to.

    commands: whether containers do what their commands say; those with unknown commands then end by themselves only in
    pods of Jobs and pods with a deadline. Without it every container that may end does.
    """
    annotated = Annotations(pod.annotations if annotations is None else annotations)
    spec = pod.spec
    owner = controller_of(pod)
    finite = spec.active_deadline_seconds is not None or (owner is not None and owner.kind == "Job")
    reader = _Reader(pod, annotated, commands=commands, ends=not commands or finite, files=files, objects=objects)
    with sharing():
        containers = [reader.script(c, _init_role(c), spec.restart_policy) for c in spec.init_containers]
        containers += [reader.script(c, Role.MAIN, spec.restart_policy) for c in spec.containers]
        containers += [reader.script(c, Role.DEBUG, "Never") for c in spec.ephemeral_containers]
    containers = reader.with_env_problems(containers)
    grace_s = spec.termination_grace_period_seconds
    return PodScript(
        tuple(containers),
        annotated.seconds(START_DELAY, "", 0.0),
        math.inf if spec.active_deadline_seconds is None else float(spec.active_deadline_seconds),
        30.0 if grace_s is None else float(grace_s),
        tuple(annotated.problems),
        frozenset(reader.left) if reader.left else _NO_FILES,
    )


def _init_role(container: SimulatedContainer) -> Role:
    return Role.SIDECAR if container.restart_policy == "Always" else Role.INIT


def _failing(run: Run, known: Probed) -> Run:
    """The run, or one that a failing probe ends before."""
    if known.fails is None or known.fails[0] >= run.lasts_s:
        return run
    return Run(known.fails[0], 137, "", known.fails[1], signals=run.signals, unprobed=run)


def _probed(run: Run, name: str, probe: Probe, begins_s: float) -> Run:
    """The run, or one that this probe, which always fails, ends before. begins_s: it does not run earlier."""
    begins_s = max(begins_s, float(probe.initial_delay_seconds))
    fails_s = begins_s + max(probe.failure_threshold, 1) * max(probe.period_seconds, 1)
    if fails_s >= run.lasts_s:
        return run
    return Run(fails_s, 137, "", name, signals=run.signals, unprobed=run.while_stopping)


def _failure(name: str, probe: Probe, started_s: float) -> Failure:
    """The first failure of a probe that always fails."""
    begins_s = 0.0 if name == "startup" else started_s
    return Failure(max(float(probe.initial_delay_seconds), begins_s), name, SIMULATED_FAILURE)


class _Reader:
    """Reads the containers of one pod. ``ends``: those whose restart policy is not Always end by themselves."""

    def __init__(
        self,
        pod: SimulatedPod,
        annotated: Annotations,
        *,
        commands: bool,
        ends: bool,
        files: frozenset[str],
        objects: Objects | None,
    ) -> None:
        self._pod = pod
        self._annotations = annotated
        self._commands = commands
        self._ends = ends
        self._files = files
        self._objects = None if objects is None else ReadOnce(objects)
        self._empty_dirs = EmptyDirs()
        """The files that init containers leave for later containers."""
        self.left: set[str] = set()
        self._stages: tuple[Stages, Stages] = ((), ())
        """Of the current container: the files during its first run, and during later ones."""
        self._env_problems: dict[str, dict[str, tuple[str, str]]] = {}
        """By container: the variables without a value, each with its volume and the error."""
        self._writers: dict[str, set[str]] = {}
        """By emptyDir: the containers that run while others do, and may write into it."""

    def with_env_problems(self, containers: Sequence[ContainerScript]) -> list[ContainerScript]:
        """Set the ``env_problems`` of containers, without files that another running container may write."""
        found = list(containers)
        for index, container in enumerate(containers):
            problems = tuple(
                (variable, message)
                for variable, (volume, message) in self._env_problems.get(container.name, {}).items()
                if not self._writers.get(volume, set()) - {container.name}
            )
            if problems:
                found[index] = replace(container, env_problems=problems)
        return found

    def script(self, container: SimulatedContainer, role: Role, pod_policy: str) -> ContainerScript:
        annotated, name = self._annotations, container.name
        self._env_problems[name] = env_file_problems(container, self._pod, self._empty_dirs)
        scope = name if role is not Role.MAIN else f"{name}*"
        restart = container.restart_policy or _pod_policy(role, pod_policy)
        restarts = annotated.number(RESTARTS, scope)
        code = annotated.number(EXIT_CODE, scope)
        reason = annotated.text(EXIT_REASON, scope)
        finite = self._ends and restart != "Always" and role is not Role.DEBUG and not is_pause(container)
        ends = role is Role.INIT or finite
        natural_s = 0.0 if role is Role.INIT else SHORT_RUN_S if ends or code is not None else math.inf
        lasts_s = annotated.seconds(RUN_TIME, scope, natural_s)
        if restarts is not None:
            run = Run(annotated.seconds(RUN_TIME, scope, SHORT_RUN_S), 1 if code is None else code, reason)
            runs = restarts, run, Run(lasts_s if ends else math.inf, 0)
        else:
            run = Run(lasts_s, code or 0, reason)
            runs = 0, run, run
            if self._commands and role is Role.INIT and code is None and not (container.command or container.args):
                self._empty_dirs.doubt(self._program(container).own)
            if self._commands and code is None and (container.command or container.args):
                runs = self._programmed(container, role, scope, reason) or runs
        failing, first, last = runs
        stages = self._stages[0]
        known, again = self._probed(container)
        hooks = container.lifecycle or _NO_HOOKS
        post_start = self._hook(container, hooks.post_start)
        probing, later = (self._probing(container, scope, each, post_start.lasts_s) for each in (known, again))
        self._record_writes(container, role, stages, probing.started_s)
        first, last = _failing(first, known), _failing(last, again)
        if first != last or probing != later:
            failing = max(failing, 1)
        failed = self._failing_probes(scope)
        if "liveness" in failed and (probe := container.liveness_probe) is not None:
            first = _probed(first, "liveness", probe, probing.started_s)
            last = _probed(last, "liveness", probe, later.started_s)
        if "startup" in failed and (probe := container.startup_probe) is not None:
            first, last = (_probed(each, "startup", probe, 0.0) for each in (first, last))
        return ContainerScript(
            container.name,
            role,
            restart,
            container.restart_policy_rules,
            first,
            failing,
            last,
            probing.started_s,
            probing.ready_s,
            annotated.seconds(STOP_TIME, scope, 0.0),
            annotated.text(PULL_ERROR, scope),
            probing.turns_s,
            post_start,
            self._hook(container, hooks.pre_stop),
            probing.failures,
            later=None if probing == later else later,
        )

    def _failing_probes(self, scope: str) -> set[str]:
        return {name.strip() for name in self._annotations.text(FAILING_PROBES, scope).split(",")}

    def _probing(self, container: SimulatedContainer, scope: str, known: Probed, least_s: float) -> Probing:
        """What the probes of a run say. least_s: it does not count as started before."""
        startup, readiness = container.startup_probe, container.readiness_probe
        started_s = max(_probe_s(startup) if known.started_s is None else known.started_s, least_s)
        ready_s, turns = max(started_s, _probe_s(readiness)), known.turns or ()
        if known.turns is not None:
            ready_s, turns = (turns[0], turns[1:]) if turns else (math.inf, ())
        ready_s = max(ready_s, self._annotations.seconds(READY_DELAY, scope, ready_s))
        failed = self._failing_probes(scope)
        if "startup" in failed and startup is not None:
            started_s = ready_s = math.inf
        if "readiness" in failed and readiness is not None:
            ready_s = math.inf
        probes = (("liveness", container.liveness_probe), ("startup", startup), ("readiness", readiness))
        always = [_failure(name, probe, started_s) for name, probe in probes if name in failed and probe is not None]
        return Probing(started_s, ready_s, turns, (*known.failures, *always))

    def _program(self, container: SimulatedContainer, command: Sequence[str] = ()) -> Program:
        return program_of(container, self._pod, self._objects, command, made=self._empty_dirs)

    def _record_writes(self, container: SimulatedContainer, role: Role, stages: Stages, started_s: float) -> None:
        """Record the emptyDirs into which a container may write while others run, and what a sidecar leaves for later
        containers.

        stages: empty if its program is unknown.
        """
        if role is Role.INIT or not any(volume.empty_dir is not None for volume in self._pod.spec.volumes):
            return
        own = self._program(container).own
        before = self._empty_dirs.seen_by(own)
        last = stages[-1][1] if stages else {}
        fixed = {mount.mount_path.rstrip("/") for mount in container.volume_mounts if mount.read_only}
        for folder, (volume, _) in own.items():
            wrote = not stages or any(before.get(path, "") != last[path] for path in _below(folder, last))
            if wrote and folder not in fixed:
                self._writers.setdefault(volume, set()).add(container.name)
        if role is Role.SIDECAR and not stages:
            self._empty_dirs.doubt({folder: each for folder, each in own.items() if folder not in fixed})
        elif role is Role.SIDECAR:
            _, files, gone = next(each for each in reversed(stages) if each[0] <= max(started_s, stages[0][0]))
            self._empty_dirs.put(own, files, gone)

    def _probed(self, container: SimulatedContainer) -> tuple[Probed, Probed]:
        """The probe results of the first run and of later ones, as far as commands and files are known."""
        stages, self._stages = self._stages, ((), ())
        if not self._commands or not (container.startup_probe or container.readiness_probe or container.liveness_probe):
            return Probed(), Probed()
        env = self._program(container).env
        first, again = (probed(container, env, each, own_folders(container)) for each in stages)
        return first, again

    def _hook(self, container: SimulatedContainer, handler: LifecycleHandler | None) -> Hook:
        """The result of a hook. Unknown commands succeed; ``tcpSocket`` fails, as kubelets do not support it."""
        if handler is None:
            return NO_HOOK
        if handler.sleep is not None:
            return Hook(float(handler.sleep.seconds))
        known = self._hooked(container, handler)
        if known is None and handler.tcp_socket is not None:
            return Hook(fails=True, error=_no_handler(handler.tcp_socket))
        if known is None or known.code == 0 or handler.exec is None:
            return Hook() if known is None else Hook(known.lasts_s)
        return Hook(known.lasts_s, True, _hook_error(handler.exec.command, known, container, self._pod))

    def _hooked(self, container: SimulatedContainer, handler: LifecycleHandler) -> Execution | None:
        return hooked(container, self._pod, self._objects, handler, self._empty_dirs) if self._commands else None

    def _programmed(
        self, container: SimulatedContainer, role: Role, scope: str, reason: str
    ) -> tuple[int, Run, Run] | None:
        """The runs of a known command: the number of first runs (0 if all are equal), the first run, and later ones,
        which find the files that it wrote in emptyDirs and in folders of the node. None if it is unknown."""
        program = self._program(container)
        shared = _folders_of_node(container, self._pod)
        there: dict[str, str | None] = dict.fromkeys(
            f"{mount}{file[len(folder) :]}" for mount, folder in shared.items() for file in _below(folder, self._files)
        )
        there |= self._empty_dirs.seen_by(program.own)
        there |= made_at_start(container, self._pod, self._objects, self._empty_dirs)
        scratch = (*self._empty_dirs.known(program.own), *shared)
        first = program.outcome(scratch, there)
        if first is None:
            if role is Role.INIT:
                self._empty_dirs.doubt(program.own)
            return None
        own = (*program.own, *shared)
        kept = {file: first.files[file] for folder in own for file in _below(folder, first.files)}
        for mount, folder in shared.items():
            self.left.update(f"{folder}{file[len(mount) :]}" for file in _below(mount, kept))
        again = program
        if any(each.value_from is not None and each.value_from.file_key_ref is not None for each in container.env):
            made = self._empty_dirs.after(program.own, first.files, first.gone)
            again = program_of(container, self._pod, self._objects, made=made)
        later = again.outcome(scratch, kept) if kept else first
        self._stages = first.stages, (later or first).stages
        if role is Role.INIT:
            self._empty_dirs.put(program.own, (later or first).files, (later or first).gone)
        signals = None if self._annotations.text(STOP_TIME, scope) else program.signals(There(there, scratch))
        if signals is not None:
            signals = signals.probed(partial(_unready_after, container, program.env))
        runs = [
            replace(self._run(each, container, role, scope, reason), signals=signals)
            for each in (first, later or first)
        ]
        return (0, runs[0], runs[0]) if runs[0] == runs[1] else (1, runs[0], runs[1])

    def _run(self, known: Execution, container: SimulatedContainer, role: Role, scope: str, reason: str) -> Run:
        least_s = 0.0 if role is Role.INIT else SHORT_RUN_S
        lasts_s = self._annotations.seconds(RUN_TIME, scope, max(known.lasts_s, least_s))
        return Run(lasts_s, known.code, reason, message=_termination_message(known, container), done_s=known.lasts_s)


def _unready_after(container: SimulatedContainer, env: Environment, stages: Stages) -> float:
    """The seconds until a ready container is unready, with these files over time."""
    probe = container.readiness_probe
    return math.inf if probe is None else fails_after(probe, env, stages, own_folders(container))


def _hook_error(command: Sequence[str], known: Execution, container: SimulatedContainer, pod: SimulatedPod) -> str:
    """upstream: pkg/kubelet/lifecycle/handlers.go"""
    words = " ".join(command)
    output, errors = ("".join(each.text for each in known.output if each.error is error) for error in (False, True))
    where = f'Container "{container.name}" in Pod "{pod.name}_{pod.namespace}({pod.uid})"'
    text = (
        f"Exec lifecycle hook ([{words}]) for {where} failed - error: command '{words}' exited with {known.code}: "
        f"{errors}, message: {quote(output + errors)}"
    )
    return cut(text, _LONGEST_MESSAGE)


def _no_handler(socket: Doc) -> str:
    port = socket.get("port")
    shown = f"0 {port} " if isinstance(port, int) else f"1 0 {port}"
    target = f"&TCPSocketAction{{Port:{{{shown}}},Host:{socket.get('host') or ''},}}"
    handler = f"&LifecycleHandler{{Exec:nil,HTTPGet:nil,TCPSocket:{target},Sleep:nil,}}"
    return f"Cannot run handler: invalid handler: {handler}"


def _termination_message(known: Execution, container: SimulatedContainer) -> str:
    """The termination message: that in its file, or with FallbackToLogsOnError the end of the log of a failed run."""
    text = known.files.get(normpath(container.termination_message_path)) or ""
    if not text and known.code != 0 and container.termination_message_policy == "FallbackToLogsOnError":
        log = "".join(each.text for each in known.output)
        lines = log.split("\n")[-_LAST_LINES - log.endswith("\n") :]
        return cut("\n".join(lines), _LAST_OF_LOG, from_end=True)
    return cut(text, _LONGEST_MESSAGE)


def _folders_of_node(container: SimulatedContainer, pod: SimulatedPod) -> dict[str, str]:
    """The folders of the node that have only files of pods, by mount path of the container."""
    folders = {
        volume.name: volume.host_path.path.rstrip("/")
        for volume in pod.spec.volumes
        if volume.host_path is not None and volume.host_path.type == "DirectoryOrCreate"
    }
    return {
        mount.mount_path.rstrip("/"): folders[mount.name] for mount in container.volume_mounts if mount.name in folders
    }


def _below(folder: str, files: Iterable[str]) -> list[str]:
    return [file for file in files if file.startswith(f"{folder}/")]


def _pod_policy(role: Role, policy: str) -> str:
    if role is Role.INIT:
        return "OnFailure" if policy != "Never" else "Never"
    return policy or "Always"


def _probe_s(probe: Probe | None) -> float:
    """Seconds from a container's start until a probe that never fails has succeeded."""
    if probe is None:
        return 0.0
    return float(probe.initial_delay_seconds + (max(probe.success_threshold, 1) - 1) * probe.period_seconds)


def _covers(rule: RestartRule, code: int) -> bool:
    codes = rule.exit_codes
    return codes is not None and (code in codes.values) == (codes.operator == "In")

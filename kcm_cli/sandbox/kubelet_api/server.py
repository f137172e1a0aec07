"""What kubectl gets from inside containers: logs, exec and attach, port-forward.

Responses are set by tests or by annotations, or are computed from a container's simple commands. Without any of these
the client gets an error.

upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/kuberuntime/logs, pkg/kubelet/server/server.go
"""

import asyncio
import inspect
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, closing
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from kcm_cli.component.arguments import check_fields
from kcm_cli.component.clock import Clock, in_real_time
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import bad_request, plain
from kcm_cli.sandbox.apiserver.kinds.core.connect_options import ports
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.responses import TEXT_HEADERS, text_response
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.webhooks.routes import where_of
from kcm_cli.sandbox.apiserver.webhooks.simulated_addresses import SimulatedAddresses
from kcm_cli.sandbox.kubelet_api.attached import CAT, AttachedPrograms, echoed
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.log_lines import LogOptions, is_true, lines_of, parameters, whole_lines
from kcm_cli.sandbox.kubelet_api.objects import Issue
from kcm_cli.sandbox.kubelet_api.pods import PODS, Changes, Pod, Run, end_of, failed_kubelet, until
from kcm_cli.sandbox.kubelet_api.remote_commands import MOST_INPUT, WHY, RemoteCommands, bare, ended, failed, is_shell
from kcm_cli.sandbox.nodes.annotations import EXEC, EXEC_CODE, FORWARD, LOGS, PREFIX, number_of
from kcm_cli.sandbox.nodes.container_program import is_pause
from kcm_cli.sandbox.programs.errors import Unknown, Unsupported
from kcm_cli.sandbox.programs.execution import Written
from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.programs.simulate import RUNTIME
from kcm_cli.sandbox.streams import forward, one_way, remote, websocket
from kcm_cli.sandbox.streams.remote import Console, Wanted
from kcm_cli.sandbox.views import SimulatedPod, containers_of
from kcm_cli.serving.upgrade import Upgraded

_NO_UPGRADE = "Upgrade request required"
_KILLED, _KILLED_S = 137, 0.1
"""The exit code of a command whose container ends, and how long it goes on: it may have ended the container itself."""
_JUST_READ, _MOST_READ = timedelta(seconds=5), 256
"""How long a client that attaches is taken to be the one that has read the log, and how many logs that is known of."""
_AHEAD, _LEAST_AHEAD = timedelta(minutes=1), timedelta(seconds=1)
"""How far ahead of the clock a log is computed that a client follows, at least where so much is written that not all of
it is kept."""
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Output(msgspec.Struct, frozen=True):
    """The output of a command, and its exit code."""

    stdout: str | bytes = ""
    stderr: str | bytes = ""
    exit_code: int = 0

    def __post_init__(self) -> None:
        """Raises TypeError."""
        check_fields(self)


class Asked(msgspec.Struct, frozen=True):
    """A request to run a command in a container. ``command`` is empty for ``kubectl attach``.

    ``stdin``: all input of the client, if it sends any and there is no terminal. ``console``: for functions that are
    coroutines: ``await console.stdin.read()``, ``await console.write(data, error=False)``.
    """

    namespace: str
    pod: str
    container: str
    command: tuple[str, ...]
    stdin: bytes
    tty: bool
    console: Console


Answer = Output | str | bytes | None
Function = Callable[[Asked], Answer | Awaitable[Answer]]


class Overrides(msgspec.Struct):
    """What tests have set for pods (``namespace/name`` with ``*`` and ``?``) and their containers or ports.

    The last one that matches is used.
    """

    logs: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    commands: dict[tuple[str, str], Function] = msgspec.field(default_factory=dict)
    ports: dict[tuple[str, int], tuple[str, int]] = msgspec.field(default_factory=dict)

    def set(self, known: dict[K, V], key: K, value: V) -> None:
        """Set a value, as the last one."""
        known.pop(key, None)
        known[key] = value


class _Log(msgspec.Struct, frozen=True):
    """The lines of a run until a time, with their ends, and whether there may be more after it. ``done``: when its
    program ends by itself, if that is known. is_heard: its program waits for input
    of clients, so that what it will write is not known."""

    run: Run
    until: datetime
    lines: list[tuple[datetime, str]]
    grows: bool = False
    done: datetime | None = None
    is_heard: bool = False


class _Lines:
    """The lines of output that grows."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._read = 0
        self._rest: list[Written] = []

    def until(self, written: Sequence[Written], end: datetime | None) -> list[tuple[datetime, str]]:
        """The lines since the last call. ``end``: when the program has ended, if it has."""
        new = written[self._read :]
        self._read = len(written)
        self._rest += new
        if end is None and not any("\n" in text for _, text, _ in new):
            return []
        found = _timed(self._run, whole_lines(self._rest, _lasted_s(self._run, end)))
        rest = "".join(text for _, text, _ in self._rest).rpartition("\n")[2]
        self._rest = [Written(0.0, rest)] if rest else []
        return found


class KubeletApi:
    """See the module. ``overrides`` may be added at any time."""

    def __init__(self, store: Store, clock: Clock, issue: Issue, service_ranges: Sequence[str]) -> None:
        """``issue``: issues the tokens in volumes."""
        self.overrides = Overrides()
        self.annotations: Callable[[SimulatedPod], Mapping[str, str]] = _own
        """The effective annotations of a pod: its own, and those of rules."""
        self._store = store
        self._clock = clock
        self._simulated = SimulatedAddresses(store, service_ranges)
        self.commands = Commands(store, clock, issue)
        self._remote = RemoteCommands(self.commands, clock)
        self.attached = AttachedPrograms(self.commands, self._remote, clock)
        self._left: set[asyncio.Future[Doc]] = set()
        """The programs whose clients have gone."""
        self._read: dict[tuple[str, str, Run], datetime] = {}
        """When whole logs were read, by the pod's UID, the container and its run."""

    # -- logs

    def logs(self, call: Call, stored: Stored) -> Response | Stream:
        """Respond to ``kubectl logs``. Raises ApiError."""
        headers = call.request.headers
        protocol = websocket.chosen(headers, one_way.PROTOCOLS) if websocket.asked(headers) else ""
        if protocol is None:
            raise bad_request(f"no protocol of {websocket.protocols(headers)} is known")
        answer = self._log(call, stored)
        return one_way.over_websocket(headers, protocol, answer) if websocket.asked(headers) else answer

    def _log(self, call: Call, stored: Stored) -> Response | Stream:
        query, pod = call.query, Pod(stored, self.annotations)
        name = query.get("container", "") or pod.default
        previous, follow = is_true(query, "previous"), is_true(query, "follow")
        run = pod.run(name, previous=previous)
        if at := failed_kubelet(self._store, pod):
            url = f"https://{at}/containerLogs/{pod.key}/{name}{parameters(query)}"
            raise plain(f"Get {quote(url)}: {_no_route(at)}")
        if run is None:
            raise bad_request(pod.no_logs(name, previous=previous))
        now = self._clock.now()
        follow = follow and run.finished is None
        try:
            log = self._log_of(pod, name, run, None if follow else run.finished or now)
        except Unknown as unknown:
            why = WHY
            if isinstance(unknown, Unsupported):
                why = f"its script uses what is not simulated: {unknown}"
            text = f"there are no logs: {why}; set them with the annotation {PREFIX}{LOGS}.{name}"
            if follow:  # kubectl would retry for twenty seconds after an error
                return text_response(200, f"{text}\n")
            raise bad_request(text) from None
        chosen = LogOptions(query, now)
        if not follow:
            if set(query) <= {"container"}:
                self.overrides.set(self._read, (pod.view.uid, name, run), now)
                if len(self._read) > _MOST_READ:
                    del self._read[next(iter(self._read))]
            return Response(200, TEXT_HEADERS, chosen.past(log.lines))
        return Stream(200, TEXT_HEADERS, self._follow(pod, name, log, chosen))

    def _follow(self, pod: Pod, name: str, log: "_Log", chosen: LogOptions) -> AsyncGenerator[bytes, None]:
        follow = self._overheard if log.is_heard else self._followed
        return follow(pod, name, log, chosen)

    async def _overheard(self, pod: Pod, name: str, log: "_Log", chosen: LogOptions) -> AsyncGenerator[bytes, None]:
        """As ``_followed``, of a program that waits for its input."""
        run, changes = log.run, Changes(self._store, pod)
        with closing(changes), self.attached.followed(pod, name, run, changes.wake) as written:
            lines = _Lines(run)
            if past := chosen.past(lines.until(written, None)):
                yield past
            while not chosen.full:
                ends = end_of(self._store, pod, name)
                for line in lines.until(written, ends and max(ends, self._clock.now())):
                    yield chosen.line(*line)
                    if chosen.full:
                        return
                if ends is not None:
                    return
                await changes.wait()

    async def _followed(self, pod: Pod, name: str, log: "_Log", chosen: LogOptions) -> AsyncGenerator[bytes, None]:
        """The lines until now, then new ones, until the run ends or the pod is deleted."""
        clock, store = self._clock, self._store
        changes = Changes(store, pod)
        now = clock.now()
        coming = [line for line in log.lines if line[0] > now]
        try:
            if past := chosen.past([line for line in log.lines if line[0] <= now]):
                yield past
            end = end_of(store, pod, name)
            while not chosen.full and (end is None or (coming and coming[0][0] <= end)):
                now = clock.now()
                if log.grows and now >= log.until:
                    since, log = log.until, self._later(pod, name, log)
                    coming += [line for line in log.lines if line[0] > since]
                while coming and coming[0][0] <= now:
                    yield chosen.line(*coming.pop(0))
                    if chosen.full:
                        return
                nexts = [*(line[0] for line in coming[:1]), *([log.until] if log.grows else [])]
                wake = clock.call_later((min(nexts) - now).total_seconds(), changes.wake) if nexts else None
                await changes.wait()
                if wake is not None:
                    wake.cancel()
                end = end_of(store, pod, name)
        finally:
            changes.close()

    def _later(self, pod: Pod, name: str, log: "_Log") -> "_Log":
        try:
            return self._log_of(pod, name, log.run)
        except Unknown:
            return replace(log, grows=False)

    def _log_of(self, pod: Pod, name: str, run: Run, end: datetime | None = None) -> "_Log":
        """The log of a run until a time; by default as far ahead as it is computed for a client that follows it. Raises
        Unknown."""
        until = end or self._clock.now() + _AHEAD
        text = _last(self.overrides.logs, pod.key, name)
        text = pod.annotation(LOGS, name) if text is None else text
        if text is not None:
            return _Log(run, until, [(run.started, line) for line in lines_of(text)])
        container = next((each for each in containers_of(pod.view) if each.name == name), None)
        if container is not None and self.attached.waits(pod, container):
            lines = _timed(run, whole_lines(self.attached.written(pod, name, run), _lasted_s(run, run.finished)))
            return _Log(run, until, lines, is_heard=True)
        if container is None or not (container.command or container.args):
            if container is None or not is_pause(container):
                raise Unknown
            return _Log(run, until, [])
        program, made = self.commands.program_of_run(pod, container, run, self.commands.made_before(pod, name))
        there = self.commands.at_start(pod, container, program, made, run)
        passed_s = (until - run.started).total_seconds()
        started = There(there, made.known(program.own), began=run.started)
        known = program.among(started, passed_s) or program.among(replace(started, began=None), passed_s)
        if known is None or not known.output:
            try:
                known = program.log(started, passed_s)
            except Unknown:
                if known is None:
                    raise
        if end is None and (kept_s := known.kept_s()) < math.inf:
            until = min(until, until - _AHEAD + max(_LEAST_AHEAD, timedelta(seconds=kept_s / 2)))
            passed_s = (until - run.started).total_seconds()
        ended_s = min(known.lasts_s, passed_s) if known.lasts_s <= passed_s or run.finished is not None else None
        lines = [line for line in _timed(run, whole_lines(known.written(passed_s), ended_s)) if line[0] <= until]
        done = run.started + timedelta(seconds=known.lasts_s) if known.lasts_s <= passed_s else None
        return _Log(run, until, lines, known.is_cut or known.repeated[1] > 0, done)

    # -- exec and attach

    def remote_command(self, call: Call, stored: Stored) -> Response | Upgraded:
        """Respond to ``kubectl exec`` and ``attach``. Raises ApiError.

        The API server refuses a request that asks for no other protocol. What else is wrong a kubelet says, in text.
        """
        pod, query, headers = Pod(stored, self.annotations), call.query, call.request.headers
        if not _asks_for_upgrade(headers):
            raise bad_request(_NO_UPGRADE)
        self._dial(pod)
        wanted = Wanted(*(is_true(query, each) for each in ("stdin", "stdout", "stderr", "tty")))
        if not (wanted.stdin or wanted.stdout or (wanted.stderr and not wanted.tty)):
            return text_response(400, "you must specify at least 1 of stdin, stdout, stderr")
        name = query.get("container", "") or pod.default
        run, attaches = pod.run(name, previous=False), call.subresource == "attach"
        if run is None or run.finished is not None:
            absent = f"container {name} not found in pod {pod.name}_{pod.namespace}"
            return text_response(500, absent if attaches else f"container not found ({quote(name)})")
        command = () if attaches else tuple(value for key, value in call.request.query if key == "command")
        program = self._program(pod, run, name, command, wanted) if attaches or command else partial(_refused, name)
        program = program if attaches else self._while_running(program, pod, name)
        if websocket.asked(headers):
            protocol = websocket.chosen(headers, remote.WEBSOCKETS)
            if protocol is None:
                raise bad_request(f"no protocol of {websocket.protocols(headers)} is known")
            return remote.over_websocket(headers, wanted, protocol, program)
        offered = [each.strip() for each in headers.get("x-stream-protocol-version", "").split(",") if each.strip()]
        spoken = next((each for each in offered if each in remote.SPDY), "" if offered else remote.SPDY[-1])
        if headers.get("upgrade", "").lower() != "spdy/3.1" or not spoken:
            raise bad_request(_NO_UPGRADE)
        return remote.over_spdy(wanted, spoken, program)

    def _program(self, pod: Pod, current: Run, name: str, command: tuple[str, ...], wanted: Wanted) -> remote.Program:
        """The response to a command."""
        function = _last(self.overrides.commands, pod.key, name)
        text, code_text = pod.annotation(EXEC, name), pod.annotation(EXEC_CODE, name) or ""
        if function is None and text is None and not code_text:
            return self._command(pod, current, name, command, wanted)

        async def run(console: Console) -> Doc:
            if function is not None:
                reads = console.wanted.stdin and not console.wanted.tty
                stdin = await console.stdin.all(MOST_INPUT) if reads else b""
                if stdin is None:
                    return failed(f"the input has more than {MOST_INPUT >> 20} MiB", name)
                asked = Asked(pod.namespace, pod.name, name, command, stdin, console.wanted.tty, console)
                answer = await _called(function, asked)
            else:
                answer = Output(text or "", "", _code(code_text))
            found = answer if isinstance(answer, Output) else Output(answer or "")
            await console.write(_bytes(found.stdout))
            await console.write(_bytes(found.stderr), error=True)
            return ended(found.exit_code)

        return run

    def _while_running(self, program: remote.Program, pod: Pod, name: str) -> remote.Program:
        """A program that is killed when its container ends."""

        async def run(console: Console) -> Doc:
            work = asyncio.ensure_future(program(console))
            over = asyncio.ensure_future(until(self._store, pod, lambda: end_of(self._store, pod, name) is not None))
            try:
                await asyncio.wait((work, over), return_when=asyncio.FIRST_COMPLETED)
                with in_real_time():  # a function of a test may wait for what is outside of the cluster's time
                    await asyncio.wait((work,), timeout=_KILLED_S)
                return work.result() if work.done() else ended(_KILLED)
            finally:
                for one in (work, over):
                    one.cancel()
                await asyncio.gather(work, over, return_exceptions=True)

        return run

    def _command(self, pod: Pod, current: Run, name: str, command: tuple[str, ...], wanted: Wanted) -> remote.Program:
        """The response to a command that is simulated. It is run when the client has its streams."""
        commands, container = self._remote, next(each for each in containers_of(pod.view) if each.name == name)
        scripted = wanted.stdin and not wanted.tty
        if bare(command) in CAT and wanted.stdin:
            return echoed
        if is_shell(command) and wanted.stdin:
            return partial(commands.script if scripted else commands.terminal, pod, container, command)

        async def run(console: Console) -> Doc:
            if not command and wanted.stdin and self.attached.waits(pod, container):
                attaching = self._while_running(partial(self.attached.attach, pod, container, current), pod, name)
                await self._to_its_end(attaching, console, whole=container.stdin_once)
                return ended(0)
            if not command:
                return await self._attached(pod, name, current, console)
            if scripted and self.commands.started(pod, container, "").reads(command):
                return await commands.input(pod, container, command, console)
            if wanted.stdin and wanted.tty:
                return await commands.on_terminal(pod, container, command, console)
            return await commands.carried_out(self.commands.run(pod, container, command), console, (pod.key, name))

        return run

    async def _to_its_end(self, program: remote.Program, console: Console, *, whole: bool) -> None:
        """Run a program for a client. whole: when the client has gone, it finds the end of its input, and goes on
        until it ends or its container."""
        work = asyncio.ensure_future(program(console))
        try:
            await (asyncio.shield(work) if whole else work)
        finally:
            if not work.done():
                console.stdin.end()
                self._left.add(work)
                work.add_done_callback(self._left.discard)

    async def _attached(self, pod: Pod, name: str, run: Run, console: Console) -> Doc:
        """Write what a container writes from now on until it ends, however it ends.

        The program of a run that lasts for its minimum only has written everything already: a real one would have
        ended, and kubectl would show its log. Since v1.36 ``kubectl run`` shows the log before it attaches, too.
        """
        now = self._clock.now()
        try:
            log = self._log_of(pod, name, run)
        except Unknown:
            return failed("attach: the output of the container is not known", name)
        over = log.done is not None and log.done <= now
        read = self._read.get((pod.view.uid, name, run))
        shows = over and (read is None or now - read > _JUST_READ)
        chosen = LogOptions({} if shows else {"tailLines": "0"}, now)
        async with aclosing(self._follow(pod, name, log, chosen)) as lines:
            async for data in lines:
                await console.write(data.replace(b"\n", b"\r\n") if console.wanted.tty and not log.is_heard else data)
        return ended(0)

    # -- ports

    def port_forward(self, call: Call, stored: Stored) -> Response | Upgraded:
        """Respond to ``kubectl port-forward``. Raises ApiError."""
        pod, headers = Pod(stored, self.annotations), call.request.headers
        if not _asks_for_upgrade(headers):
            raise bad_request(_NO_UPGRADE)
        self._dial(pod)
        if pod.ended:
            return text_response(500, _not_found(pod))

        network = _Network(self, pod)
        if websocket.asked(headers):
            if forward.TUNNEL in websocket.protocols(headers):
                return forward.tunnelled(headers, network)
            asked = ports(call)
            if not asked:
                return text_response(400, 'query parameter "ports" is required')
            if 0 in asked:
                return text_response(400, 'port "0" must be > 0')
            if len(asked) > (most := forward.most_ports(headers)):
                return text_response(400, f"a WebSocket of this protocol forwards at most {most} ports")
            return forward.over_channels(headers, asked, network)
        if headers.get("upgrade", "").lower() != "spdy/3.1":
            raise bad_request(_NO_UPGRADE)
        return forward.over_spdy(network)

    def _dial(self, pod: Pod) -> None:
        """Raises ApiError 500 if the pod's kubelet cannot be reached."""
        if at := failed_kubelet(self._store, pod):
            raise plain(f"error dialing backend: {_no_route(at)}")

    def server_of(self, stored: Stored, port: int) -> tuple[str, int]:
        """The server that stands for a port of a pod. Raises LookupError."""
        pod = Pod(stored, self.annotations)
        if failed_kubelet(self._store, pod):
            address = (pod.doc.get("status") or {}).get("podIP") or ""
            raise LookupError(_no_route(host_and_port(address, port)))
        return self.where(pod, port)

    def current(self, pod: Pod) -> Pod | None:
        """A pod as it is now; None if its kubelet has stopped it."""
        stored = self._store.get(PODS, pod.namespace, pod.name)
        found = None if stored is None else Pod(stored, self.annotations)
        return None if found is None or found.ended or found.view.uid != pod.view.uid else found

    async def until_stopped(self, pod: Pod) -> None:
        """Wait until a pod is stopped."""
        await until(self._store, pod, lambda: self.current(pod) is None)

    def where(self, pod: Pod, port: int) -> tuple[str, int]:
        """The host and port that a port is forwarded to. Raises LookupError."""
        for (pattern, number), where in reversed(self.overrides.ports.items()):
            if number == port and fnmatchcase(pod.key, pattern):
                return where
        for part in (pod.annotation(FORWARD, "") or "").split(","):
            mine, _, to = part.strip().partition("=")
            if mine == str(port):
                try:
                    host, target = where_of(to)
                    if _is_simulated(self._simulated, host):
                        raise ValueError(f"{host} is an address of the sandbox, where nothing listens")
                except ValueError as error:
                    raise LookupError(f"{PREFIX}{FORWARD}: {error}") from None
                return host, target
        hint = f"forward it to a server with the annotation {PREFIX}{FORWARD}: {port}=PORT"
        raise LookupError(f"port {port}: {WHY}; {hint}")


class _Network(msgspec.Struct, frozen=True):
    """Implements ``forward.Network``."""

    api: KubeletApi
    pod: Pod

    def find(self, port: int) -> tuple[str, int]:
        pod = self.api.current(self.pod)
        if pod is None:
            raise LookupError(_not_found(self.pod))
        return self.api.where(pod, port)

    async def ended(self) -> None:
        await self.api.until_stopped(self.pod)


def _not_found(pod: Pod) -> str:
    return f"pod not found ({quote(f'{pod.name}_{pod.namespace}')})"


def _asks_for_upgrade(headers: Mapping[str, str]) -> bool:
    return "upgrade" in headers.get("connection", "").lower() and bool(headers.get("upgrade"))


def _lasted_s(run: Run, end: datetime | None) -> float | None:
    return None if end is None else (end - run.started).total_seconds()


def _timed(run: Run, lines: Iterable[tuple[float, str]]) -> list[tuple[datetime, str]]:
    return [(run.started + timedelta(seconds=at_s), text) for at_s, text in lines]


def _no_route(address: str) -> str:
    return f"dial tcp {address}: connect: no route to host"


def _own(pod: SimulatedPod) -> Mapping[str, str]:
    return pod.annotations


async def _refused(container: str, console: Console) -> Doc:
    """``exec`` without a command."""
    return failed(f"{RUNTIME}: args must not be empty", container)


def _code(text: str) -> int:
    try:
        return number_of(text)
    except FormatError:
        return 0


def _last(known: dict[tuple[str, str], T], key: str, container: str) -> T | None:
    for (pattern, wanted), value in reversed(known.items()):
        if fnmatchcase(key, pattern) and wanted in ("", container):
            return value
    return None


async def _called(function: Function, asked: Asked) -> Answer:
    if inspect.iscoroutinefunction(function):
        found: Answer = await function(asked)
        return found
    return await asyncio.to_thread(cast(Callable[[Asked], Answer], function), asked)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _is_simulated(known: SimulatedAddresses, host: str) -> bool:
    try:
        return known.has(host)
    except ValueError:  # a name
        return False

"""What kubectl gets from inside containers: logs, exec and attach, port-forward.

Responses are set by tests or by annotations, or are computed from a container's simple commands. Without any of these
the client gets an error.

upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/kuberuntime/logs, pkg/kubelet/server/server.go
"""

import asyncio
import inspect
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, takewhile
from math import inf
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.component.arguments import check_fields
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.connecting import ports
from kcm_cli.sandbox.apiserver.registry.responses import TEXT_HEADERS, text_response
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.webhooks.routes import where_of
from kcm_cli.sandbox.apiserver.webhooks.simulated_addresses import SimulatedAddresses
from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs, Left, Mounted
from kcm_cli.sandbox.nodes.filesystem import There
from kcm_cli.sandbox.nodes.outcomes import Outcome, Written
from kcm_cli.sandbox.nodes.probes import Verdicts, after
from kcm_cli.sandbox.nodes.script import PREFIX, Program, is_pause, made_at_start, number_of, own_folders, program_of
from kcm_cli.sandbox.nodes.tar_command import is_whole
from kcm_cli.sandbox.streams import forward, one_way, remote, websocket
from kcm_cli.sandbox.streams.log_lines import LogOptions, is_true, whole_lines
from kcm_cli.sandbox.streams.objects import Issue, StoredObjects
from kcm_cli.sandbox.streams.remote import Console, Wanted
from kcm_cli.sandbox.streams.upgrade import Upgraded
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod, containers_of

LOGS, EXEC, EXEC_CODE, FORWARD = "logs", "exec", "exec-code", "forward"
_GVR = GVR("", "v1", "pods")
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_MOST_PODS, _MOST_COMMANDS, _MOST_CHARACTERS = 64, 64, 1 << 14
_MOST_OF_POD = 1 << 20
"""The limit for names and content of files that commands have written in a pod, in characters. Beyond it only names are
kept, and the result of a command that writes still more names is unknown."""
_MOST_INPUT = 8 << 20
"""The limit for the input of a command, in bytes. The result of a command that gets more is unknown."""
_CAT = (("cat",), ("cat", "-"), ("/bin/cat",))
_SHELL = (("sh",), ("/bin/sh",), ("bash",), ("/bin/bash",))
_MOST_SHOWN = 1000
"""The characters of a command that a message has."""
_AHEAD = timedelta(minutes=1)
"""How far ahead of the clock a log is computed that a client follows."""
_NOTHING = ("true",)
_WHOLE = re.compile(rb"\btrap\b|&\s|\\\n\Z")
"""What depends on the end of a script, or of a line that goes on."""
_WHY = "nothing runs in the containers of a sandbox"
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
_UNSEEN = datetime(1, 1, 1, tzinfo=UTC)


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


class _Run(msgspec.Struct, frozen=True):
    """One run of a container, from the pod's status."""

    started: datetime
    finished: datetime | None
    number: int = 1


class _Log(msgspec.Struct, frozen=True):
    """The lines of a run until a time, and whether there may be more after it."""

    run: _Run
    until: datetime
    lines: list[tuple[datetime, str]]
    grows: bool = False


class _Started(msgspec.Struct, frozen=True):
    """What a command finds in a container."""

    pod: "_Pod"
    container: SimulatedContainer
    program: Program
    folders: Mounted
    there: There

    def outcome(self, command: tuple[str, ...]) -> Outcome | None:
        """The outcome of a command; None if it is unknown."""
        return replace(self.program, words=command).among(self.there)

    def reads(self, command: tuple[str, ...]) -> bool:
        """Whether a command needs its standard input: its outcome is known with input only."""
        unread = replace(self.there, input=None)
        return self.outcome(command) is not None and replace(self, there=unread).outcome(command) is None


class Inside:
    """See the module. ``overrides`` may be added at any time."""

    def __init__(self, store: Store, clock: Clock, issue: Issue) -> None:
        """``issue``: issues the tokens in volumes."""
        self.overrides = Overrides()
        self.annotations: Callable[[SimulatedPod], Mapping[str, str]] = _own
        """The effective annotations of a pod: its own, and those of rules."""
        self.changed: Callable[[str, str, Verdicts], None] = _ignore
        """Called after a command that changes files, with pod, container and the new results of its probes."""
        self._store = store
        self._clock = clock
        self._simulated = SimulatedAddresses(store)
        self._objects = StoredObjects(store, clock, issue)
        self._written: OrderedDict[str, Left] = OrderedDict()
        """The files that commands have written and removed, by uid of the pod, the last one at the end."""

    @property
    def written(self) -> Mapping[str, Left]:
        """The files that commands have written and removed, by uid of the pod."""
        return dict(self._written)

    @written.setter
    def written(self, written: Mapping[str, Left]) -> None:
        self._written = OrderedDict(written)

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
        query, pod = call.query, _Pod(stored, self.annotations)
        name = query.get("container", "") or pod.default
        previous, follow = is_true(query, "previous"), is_true(query, "follow")
        run = pod.run(name, previous=previous)
        if run is None:
            if previous:
                raise bad_request(f'previous terminated container "{name}" in pod "{call.name}" not found')
            raise bad_request(f'container "{name}" in pod "{call.name}" is waiting to start: {pod.reason_of(name)}')
        now = self._clock.now()
        follow = follow and run.finished is None
        log = self._log_of(pod, name, run, now + _AHEAD if follow else run.finished or now)
        if log is None:
            text = f"there are no logs: {_WHY}; set them with the annotation {PREFIX}{LOGS}.{name}"
            if follow:  # kubectl would retry for twenty seconds after an error
                return text_response(200, f"{text}\n")
            raise bad_request(text)
        chosen = LogOptions(query, now)
        if not follow:
            return Response(200, TEXT_HEADERS, chosen.past(log.lines))
        return Stream(200, TEXT_HEADERS, self._followed(pod, name, log, chosen))

    async def _followed(self, pod: "_Pod", name: str, log: "_Log", chosen: LogOptions) -> AsyncIterator[bytes]:
        """The lines until now, then new ones, until the run ends or the pod is deleted."""
        clock, store = self._clock, self._store
        watcher = store.watch(_GVR, pod.namespace, store.revision)
        now = clock.now()
        coming = [line for line in log.lines if line[0] > now]
        try:
            if past := chosen.past([line for line in log.lines if line[0] <= now]):
                yield past
            end = _end(store, pod, name)
            while not chosen.full and (end is None or (coming and coming[0][0] <= end)):
                now = clock.now()
                if log.grows and now >= log.until:
                    since, log = log.until, self._log_of(pod, name, log.run, now + _AHEAD) or replace(log, grows=False)
                    coming += [line for line in log.lines if line[0] > since]
                while coming and coming[0][0] <= now:
                    yield chosen.line(*coming.pop(0))
                    if chosen.full:
                        return
                nexts = [*(line[0] for line in coming[:1]), *([log.until] if log.grows else [])]
                wake = clock.call_later((min(nexts) - now).total_seconds(), watcher.wake) if nexts else None
                await watcher.wait()
                if wake is not None:
                    wake.cancel()
                watcher.take()
                end = _end(store, pod, name)
        finally:
            watcher.close()

    def _log_of(self, pod: "_Pod", name: str, run: _Run, until: datetime) -> "_Log | None":
        """The log of a run until a time; None if it is unknown."""
        text = _last(self.overrides.logs, pod.key, name)
        text = pod.annotation(LOGS, name) if text is None else text
        if text is not None:
            return _Log(run, until, [(run.started, line) for line in text.splitlines()])
        container = next((each for each in containers_of(pod.view) if each.name == name), None)
        if container is None or not (container.command or container.args):
            return _Log(run, until, []) if container is not None and is_pause(container) else None
        program, made = self._program_of_run(pod, container, run, self._made_before(pod, name))
        there = self._there(pod, container, program, made)
        passed_s = (until - run.started).total_seconds()
        started = There(there, made.known(program.own), began=run.started)
        known = program.among(started, passed_s) or program.among(replace(started, began=None), passed_s)
        if known is None or not known.output:
            known = program.log(started, passed_s) or known
        if known is None:
            return None
        timed = ((run.started + timedelta(seconds=at_s), text) for at_s, text in whole_lines(known.written(passed_s)))
        return _Log(run, until, [line for line in timed if line[0] <= until], known.is_cut or known.repeated[1] > 0)

    def _program_of_run(
        self, pod: "_Pod", container: SimulatedContainer, run: _Run | None, made: EmptyDirs
    ) -> tuple[Program, EmptyDirs]:
        """A container's program, and the emptyDirs when it starts. After a restart they have the files of the first
        run."""
        program = program_of(container, pod.view, self._objects, made=made)
        if run is None or run.number == 1 or not program.own:
            return program, made
        known = program.outcome(made.known(program.own), self._there(pod, container, program, made))
        if known is None:
            return program, made
        made = made.after(program.own, known.files, known.gone)
        return program_of(container, pod.view, self._objects, made=made), made

    def _there(
        self, pod: "_Pod", container: SimulatedContainer, program: Program, made: EmptyDirs
    ) -> dict[str, str | None]:
        """The files when a container starts, with those of its hook."""
        return {**made.seen_by(program.own), **made_at_start(container, pod.view, self._objects, made)}

    def _made_before(self, pod: "_Pod", name: str) -> EmptyDirs:
        """The emptyDirs when a container starts."""
        before = takewhile(lambda each: each.name != name, pod.view.spec.init_containers)
        run = pod.run(name, previous=False)
        made, _ = self._made(pod, before, until=None if run is None else run.started)
        return made

    def _made(
        self, pod: "_Pod", containers: Iterable[SimulatedContainer], asked: str = "", until: datetime | None = None
    ) -> tuple[EmptyDirs, bool]:
        """What these containers have written in emptyDirs until a time (default: now), and the container ``asked`` in
        all of its folders; and whether the result of that one's program is known."""
        found, known_all = EmptyDirs(), False
        until = until or self._clock.now()
        for container in containers:
            run = pod.run(container.name, previous=False)
            mine = container.name == asked
            if run is None or not (container.volume_mounts or mine):
                continue
            program, found = self._program_of_run(pod, container, run, found)
            passed_s = inf if run.finished is not None else (until - run.started).total_seconds()
            known = program.outcome(found.known(program.own), self._there(pod, container, program, found), passed_s)
            if known is not None:
                found.put(_folders(program, container, run) if mine else program.own, known.files, known.gone)
                known_all = known_all or mine
            elif program.words or container in pod.view.spec.init_containers:
                found.doubt(program.own)
        return found, known_all

    def _commanded(
        self, pod: "_Pod", container: SimulatedContainer, command: tuple[str, ...], sent: str | None = None
    ) -> Outcome | None:
        """Run a command in a container; None if its result is unknown. The files that it writes and removes are
        kept. ``sent``: its standard input."""
        started = self._started(pod, container, sent)
        known = started.outcome(command)
        return known if known is not None and self._kept(started, known) else None

    def _started(self, pod: "_Pod", container: SimulatedContainer, sent: str | None = None) -> "_Started":
        """What a command finds that starts now in a container."""
        made, whole = self._made(pod, containers_of(pod.view), container.name)
        for mounted, files, gone in self._written.get(pod.view.uid, ()):
            made.put(mounted, files, gone)
        program = program_of(container, pod.view, self._objects, _NOTHING, self._made_before(pod, container.name))
        run = pod.run(container.name, previous=False)
        folders = _folders(program, container, run)
        scratch = (*made.known(program.own), *(own_folders(container) if whole else ()))
        there = There(made.seen_by(folders), scratch, made.gone_by(folders), self._clock.now(), sent)
        return _Started(pod, container, program, folders, there)

    def _kept(self, started: "_Started", known: Outcome) -> bool:
        """Keep the files that a command has written and removed; returns whether there is room for them."""
        pod, there, folders = started.pod, started.there, started.folders
        written = self._written.get(pod.view.uid, ())
        if known.files != there.files or known.gone != there.gone:
            new = {
                path: text if text is not None and len(text) <= _MOST_CHARACTERS else None
                for path, text in known.files.items()
                if path not in there.files or there.files[path] != text
            }
            gone = known.gone - there.gone
            if _characters((*written, (folders, new, gone))) > _MOST_OF_POD:
                new = dict.fromkeys(new)
                if _characters((*written, (folders, new, gone))) > _MOST_OF_POD:
                    return False
            self._written[pod.view.uid] = (*written, (folders, new, gone))[-_MOST_COMMANDS:]
            self._written.move_to_end(pod.view.uid)
            if len(self._written) > _MOST_PODS:
                alive = {cast(Tree, each.doc)["metadata"].get("uid") for each in self._store.list(_GVR)}
                lost = [uid for uid in self._written if uid not in alive] or [next(iter(self._written))]
                for uid in lost:
                    del self._written[uid]
            container, now = started.container, There(known.files, there.scratch, known.gone)
            self.changed(pod.key, container.name, after(container, started.program.env, there, now))
        return True

    # -- exec and attach

    def remote_command(self, call: Call, stored: Stored) -> Upgraded:
        """Respond to ``kubectl exec`` and ``attach``. Raises ApiError."""
        pod, query = _Pod(stored, self.annotations), call.query
        name = query.get("container", "") or pod.default
        run = pod.run(name, previous=False)
        if run is None or run.finished is not None:
            raise bad_request(f'container not found ("{name}")')
        wanted = Wanted(*(is_true(query, each) for each in ("stdin", "stdout", "stderr", "tty")))
        if not (wanted.stdin or wanted.stdout or wanted.stderr):
            raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
        command = tuple(value for key, value in call.request.query if key == "command")
        if call.subresource == "attach":
            command = ()
        program = self._program(pod, run, name, command, scripted=wanted.stdin and not wanted.tty)
        headers = call.request.headers
        if websocket.asked(headers):
            protocol = websocket.chosen(headers, remote.WEBSOCKETS)
            if protocol is None:
                raise bad_request(f"no protocol of {websocket.protocols(headers)} is known")
            return remote.over_websocket(headers, wanted, protocol, program)
        offered = [each.strip() for each in headers.get("x-stream-protocol-version", "").split(",") if each.strip()]
        spoken = next((each for each in offered if each in remote.SPDY), "" if offered else remote.SPDY[-1])
        if headers.get("upgrade", "").lower() != "spdy/3.1" or not spoken:
            raise bad_request("Upgrade request required")
        return remote.over_spdy(wanted, spoken, program)

    def _program(
        self, pod: "_Pod", current: _Run, name: str, command: tuple[str, ...], *, scripted: bool
    ) -> remote.Program:
        """The response to a command. ``scripted``: a shell reads its script from the client. Raises ApiError if there
        is no response."""
        function = _last(self.overrides.commands, pod.key, name)
        text, code_text = pod.annotation(EXEC, name), pod.annotation(EXEC_CODE, name) or ""
        code, known = _code(code_text), None
        if function is None and text is None and not code_text:
            if _bare(command) in _CAT:
                return _echoed
            if not command:
                log = self._log_of(pod, name, current, self._clock.now())
                known = None if log is None else Outcome(0.0, 0, output=_spans(log.lines))
            else:
                container = next(each for each in containers_of(pod.view) if each.name == name)
                if command in _SHELL and scripted:
                    return partial(self._scripted, pod, container, command)
                if scripted and self._started(pod, container, "").reads(command):
                    return partial(self._fed, pod, container, command)
                known = self._commanded(pod, container, command)
            if known is None:
                raise bad_request(_no_response(command, name))

        async def run(console: Console) -> Doc:
            if function is not None:
                stdin = await console.stdin.all() if console.wanted.stdin and not console.wanted.tty else b""
                asked = Asked(pod.namespace, pod.name, name, command, stdin, console.wanted.tty, console)
                answer = await _called(function, asked)
            elif known is not None:
                return _ended(await self._played(known, console))
            else:
                answer = Output(text or "", "", code)
            found = answer if isinstance(answer, Output) else Output(answer or "")
            await console.write(_bytes(found.stdout))
            await console.write(_bytes(found.stderr), error=True)
            return _ended(found.exit_code)

        return run

    async def _scripted(
        self, pod: "_Pod", container: SimulatedContainer, shell: tuple[str, ...], console: Console
    ) -> Doc:
        """Run a shell with the script that the client sends, line by line, up to its end or a line with ``exit``.

        What has been sent is run again from the start, and only the new part of its output is written.
        """
        sent, ends, started, played, chunks = b"", False, self._started(pod, container), 0, 0
        known: Outcome | None = None
        passed_s = 0.0
        while not ends:
            data, chunks = await console.stdin.read(), chunks + 1
            sent += data
            last = sent.rstrip().rpartition(b"\n")[2].split(b" ")[0]
            ends = not data or len(sent) >= _MOST_CHARACTERS or (sent.endswith(b"\n") and last == b"exit")
            if not ends and (not sent.endswith(b"\n") or chunks > _MOST_COMMANDS or _WHOLE.search(sent)):
                continue
            command = (*shell, "-c", sent.decode("utf-8", "surrogateescape"))
            known = started.outcome(command)
            if known is not None and (ends or known.lasts_s == inf):
                known = known if self._kept(started, known) else None
            if known is not None:
                await self._played(known, console, played, passed_s)
                played, passed_s = len(known.output), known.lasts_s
        if known is None:
            await console.write(f"{_no_response(command, container.name)}\n".encode("utf-8", "replace"), error=True)
            return _ended(127)
        return _ended(known.code)

    async def _fed(self, pod: "_Pod", container: SimulatedContainer, command: tuple[str, ...], console: Console) -> Doc:
        """Run a command with all that the client sends as its standard input, ``tar`` with the archive."""
        sent, unpacks = b"", _bare(command)[0].endswith("tar")
        while len(sent) < _MOST_INPUT and (data := await console.stdin.read()):
            sent += data
            if unpacks and is_whole(sent):
                break
        text = sent.decode("utf-8", "surrogateescape")
        known = self._commanded(pod, container, command, text) if len(sent) < _MOST_INPUT else None
        if known is None:
            await console.write(f"{_no_response(command, container.name)}\n".encode("utf-8", "replace"), error=True)
            return _ended(127)
        return _ended(await self._played(known, console))

    async def _played(self, known: Outcome, console: Console, played: int = 0, passed_s: float = 0.0) -> int:
        """Write the output of a simple command at its times; returns the exit code. ``played``: the number of outputs
        that have been written, in ``passed_s``."""
        for at_s, text, error in known.output[played:]:
            await self._clock.sleep(at_s - passed_s)
            passed_s = at_s
            await console.write(text.encode("utf-8", "surrogateescape"), error=error)
        while known.lasts_s == inf:
            await self._clock.sleep(3600.0)
        await self._clock.sleep(known.lasts_s - passed_s)
        return known.code

    # -- ports

    def port_forward(self, call: Call, stored: Stored) -> Upgraded:
        """Respond to ``kubectl port-forward``. Raises ApiError."""
        pod, headers = _Pod(stored, self.annotations), call.request.headers

        def find(port: int) -> tuple[str, int]:
            return self._where(pod, port)

        if websocket.asked(headers):
            if forward.TUNNEL in websocket.protocols(headers):
                return forward.tunnelled(headers, find)
            asked = ports(call)
            if not asked:
                raise bad_request('query parameter "ports" is required')
            if 0 in asked:
                raise bad_request('port "0" must be > 0')
            return forward.over_channels(headers, asked, find)
        if headers.get("upgrade", "").lower() != "spdy/3.1":
            raise bad_request("Upgrade request required")
        return forward.over_spdy(find)

    def _where(self, pod: "_Pod", port: int) -> tuple[str, int]:
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
        raise LookupError(f"port {port}: {_WHY}; {hint}")


class _Pod:
    """A stored pod."""

    def __init__(self, stored: Stored, annotated: Callable[[SimulatedPod], Mapping[str, str]]) -> None:
        doc: Tree = stored.doc
        self.doc = doc
        self.namespace, self.name = stored.namespace, stored.name
        self.key = f"{stored.namespace}/{stored.name}"
        self.view = codec.decode(stored.data, SimulatedPod)
        self._annotations = annotated(self.view)
        self.default = str(self.doc["spec"]["containers"][0]["name"])

    def annotation(self, name: str, container: str) -> str | None:
        """The annotation for a container, or for all."""
        annotations = self._annotations
        own = annotations.get(f"{PREFIX}{name}.{container}")
        return annotations.get(f"{PREFIX}{name}") if own is None else own

    def run(self, name: str, *, previous: bool) -> _Run | None:
        """The current run of a container, or the previous one."""
        return _run(self.doc, name, previous=previous)

    def reason_of(self, name: str) -> str:
        """The reason why a container is waiting."""
        waiting: Tree = ((_status(self.doc, name) or {}).get("state") or {}).get("waiting") or {}
        return str(waiting.get("reason") or "ContainerCreating")


def _ignore(pod: str, container: str, verdicts: Verdicts) -> None:
    """Used without simulated nodes."""


def _folders(program: Program, container: SimulatedContainer, run: _Run | None) -> Mounted:
    """The folders of a container, in which commands write. All but mounted ones are new in each run."""
    began = "" if run is None else run.started.isoformat()
    return {**program.own, "": (f"/{container.name}/{began}", "")}


def _characters(left: Left) -> int:
    made = sum(len(path) + len(text or "") for _, files, _ in left for path, text in files.items())
    return made + sum(map(len, chain.from_iterable(gone for _, _, gone in left)))


def _own(pod: SimulatedPod) -> Mapping[str, str]:
    return pod.annotations


def _status(doc: Tree, name: str) -> Tree | None:
    status: Tree = doc.get("status") or {}
    found: Iterator[Tree] = (one for each in _STATUSES for one in status.get(each) or () if one.get("name") == name)
    return next(found, None)


def _run(doc: Tree, name: str, *, previous: bool) -> _Run | None:
    status = _status(doc, name) or {}
    number = int(status.get("restartCount") or 0) + 1
    if previous:
        states: list[Tree] = [status.get("lastState") or {}]
        number -= 1
    else:
        states = [status.get("state") or {}, status.get("lastState") or {}]
    for state in states:
        running, ended = state.get("running"), state.get("terminated")
        if running and running.get("startedAt"):
            return _Run(parse_time(running["startedAt"]), None, number)
        if ended:
            started = parse_time(ended["startedAt"]) if ended.get("startedAt") else _UNSEEN
            return _Run(started, parse_time(ended["finishedAt"]) if ended.get("finishedAt") else started, number)
    return None


def _end(store: Store, pod: _Pod, name: str) -> datetime | None:
    """When the run that ``pod`` shows ended; None if it has not."""
    stored = store.get(_GVR, pod.namespace, pod.name)
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


def _bare(command: tuple[str, ...]) -> tuple[str, ...]:
    """The only command of a shell's script, or the command itself."""
    is_script = len(command) == 3 and command[:1] in _SHELL and command[1] == "-c"
    return tuple(command[2].split()) if is_script else command


def _no_response(command: tuple[str, ...], container: str) -> str:
    what = " ".join(command)[:_MOST_SHOWN] or "attach"
    return f"{what}: {_WHY}; set a response with the annotation {PREFIX}{EXEC}.{container}"


async def _echoed(console: Console) -> Doc:
    """``cat`` of the client's input."""
    while data := await console.stdin.read():
        await console.write(data)
    return _ended(0)


def _code(text: str) -> int:
    try:
        return number_of(text)
    except FormatError:
        return 0


def _spans(lines: Sequence[tuple[datetime, str]]) -> tuple[Written, ...]:
    return tuple(Written(0.0, f"{text}\n") for _, text in lines)


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


def _ended(code: int) -> Doc:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _is_simulated(known: SimulatedAddresses, host: str) -> bool:
    try:
        return known.has(host)
    except ValueError:  # a name
        return False

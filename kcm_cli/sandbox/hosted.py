"""A sandbox on a thread of its own: serves over TLS as any API server does, and its time can be moved forward.

For tests in this process: any client, synchronous or not, on any loop, can talk to it.
"""

import asyncio
import contextlib
import itertools
import secrets
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import NAMESPACES, SERVICE_ACCOUNTS
from kcm_cli.component.arguments import check_fields, checks_arguments
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.rest.transport import Request, RequestError
from kcm_cli.runtime.tasks import innermost
from kcm_cli.sandbox import snapshots, wall_clock
from kcm_cli.sandbox.apiserver.entry.fault import Fault, Happening
from kcm_cli.sandbox.apiserver.entry.faults import Injected
from kcm_cli.sandbox.apiserver.entry.recording import RecordedRequest, Recorder
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.apiserver.webhooks.routes import where_of
from kcm_cli.sandbox.cluster import Cluster
from kcm_cli.sandbox.manifests import Manifest, apply
from kcm_cli.sandbox.nodes import HEARTBEAT_S, commands
from kcm_cli.sandbox.nodes.script import PREFIX, READY_DELAY
from kcm_cli.sandbox.operators import Identity, Operator, Program
from kcm_cli.sandbox.report import report
from kcm_cli.sandbox.run import Sandbox, SandboxOptions
from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.sandbox.streams.inside import Function, Given
from kcm_cli.sandbox.views import POD_METADATA
from kcm_cli.sandbox.waiting import Errors, decided, wait, wait_async
from kcm_cli.sandbox.warp import PATIENCE_S, WarpLoop

T = TypeVar("T")
Companion = Callable[[Sandbox, asyncio.Event, tuple[str, ...], Callable[[], object]], Awaitable[object]]
"""Something that runs with a sandbox until the event is set: the controllers, with these flags. They call the last one
when all of them run. Bad flags are an error of the call, not of the work that it returns."""
START_S, STOP_S = 60.0, 10.0
_DAY_S = 24 * 3600.0
_TOKEN_S = 10 * 365 * 24 * 3600
_RESETS, _RESETS_AT_ONCE, _RESET_STEP_S, _TOLD = 20, 3, 5.0, 10
_READS = ("GET", "HEAD", "OPTIONS")


class HostOptions(msgspec.Struct, frozen=True):
    """What a hosted sandbox is made of.

    ``controllers``: whether they run. ``flags``: of theirs, as after ``--`` on the command line. ``heartbeat_s``: how
    often nodes renew their Leases; most of what happens in a long time is that. ``manifests``: what is there from the
    start, as for ``apply``.
    """

    nodes: int = 3
    controllers: bool = True
    flags: tuple[str, ...] = ()
    heartbeat_s: float = HEARTBEAT_S
    manifests: tuple[Manifest, ...] = ()

    def __post_init__(self) -> None:
        """Raises TypeError, ValueError."""
        check_fields(self)
        if self.nodes < 0:
            raise ValueError(f"HostOptions: nodes is 0 or more, not {self.nodes}")
        if not 0 < self.heartbeat_s < float("inf"):
            raise ValueError(f"HostOptions: heartbeat_s is a number of seconds above 0, not {self.heartbeat_s}")


class SandboxError(Exception):
    """The sandbox could not be started, or ended too soon."""


@checks_arguments
class HostedSandbox:
    """See the module. ``start``, use from any thread, ``stop``; a ``with`` statement does both.

    It has no controllers but those that ``companion`` brings: ``kcm_cli.testing.Sandbox`` is one with all of them.
    """

    def __init__(self, options: HostOptions, companion: Companion | None = None) -> None:
        """Raises ValueError for flags of controllers that there are not."""
        if not options.controllers:
            companion = None
        if options.flags and companion is None:
            raise ValueError(f"there are no controllers here to take {' '.join(options.flags)}: see kcm_cli.testing")
        self._options = options
        self._companion = companion
        self._numbers = itertools.count(1)
        self._folder = Path()
        self._thread = threading.Thread(target=self._serve, name="kcm sandbox", daemon=True)
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._error: BaseException | None = None
        self._main: asyncio.Task[None] | None = None
        self._loop: WarpLoop
        self._clock: LoopClock
        self._client: Client
        self._cluster: Cluster
        self._sandbox: Sandbox
        self.token = secrets.token_urlsafe(24)
        self.url = ""

    @property
    def running(self) -> Sandbox:
        """What runs on the thread; to be used there only (``call``)."""
        self._check_begun()
        return self._sandbox

    @property
    def loop(self) -> WarpLoop:
        """The loop of the thread."""
        self._check_begun()
        return self._loop

    @property
    def clock(self) -> LoopClock:
        """The cluster's clock."""
        self._check_begun()
        return self._clock

    @property
    def kubeconfig(self) -> str:
        """The path of the administrator's kubeconfig."""
        self._check_begun()
        return str(self._folder / "kubeconfig")

    def start(self) -> None:
        """Returns when clients are served and the controllers run. Raises SandboxError, with nothing left of the
        attempt, and for one that was started before."""
        if self._thread.ident is not None:
            raise SandboxError("a sandbox is started once: make another one")
        self._folder = Path(tempfile.mkdtemp(prefix="kcm-test-"))
        self._loop = WarpLoop()
        self._thread.start()
        try:
            if not self._started.wait(START_S):
                raise SandboxError(f"the sandbox did not start within {START_S:g} s")
            self.apply(*self._options.manifests)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it, within seconds. May be called at any time."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has ended just now
                self._loop.call_soon_threadsafe(self._end)
            self._thread.join(STOP_S)
        if self._folder.is_absolute():
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- time

    def advance(self, seconds: float, *, patience: float = PATIENCE_S) -> None:
        """Let seconds pass in the cluster, at once. ``patience``: real seconds that others get for each of them.

        Returns when all that was due in that time has happened inside of the cluster.
        """
        self._check()
        if not 0 <= patience <= _DAY_S:  # selectors and locks wait for some weeks at most
            raise ValueError(f"patience is a number of seconds up to a day, not {patience}")
        wall_clock.adapt()
        self._loop.advance(seconds, patience_s=patience)

    async def advance_async(self, seconds: float, *, patience: float = PATIENCE_S) -> None:
        """The same for tests on a loop of their own, which goes on meanwhile."""
        await asyncio.to_thread(self.advance, seconds, patience=patience)

    def now(self) -> datetime:
        """The time in the cluster."""
        return self.run(lambda: self._clock.now())

    def advance_until(self, condition: Callable[[], object], limit: float, step: float = 1.0) -> float:
        """Let ``step`` seconds pass again and again until the answer is true; how many seconds passed.

        Raises TimeoutError where it is not true after ``limit`` seconds, ValueError for a step that is none.
        """
        if not step > 0:
            raise ValueError(f"a step is a number of seconds above 0, not {step}")
        passed = 0.0
        while not (answer := decided(condition())):
            if passed >= limit:
                raise TimeoutError(f"not true after {limit:g} s of the cluster's time: {answer!r}")
            self.advance(step)
            passed += step
        return passed

    def wait(self, condition: Callable[[], T], timeout: float = 10.0, ignoring: Errors = AssertionError) -> T:
        """Ask again and again, in real time, until the answer is true; the answer.

        ``ignoring``: errors that stand for not yet. Raises TimeoutError.
        """
        __tracebackhide__ = True
        return wait(condition, timeout, ignoring)

    async def wait_async(
        self, condition: Callable[[], Awaitable[T]], timeout: float = 10.0, ignoring: Errors = AssertionError
    ) -> T:
        """The same for tests on a loop of their own, with a condition that is awaited."""
        __tracebackhide__ = True
        return await wait_async(condition, timeout, ignoring)

    # -- what is in it

    def apply(self, *manifests: Manifest, namespace: str = "") -> None:
        """Apply YAML files, folders of them, or objects, in their order. ``namespace``: of those that name none.

        Returns when definitions of custom resources among them are served. Raises ManifestError.
        """
        __tracebackhide__ = True
        self.call(apply(self._admin, self._clock, manifests, namespace))

    def report(self, namespace: str = "default") -> str:
        """The nodes, what is in a namespace, and its last Events, as text."""
        try:
            return self.call(report(self._admin, namespace))
        except (RequestError, SandboxError) as error:
            return f"no report can be given: {error}"

    # -- who asks

    def add_user(self, name: str, groups: Iterable[str] = (), *, namespace: str = "") -> str:
        """The path of a new kubeconfig of a user in these groups; RBAC says what they may.

        ``groups=["system:masters"]`` may do everything. namespace: the default one of its context. Raises ValueError
        for an empty name.
        """
        self._check()
        identity = self.new_identity(name, groups, namespace=namespace)
        identity.renew()
        return identity.kubeconfig

    def add_service_account(self, name: str, namespace: str = "default") -> str:
        """The path of a new kubeconfig of a service account, which is made where it is missing. Raises NotFound for
        a namespace that is not there."""
        self._check()
        path = self._folder / f"user-{next(self._numbers)}.kubeconfig"
        token = self.call(self._account_token(name, namespace))
        self._sandbox.write_user_kubeconfig(path, name, token, namespace)
        return str(path)

    def new_identity(self, name: str, groups: Iterable[str], *, namespace: str = "") -> Identity:
        """A user whose token can be taken away and renewed; see ``add_user``."""
        self._check()
        if not name:
            raise ValueError("a user needs a name")
        user = User(name, groups=tuple(groups))

        def write() -> tuple[str, str]:
            path, token = self._folder / f"user-{next(self._numbers)}.kubeconfig", secrets.token_urlsafe(24)
            self.run(lambda: self._sandbox.api.authenticator.add_token(token, user))
            self._sandbox.write_user_kubeconfig(path, name, token, namespace)
            return str(path), token

        return Identity(self, write)

    # -- operators

    def operator(
        self, program: Program, *, user: str = "operator", groups: Iterable[str] = ("system:masters",)
    ) -> Operator:
        """An operator to be started on this cluster, as in ``with sandbox.operator(main):``.

        program: ``async def main(kubeconfig)``, which lives in the cluster's time; ``def main(kubeconfig, stop)``, or a
        command, which live in real time (``sandbox.operators``). groups: of its user.
        """
        return Operator(self, program, user=user, groups=groups)

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """A loop for another thread on which time is the cluster's: ``asyncio.Runner(loop_factory=…)``."""
        loop = self.loop.follower()
        loop.wall_zero = self.run(lambda: wall_clock.zero_of(self._clock.now(), self._clock.monotonic()))
        wall_clock.adapt()
        return loop

    # -- what is asked, and what goes wrong

    def record(self, user: str = "", user_agent: str = "") -> "Recording":
        """Keep the requests of whoever fits these patterns (``*``, ``?``) from now on; in a ``with`` statement, until
        it ends."""
        return Recording(self, user, user_agent)

    def inject(self, fault: Fault) -> "Injection":
        """Begin with a fault; in a ``with`` statement, it goes at its end."""
        return Injection(self, self.run(lambda: self._sandbox.api.faults.add(fault)))

    # -- back to what was

    def snapshot(self) -> Snapshot:
        """All objects as they are now."""
        return self.run(self._take)

    def reset(self, snapshot: Snapshot) -> None:
        """Make all objects what they were, whatever finalizers say, and end all faults; time does not go back.

        Returns when the controllers have nothing to add: time moves on by some seconds where faults have cut their
        watches off. Leases, and what nodes say of themselves, go on as they are.
        Raises SandboxError where a client (an operator that still runs) keeps writing others, ValueError for a snapshot
        of another cluster.
        """
        if snapshot.cluster not in ("", str(self._folder)):
            raise ValueError("this snapshot is of another cluster")
        for tried in range(_RESETS):
            writes = self.run(lambda: self._restore(snapshot))
            self.advance(0 if tried < _RESETS_AT_ONCE else _RESET_STEP_S)
            if not writes:
                return
        left = self.run(lambda: sorted(snapshots.differences(self._sandbox.store, snapshot)))
        if left:
            raise SandboxError(f"what was reset changes again and again: {', '.join(left[:_TOLD])}")

    # -- webhooks

    def route(self, service: str, to: int | str) -> None:
        """Lead all calls of a Service, ``name.namespace``, to a port of this machine, or to ``HOST:PORT``.

        The Service need not be there. Webhooks of it that name no certificate are given the cluster's CA. A former
        route of the Service ends. Raises ValueError.
        """
        self.run(lambda: self._sandbox.api.routes.add(service, to))

    def webhook_certificates(self, *services: str) -> Path:
        """A new folder with tls.crt, tls.key and the ca.crt that signed them, for a webhook server.

        They are for ``localhost`` and for what the server is called as: ``name.namespace.svc`` of each Service,
        ``name.namespace``. The folder goes with the sandbox. Raises ValueError, OSError.
        """
        self._check()
        folder = Path(tempfile.mkdtemp(prefix="webhooks-", dir=self._folder))
        self._sandbox.write_webhook_certificates(folder, services)
        return folder

    # -- nodes and namespaces

    def add_node(self, name: str = "", *, capacity: str = "") -> str:
        """Add a node; its name. ``capacity``: such as cpu=8,memory=16Gi."""
        if name:
            self.call(commands.add(self._admin, name, capacity=capacity))
            return name
        return self.call(commands.add_some(self._admin, 1, capacity=capacity))[0]

    def remove_node(self, name: str) -> None:
        self.call(commands.remove(self._admin, name))

    def fail_node(self, name: str) -> None:
        """Stop a node's heartbeats and all that happens on it."""
        self.call(commands.fail(self._admin, name))

    def recover_node(self, name: str) -> None:
        self.call(commands.recover(self._admin, name))

    def kill_container(
        self, namespace: str, pod: str, container: str = "", exit_code: int = 137, reason: str = ""
    ) -> None:
        """Kill a container that runs; its restart policy decides what follows.

        container: by default the first regular one. reason: such as OOMKilled; by default Error, or Completed for 0.
        Raises LookupError where it does not run.
        """
        key = f"{namespace}/{pod}"
        self.run(lambda: self._cluster.nodes.kill_container(key, container, exit_code, reason))

    def set_ready(self, namespace: str, pod: str, ready: bool) -> None:
        """Make a running pod unready, or ready, from now on. Raises NotFound."""
        annotations: Doc = {f"{PREFIX}{READY_DELAY}": "0s" if ready else "never"}
        patch: Doc = {"metadata": {"annotations": annotations}}
        self.call(self._admin.patch(POD_METADATA, namespace, pod, patch, content_type=MERGE))

    def fail_image(self, pattern: str, message: str = "") -> None:
        """Images like this cannot be pulled from now on, unless they are on the node: ErrImagePull, ImagePullBackOff.

        pattern: of an image's name as in the pod or in full (``docker.io/library/nginx:1``); ``*`` and ``?`` stand for
        anything. message: of the failed pull; by default the image does not exist.
        """
        self.run(lambda: self._cluster.nodes.fail_image(pattern, message))

    def restore_image(self, pattern: str) -> None:
        """Images like this, a pattern given to ``fail_image``, can be pulled again."""
        self.run(lambda: self._cluster.nodes.restore_image(pattern))

    def answer_exec(self, pod: str, function: Function, container: str = "") -> None:
        """Answer ``kubectl exec`` and ``attach`` by a function from now on.

        pod: ``namespace/name``, with ``*`` and ``?``. container: its name; without one, all. function: gets an
        ``Asked`` and returns text, an ``Output`` or None; it runs on a thread, or as a coroutine on the sandbox's loop.
        Raises ValueError for a pod that is no such pattern.
        """
        _check_pod(pod)
        self._give(lambda given: given.say(given.commands, (pod, container), function))

    def set_logs(self, pod: str, text: str, container: str = "") -> None:
        """What ``kubectl logs`` shows from now on. pod, container: as for ``answer_exec``."""
        _check_pod(pod)
        self._give(lambda given: given.say(given.logs, (pod, container), text))

    def forward(self, pod: str, port: int, to: int | str) -> None:
        """Lead forwarded connections to a port of pods (as for ``answer_exec``) to ``PORT`` of this machine, or to
        ``HOST:PORT``. Raises ValueError.
        """
        _check_pod(pod)
        if not 0 < port < 65536:
            raise ValueError(f"{port} is no port")
        where = where_of(to)
        self._give(lambda given: given.say(given.ports, (pod, port), where))

    def make_namespace(self, name: str) -> None:
        """Make a namespace, and wait until pods can be made in it."""
        self.call(self._make_namespace(name))

    def drop_namespace(self, name: str) -> None:
        """Delete a namespace; its contents go in the background."""
        with contextlib.suppress(NotFound):
            self.call(self._admin.delete(NAMESPACES, "", name))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the sandbox's loop, and wait for it. Raises what it raises."""
        __tracebackhide__ = True
        if self._error is not None or not self._thread.is_alive():
            work.close()
            self._check()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the sandbox's loop, and wait for its result. Raises what it raises."""
        __tracebackhide__ = True

        async def work() -> T:
            return function()

        return self.call(work())

    # -- on the thread

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._live())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error
        finally:
            self._started.set()

    def _end(self) -> None:
        self._stop.set()
        if self._main is not None and not self._started.is_set():
            self._main.cancel()

    async def _live(self) -> None:
        self._main = asyncio.current_task()
        self._clock = LoopClock(datetime.now(UTC))
        chosen = self._options
        options = SandboxOptions(
            port=0,
            token=self.token,
            kubeconfig=self.kubeconfig,
            nodes=chosen.nodes,
            heartbeat_s=chosen.heartbeat_s,
        )
        self._sandbox = sandbox = Sandbox(options, self._clock)
        try:
            sandbox.prepare()
            await sandbox.serve()
            sandbox.write_kubeconfig()
            self.url = sandbox.url
            await self._serve_until_stopped(sandbox)
        finally:
            await sandbox.stop()

    async def _serve_until_stopped(self, sandbox: Sandbox) -> None:
        cluster = sandbox.cluster()
        self._client = cluster.admin
        self._cluster = cluster
        accompanied = asyncio.Event()
        work = None
        if self._companion is not None:
            work = self._companion(sandbox, self._stop, self._options.flags, accompanied.set)
        async with asyncio.TaskGroup() as group:
            simulation = group.create_task(cluster.run(), name="simulation")
            if work is not None:
                group.create_task(self._accompany(work), name="controllers")
                await accompanied.wait()
            await self._make_account("default")
            self._started.set()
            await self._stop.wait()
            simulation.cancel()

    async def _accompany(self, work: Awaitable[object]) -> None:
        await work
        if not self._stop.is_set():
            raise SandboxError("the controllers have ended; what is wrong is on standard error")

    async def _make_namespace(self, name: str) -> None:
        doc: Doc = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self._client.create(NAMESPACES, "", doc)
        await self._make_account(name)

    async def _make_account(self, name: str) -> None:
        """What pods of a namespace need."""
        account: Doc = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        with contextlib.suppress(AlreadyExists):  # the controllers may be faster
            await self._client.create(SERVICE_ACCOUNTS, name, account)

    async def _account_token(self, name: str, namespace: str) -> str:
        account: Doc = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        with contextlib.suppress(AlreadyExists):
            await self._client.create(SERVICE_ACCOUNTS, namespace, account)
        path = f"{SERVICE_ACCOUNTS.gvr.path(namespace, name)}/token"
        body: Doc = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        body["spec"] = {"expirationSeconds": _TOKEN_S}
        headers = {"content-type": "application/json"}
        made: Any = codec.decode_doc(await self._client.call(Request("POST", path, (), headers, codec.encode(body))))
        return str(made["status"]["token"])

    def _restore(self, snapshot: Snapshot) -> int:
        self._sandbox.api.faults.clear()
        self._cluster.nodes.restore_images()
        self._sandbox.api.inside.written = snapshot.written
        return snapshots.restore(self._sandbox.store, snapshot)

    def _take(self) -> Snapshot:
        taken = snapshots.take(self._sandbox.store)
        return replace(taken, written=self._sandbox.api.inside.written, cluster=str(self._folder))

    def _give(self, say: Callable[[Given], None]) -> None:
        self.run(lambda: say(self._sandbox.api.inside.given))

    @property
    def _admin(self) -> Client:
        """The administrator's client. Raises SandboxError where nothing runs."""
        self._check()
        return self._client

    def _check_begun(self) -> None:
        if self._thread.ident is None:
            raise SandboxError("the sandbox is not running")

    def _check(self) -> None:
        if self._error is not None:
            raise SandboxError(f"the sandbox has ended: {innermost(self._error)}") from self._error
        if not self._thread.is_alive():
            raise SandboxError("the sandbox is not running")


def _check_pod(pattern: str) -> None:
    if pattern != "*" and pattern.count("/") != 1:
        raise ValueError(f"pods are named as NAMESPACE/NAME, with * and ?, not {pattern!r}")


class Recording:
    """Requests that are kept."""

    def __init__(self, sandbox: HostedSandbox, user: str, user_agent: str) -> None:
        self._sandbox = sandbox
        self._kept: list[RecordedRequest] = []
        self._recorder = Recorder(sandbox.clock, self._kept.append, user, user_agent).intercept
        sandbox.run(lambda: sandbox.running.api.interceptors.append(self._recorder))

    @property
    def requests(self) -> list[RecordedRequest]:
        """Those that were answered so far, in order; watches count once they have begun."""
        return list(self._kept)

    @property
    def writes(self) -> list[RecordedRequest]:
        """Those that are not get, list or watch, of resources."""
        return [one for one in self._kept if one.resource and one.method not in _READS]

    def stop(self) -> None:
        """Keep no more. May be called twice."""
        with contextlib.suppress(ValueError):
            self._sandbox.run(lambda: self._sandbox.running.api.interceptors.remove(self._recorder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Injection:
    """A fault of a sandbox."""

    def __init__(self, sandbox: HostedSandbox, injected: Injected) -> None:
        self._sandbox = sandbox
        self._injected = injected

    @property
    def happened(self) -> list[Happening]:
        """The requests that it has hit so far, in order."""
        return list(self._injected.happened)

    def remove(self) -> None:
        """End it. May be called twice."""
        self._sandbox.run(lambda: self._sandbox.running.api.faults.remove(self._injected.number))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

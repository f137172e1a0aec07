"""A sandbox on its own thread: it serves over TLS like any API server, and its clock can be moved forward.

For tests in this process. Any client can use it, synchronous or asynchronous, on any loop.
"""

import asyncio
import contextlib
import inspect
import itertools
import secrets
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import NAMESPACES, SERVICE_ACCOUNTS
from kcm_cli.api.well_known import MASTERS
from kcm_cli.cluster.cluster import Running
from kcm_cli.cluster.manager import ALONE, SandboxManager
from kcm_cli.cluster.sandbox import sandbox_cluster
from kcm_cli.component.arguments import check_fields, checks_arguments
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.rest.transport import Request, RequestError
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.tasks import Stopped, innermost, unless
from kcm_cli.sandbox import snapshots
from kcm_cli.sandbox.apiserver.entry.fault import Fault, Happening
from kcm_cli.sandbox.apiserver.entry.faults import Injected
from kcm_cli.sandbox.apiserver.entry.recording import RecordedRequest, Recorder
from kcm_cli.sandbox.apiserver.settings import DEFAULTS
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.apiserver.webhooks.routes import where_of
from kcm_cli.sandbox.kubelet_api.server import Function, Overrides
from kcm_cli.sandbox.manifests import Manifest, apply
from kcm_cli.sandbox.networks import MOST_NODES, SERVICE_RANGE, misfit, service_ranges
from kcm_cli.sandbox.nodes import HEARTBEAT_S, commands
from kcm_cli.sandbox.nodes.annotations import MOST_EXIT_CODE, NEVER, PREFIX, READY_DELAY
from kcm_cli.sandbox.nodes.nodes import Nodes
from kcm_cli.sandbox.nodes.rules import Rule
from kcm_cli.sandbox.run import NoFolderError, SandboxOptions, SandboxServer
from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.sandbox.views import POD_METADATA, PODS
from kcm_cli.testing.objects import get, list_all, target_of
from kcm_cli.testing.operators import Identity, Operator, Program
from kcm_cli.testing.report import report
from kcm_cli.testing.waiting import IGNORED, Errors, Steps, wait, wait_async
from kcm_cli.testing.wall_clock import adapt, zero_of
from kcm_cli.testing.warp import PATIENCE_S, WarpLoop
from kcm_cli.trace.source import text_about

T = TypeVar("T")
START_S, STOP_S = 60.0, 10.0
_DAY_S = 24 * 3600.0
_TOKEN_S = 10 * 365 * 24 * 3600
_RESETS, _RESETS_AT_ONCE, _RESET_STEP_S, _MOST_LISTED = 20, 3, 5.0, 10
_READS = ("GET", "HEAD", "OPTIONS")


class HostOptions(msgspec.Struct, frozen=True):
    """The options of a hosted sandbox.

    controllers: whether they run. flags: the controllers' flags, as after ``--`` on the command line. heartbeat_s: the
    interval in which nodes renew their Leases, which are most events of a long time. manifests: what to apply at the
    start, as for ``apply``. rules: how pods behave, by labels and images. service_cluster_ip_range: of Services, as
    kube-apiserver's flag. system_pods: whether kube-system has what kubeadm runs in it.
    """

    nodes: int = 3
    controllers: bool = True
    flags: tuple[str, ...] = ()
    heartbeat_s: float = HEARTBEAT_S
    manifests: tuple[Manifest, ...] = ()
    rules: tuple[Rule, ...] = ()
    service_cluster_ip_range: str = SERVICE_RANGE
    system_pods: bool = False

    def __post_init__(self) -> None:
        """Raises TypeError, ValueError."""
        check_fields(self)
        if not 0 <= self.nodes < MOST_NODES:
            raise ValueError(f"HostOptions: there can be 0 to {MOST_NODES - 1} nodes, not {self.nodes}")
        try:
            if problem := misfit(service_ranges(self.service_cluster_ip_range), system_pods=self.system_pods):
                raise ValueError(problem)
        except ValueError as error:
            raise ValueError(f"HostOptions: service_cluster_ip_range: {error}") from None
        if self.system_pods and not self.nodes:
            raise ValueError("HostOptions: system_pods need a node")
        if not 0 < self.heartbeat_s < float("inf"):
            raise ValueError(f"HostOptions: heartbeat_s is a number of seconds above 0, not {self.heartbeat_s}")


class SandboxError(Exception):
    """The sandbox could not be started, or has ended."""


class UnhitFault(UserWarning):
    """An injected fault has hit no request."""


@checks_arguments
class Sandbox:
    """A complete cluster for tests and programs. It serves over TLS on its own thread.

    Use it in a ``with`` statement, or with ``start`` and ``stop``. Its methods may be called from any thread.
    """

    def __init__(self, options: HostOptions | None = None) -> None:
        """Raises ValueError for flags without controllers."""
        self._options = options = options or HostOptions()
        if options.flags and not options.controllers:
            raise ValueError(f"there are no controllers here to take {' '.join(options.flags)}")
        self._numbers = itertools.count(1)
        self._folder = Path()
        self._emptied: Callable[[], object] | None = None
        """Removes the folder, at the end of the process at the latest."""
        self._thread = threading.Thread(target=self._serve, name="kcm sandbox", daemon=True)
        self._injected: list[Injected] = []
        """The faults that have not ended."""
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._error: BaseException | None = None
        self._main: asyncio.Task[None] | None = None
        self._loop: WarpLoop
        self._clock: LoopClock
        self._client: Client
        self._cluster: Running[Nodes]
        self._causes: CauseRing | None = None
        self._server: SandboxServer
        self.token = secrets.token_urlsafe(24)
        self.url = ""

    @property
    def server(self) -> SandboxServer:
        """The API server, for use on its own thread only (``call``)."""
        self._check_begun()
        return self._server

    @property
    def loop(self) -> WarpLoop:
        """The event loop of the thread."""
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
        """Start the sandbox. Returns when it serves requests and the controllers run.

        Raises SandboxError if that fails, after cleaning up, and if it was started before.
        """
        if self._thread.ident is not None:
            raise SandboxError("a sandbox is started once: make another one")
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="kcm-test-"))
        except OSError as error:
            raise SandboxError(str(NoFolderError(error))) from None
        self._emptied = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
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
        """Stop the sandbox, within seconds. May be called at any time."""
        unhit: Sequence[str] = ()
        if self._thread.is_alive():
            with contextlib.suppress(SandboxError):  # it has ended by an error
                unhit = self._unhit(self._injected)
            with contextlib.suppress(RuntimeError):  # it has ended just now
                self._loop.call_soon_threadsafe(self._end)
            self._thread.join(STOP_S)
        if self._emptied is not None:
            self._emptied()
        _warn(unhit)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- time

    def advance(self, seconds: float, *, patience: float = PATIENCE_S) -> None:
        """Advance the cluster's clock. Returns when everything that was due has happened inside the cluster.

        patience: real seconds that programs outside get for each of the cluster's seconds. Raises ValueError for an
        invalid number of seconds, and Stalled if the cluster, or an operator in its time, never waits for time.
        """
        self._advance(seconds, patience, threading.Event())

    async def advance_async(self, seconds: float, *, patience: float = PATIENCE_S) -> None:
        """``advance`` for asynchronous tests, whose loop goes on meanwhile. It ends if it is cancelled."""
        given_up = threading.Event()
        try:
            await asyncio.to_thread(self._advance, seconds, patience, given_up)
        finally:
            given_up.set()

    def _advance(self, seconds: float, patience: float, given_up: threading.Event) -> None:
        self._check()
        if not 0 <= patience <= _DAY_S:  # selectors and locks wait for some weeks at most
            raise ValueError(f"patience is a number of seconds up to a day, not {patience}")
        adapt()
        self._loop.advance(seconds, patience_s=patience, given_up=given_up.is_set)

    def now(self) -> datetime:
        """The time in the cluster."""
        return self.run(lambda: self._clock.now())

    def advance_until(
        self, condition: Callable[[], object], limit: float, step: float = 1.0, ignoring: Errors = IGNORED
    ) -> float:
        """Advance by ``step`` seconds until the condition is true. Returns the seconds that it took.

        ignoring: as for ``wait``. Raises TimeoutError if it is not true after ``limit`` seconds, ValueError for an
        invalid step.
        """
        __tracebackhide__ = True
        steps = Steps(limit, step)
        while not steps.holds(condition, ignoring):
            self.advance(step)
        return steps.passed

    def wait(self, condition: Callable[[], T], timeout: float = 10.0, ignoring: Errors = IGNORED) -> T:
        """Poll in real time until the condition is true; returns its value.

        ignoring: errors that count as false, by default AssertionError, LookupError (KeyError, IndexError), NotFound.
        Raises TimeoutError.
        """
        __tracebackhide__ = True
        return wait(condition, timeout, ignoring)

    async def wait_async(
        self, condition: Callable[[], Awaitable[T]], timeout: float = 10.0, ignoring: Errors = IGNORED
    ) -> T:
        """``wait`` for asynchronous tests, with an awaitable condition."""
        __tracebackhide__ = True
        return await wait_async(condition, timeout, ignoring)

    # -- what is in it

    def apply(self, *manifests: Manifest, namespace: str = "") -> None:
        """Apply YAML files, folders of them, or objects, in order. ``namespace``: the default for objects without one.

        Returns when CustomResourceDefinitions among them are served. Raises ManifestError.
        """
        __tracebackhide__ = True
        self.call(apply(self._admin, self._clock, manifests, namespace))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """An object as the API server sends it. kind: as kubectl takes it, such as ``deploy``, ``Deployment`` or
        ``widgets.example.com``.

        Raises NotFound for no such object, and ValueError for a kind that is not served, or an empty name or namespace.
        """
        __tracebackhide__ = True
        return self.call(get(self._admin, kind, name, namespace))

    def list(self, kind: str, namespace: str = "", selector: str = "") -> "list[dict[str, Any]]":
        """The objects of a kind (see ``get``), in a namespace or in all, that have these labels (``app=web,tier!=db``).

        Raises ValueError for a kind that is not served.
        """
        __tracebackhide__ = True
        return self.call(list_all(self._admin, kind, namespace, selector))

    def report(self, namespace: str = "default") -> str:
        """The nodes, the objects in a namespace, and its last Events, as text."""
        try:
            return self.call(report(self._admin, namespace))
        except (RequestError, SandboxError) as error:
            return f"no report can be given: {error}"

    def trace(self, kind: str, name: str, namespace: str = "default") -> str:
        """What happened to an object and why, as ``kcm trace`` tells it: who created, changed and deleted it, and what
        for. The object may be gone. kind: see ``get``.

        Raises ValueError as ``get``, and SandboxError for a sandbox without controllers, or whose controllers use
        another API server: nothing is recorded there.
        """
        __tracebackhide__ = True
        ring, target = self._causes, self.call(target_of(self._admin, kind, name, namespace))
        if ring is None:
            raise SandboxError("nothing is recorded: this sandbox has no controllers, or they use another API server")
        return text_about(*self.run(lambda: (ring.snapshot(), ring.now() + ring.shift)), target)

    # -- who asks

    def add_user(self, name: str, groups: Iterable[str] = (), *, namespace: str = "") -> str:
        """Create a kubeconfig for a user in these groups, and return its path. RBAC decides what the user may do.

        ``groups=["system:masters"]`` may do everything. namespace: the default namespace of the context. Raises
        ValueError for an empty name.
        """
        self._check()
        identity = self.new_identity(name, groups, namespace=namespace)
        identity.renew()
        return identity.kubeconfig

    def add_service_account(self, name: str, namespace: str = "default") -> str:
        """Create a kubeconfig for a service account, and return its path. The account is created if it does not exist.
        Raises NotFound if the namespace does not exist."""
        self._check()
        path = self._folder / f"user-{next(self._numbers)}.kubeconfig"
        token = self.call(self._account_token(name, namespace))
        self._server.write_user_kubeconfig(path, name, token, namespace)
        return str(path)

    def new_identity(self, name: str, groups: Iterable[str], *, namespace: str = "") -> Identity:
        """A user whose token can be revoked and renewed. See ``add_user``."""
        self._check()
        if not name:
            raise ValueError("a user needs a name")
        user = User(name, groups=tuple(groups))

        def write() -> tuple[str, str]:
            path, token = self._folder / f"user-{next(self._numbers)}.kubeconfig", secrets.token_urlsafe(24)
            self.run(lambda: self._server.api.authenticator.add_token(token, user))
            self._server.write_user_kubeconfig(path, name, token, namespace)
            return str(path), token

        return Identity(write, self._server.api.faults.sever, self.run)

    # -- operators

    def operator(self, program: Program, *, user: str = "operator", groups: Iterable[str] = (MASTERS,)) -> Operator:
        """An operator for this cluster: ``with sandbox.operator(main):``.

        program: ``async def main(kubeconfig)``, which runs in the cluster's time; ``def main(kubeconfig, stop)`` or a
        command, which run in real time (``testing.operators``). groups: of its user.
        """
        return Operator(self, program, user=user, groups=groups)

    def aside(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do something on a thread of its own while the cluster's time stands still. Called on the sandbox's loop; what
        is returned waits for the end."""
        holding = contextlib.ExitStack()
        holding.enter_context(self.loop.hold())

        def held() -> None:
            try:
                work()
            finally:
                self.loop.call_soon_threadsafe(holding.close)

        thread = threading.Thread(target=held, name="aside", daemon=True)
        thread.start()
        return thread.join

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop for another thread that shares the cluster's clock: ``asyncio.Runner(loop_factory=…)``."""
        loop = self.loop.follower()
        loop.wall_zero = self.run(lambda: zero_of(self._clock.now(), self._clock.monotonic()))
        adapt()
        return loop

    # -- what is asked, and what goes wrong

    def record(self, user: str = "", user_agent: str = "") -> "Recording":
        """Record requests whose user and user agent match these patterns (``*``, ``?``), until ``stop`` or the end of a
        ``with`` statement."""
        return Recording(self, user, user_agent)

    def inject(self, fault: Fault) -> "Injection":
        """Start a fault. It lasts until ``remove`` or the end of a ``with`` statement.

        A fault that ends without having hit a request causes the warning ``UnhitFault``: it may be misspelt.
        """
        injected = self.run(lambda: self._server.api.faults.add(fault))
        self._injected.append(injected)
        return Injection(self, injected)

    def remove_fault(self, injected: Injected) -> None:
        """End a fault. See ``Injection.remove``."""
        unhit = self._unhit([injected])
        self.run(lambda: self._server.api.faults.remove(injected.number))
        _warn(unhit)

    def _unhit(self, injected: Collection[Injected]) -> Sequence[str]:
        """These faults end: a sentence for each that has not hit a request. The caller warns when all else is done:
        a warning may be an error."""
        ended = [one for one in injected if one in self._injected]
        self._injected = [one for one in self._injected if one not in ended]
        now_s = self.run(self._clock.monotonic) if ended else 0.0
        found = []
        for one in ended:
            if not one.hits and one.starts <= now_s:
                names = self._server.api.catalog.unknown(one.fault.resources)
                why = f": no resource has the name {' or '.join(map(quote, names))}" if names else ""
                found.append(f"the fault {one.fault.kind} has hit no request{why}")
        return found

    # -- back to what was

    def snapshot(self) -> Snapshot:
        """A snapshot of all objects, once everything that was due has happened inside the cluster."""
        self.advance(0)
        return self.run(self._take)

    def reset(self, snapshot: Snapshot) -> None:
        """Restore all objects to a snapshot, regardless of finalizers, and end all faults. Time does not go back.

        Returns when the controllers have nothing left to do; if faults have broken their watches, time advances by some
        seconds. Leases and the status of nodes are not restored. Raises SandboxError if a client, such as a running
        operator, keeps writing, and ValueError for a snapshot of another cluster.
        """
        if snapshot.cluster not in ("", str(self._folder)):
            raise ValueError("this snapshot is of another cluster")
        unhit = self._unhit(self._injected)
        self._settle(snapshot)
        _warn(unhit)

    def _settle(self, snapshot: Snapshot) -> None:
        """Restore the objects until nothing changes any more. Raises SandboxError."""
        for tried in range(_RESETS):
            writes = self.run(lambda: self._restore(snapshot))
            self.advance(0 if tried < _RESETS_AT_ONCE else _RESET_STEP_S)
            if not writes:
                return
        left = self.run(lambda: sorted(snapshots.differences(self._server.store, snapshot)))
        if left:
            raise SandboxError(f"what was reset changes again and again: {', '.join(left[:_MOST_LISTED])}")

    # -- webhooks

    def route(self, service: str, to: int | str) -> None:
        """Send all calls of a Service, ``name.namespace``, to a port of this machine, or to ``HOST:PORT``.

        The Service need not exist. The cluster's CA is injected into webhooks of it that have none. An earlier route of
        the Service is replaced. Raises ValueError.
        """
        self.run(lambda: self._server.api.routes.add(service, to))

    def webhook_certificates(self, *services: str) -> Path:
        """Create a folder with tls.crt, tls.key and their ca.crt, for a webhook server.

        They are valid for ``localhost`` and, for each Service ``name.namespace``, for ``name.namespace.svc``. The
        folder is deleted with the sandbox. Raises ValueError, OSError.
        """
        self._check()
        folder = Path(tempfile.mkdtemp(prefix="webhooks-", dir=self._folder))
        self._server.write_webhook_certificates(folder, services)
        return folder

    # -- nodes and namespaces

    def add_node(self, name: str = "", *, capacity: str = "") -> str:
        """Add a node; returns its name. ``capacity``: such as cpu=8,memory=16Gi."""
        if name:
            self.call(commands.add(self._admin, name, capacity=capacity))
            return name
        return self.call(commands.add_some(self._admin, 1, capacity=capacity))[0]

    def remove_node(self, name: str) -> None:
        """Delete a node with its kubelet; its pods are deleted as on a real cluster. Raises NotFound."""
        self.call(commands.remove(self._admin, name))

    def fail_node(self, name: str) -> None:
        """Stop a node's heartbeats and everything on it. Raises NotFound, NotSimulated."""
        self.call(commands.fail(self._admin, name))

    def recover_node(self, name: str) -> None:
        """Bring a failed node back. Raises NotFound, NotSimulated."""
        self.call(commands.recover(self._admin, name))

    def kill_container(
        self, namespace: str, pod: str, container: str = "", exit_code: int = 137, reason: str = ""
    ) -> None:
        """Kill a running container. Its restart policy applies.

        container: by default the first regular one. reason: such as OOMKilled; by default Error, or Completed for exit
        code 0. Raises LookupError if it is not running, ValueError for what is no exit code.
        """
        if not 0 <= exit_code <= MOST_EXIT_CODE:
            raise ValueError(f"an exit code is a number from 0 to {MOST_EXIT_CODE}, not {exit_code}")
        key = f"{namespace}/{pod}"
        self.run(lambda: self._cluster.nodes.kill_container(key, container, exit_code, reason))

    def set_ready(self, namespace: str, pod: str, ready: bool) -> None:
        """Make a running pod ready or unready. Raises NotFound."""
        annotations: Doc = {f"{PREFIX}{READY_DELAY}": "0s" if ready else NEVER}
        patch: Doc = {"metadata": {"annotations": annotations}}
        self.call(self._admin.patch(POD_METADATA, namespace, pod, patch, content_type=MERGE))

    def fail_image(self, pattern: str, message: str = "") -> None:
        """Make pulls of matching images fail (ErrImagePull, ImagePullBackOff), unless they are on the node.

        pattern: matches an image's name as in the pod or in full (``docker.io/library/nginx:1``), with ``*`` and ``?``.
        message: the error of the pull; by default the image does not exist.
        """
        self.run(lambda: self._cluster.nodes.fail_image(pattern, message))

    def restore_image(self, pattern: str) -> None:
        """Undo ``fail_image`` for this pattern."""
        self.run(lambda: self._cluster.nodes.restore_image(pattern))

    def answer_exec(self, pod: str, function: Function, container: str = "") -> None:
        """Answer ``kubectl exec`` and ``attach`` with a function.

        pod: ``namespace/name``, with ``*`` and ``?``. container: its name; empty for all. function: gets an ``Asked``
        and returns text, an ``Output`` or None. It runs on a thread or, as a coroutine, on the sandbox's loop. Raises
        ValueError for an invalid pattern.
        """
        _check_pod(pod)
        self._override(lambda known: known.set(known.commands, (pod, container), function))

    def set_logs(self, pod: str, text: str, container: str = "") -> None:
        """Set the output of ``kubectl logs``. pod, container: as for ``answer_exec``."""
        _check_pod(pod)
        self._override(lambda known: known.set(known.logs, (pod, container), text))

    def forward(self, pod: str, port: int, to: int | str) -> None:
        """Send connections that are forwarded to a port of pods (as for ``answer_exec``) to a port of this machine, or
        to ``HOST:PORT``. Raises ValueError."""
        _check_pod(pod)
        if not 0 < port < 65536:
            raise ValueError(f"{port} is no port")
        where = where_of(to)
        self._override(lambda known: known.set(known.ports, (pod, port), where))

    def make_namespace(self, name: str) -> None:
        """Create a namespace. Returns when pods can be created in it."""
        self.call(self._make_namespace(name))

    def drop_namespace(self, name: str) -> None:
        """Delete a namespace. Its contents are deleted in the background."""
        with contextlib.suppress(NotFound):
            self.call(self._admin.delete(NAMESPACES, "", name))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the sandbox's loop, and return its result. Raises its errors, and SandboxError on the
        sandbox's own thread, which would wait for itself."""
        __tracebackhide__ = True
        if threading.current_thread() is self._thread:
            work.close()
            why = "a coroutine of the test runs there: write it as a function without async, which has another thread"
            raise SandboxError(f"this waits for the sandbox on its own thread ({why})")
        if self._error is not None or not self._thread.is_alive():
            work.close()
            self._check()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the sandbox's loop, and return its result. Raises its errors."""
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
            settings=replace(DEFAULTS, service_ranges=service_ranges(chosen.service_cluster_ip_range)),
            rules=chosen.rules,
            system_pods=chosen.system_pods,
        )
        self._server = server = SandboxServer(options, self._clock)
        try:
            _prepare(server)
            server.write_kubeconfig()
            self.url = server.url
            manager = self._manager(server)
            self._causes = manager.causes if manager is not None else None
            async with sandbox_cluster(server, manager).running(self._stop) as cluster:
                self._cluster, self._client = cluster, cluster.client("kcm-sandbox")
                with contextlib.suppress(Stopped):
                    if manager is not None:
                        await unless(self._stop, manager.started.wait())
                    await self._make_account("default")
                    self._started.set()
                    await self._stop.wait()
                early = cluster.code is not None
        finally:
            await server.stop()
        for _, error in cluster.failed:
            raise error
        if early:
            raise SandboxError("the controllers have ended; what is wrong is on standard error")

    def _manager(self, server: SandboxServer) -> SandboxManager | None:
        flags = (*ALONE, *self._options.flags)
        return SandboxManager(server, flags, recorded=True) if self._options.controllers else None

    async def _make_namespace(self, name: str) -> None:
        doc: Doc = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self._client.create(NAMESPACES, "", doc)
        await self._make_account(name)

    async def _make_account(self, name: str) -> None:
        """Create the ServiceAccount that pods of a namespace need."""
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
        """Returns the number of writes."""
        self._server.api.faults.clear()
        self._cluster.nodes.restore_images()
        kubelets = self._server.api.kubelets
        kubelets.commands.written, kubelets.attached.outputs = snapshot.written, snapshot.spoken
        written = snapshots.restore(self._server.store, snapshot)
        self._cluster.nodes.restored({one.key: one.revision for gvr, one in written if gvr == PODS.gvr})
        return len(written)

    def _take(self) -> Snapshot:
        taken, kubelets = snapshots.take(self._server.store), self._server.api.kubelets
        spoken = kubelets.attached.outputs
        return replace(taken, written=kubelets.commands.written, spoken=spoken, cluster=str(self._folder))

    def _override(self, change: Callable[[Overrides], None]) -> None:
        self.run(lambda: change(self._server.api.kubelets.overrides))

    @property
    def _admin(self) -> Client:
        """The administrator's client. Raises SandboxError if the sandbox is not running."""
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


def _prepare(server: SandboxServer) -> None:
    """Raises SandboxError where the machine does not let it listen, as one without IPv4."""
    try:
        server.prepare()
    except OSError as error:
        if error.filename is not None:
            raise
        raise SandboxError(f"cannot listen on {server.options.bind_address}: {error.strerror}") from error


def _warn(unhit: Sequence[str]) -> None:
    """Warn of faults that have hit no request, where a test ended them."""
    if not unhit:
        return
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("kcm_cli."):
        level, frame = level + 1, frame.f_back
    warnings.warn("\n".join(unhit), UnhitFault, stacklevel=level)


def _check_pod(pattern: str) -> None:
    if pattern != "*" and pattern.count("/") != 1:
        raise ValueError(f"pods are named as NAMESPACE/NAME, with * and ?, not {pattern!r}")


class Starter:
    """Starts clusters: what the fixture ``kcm_start`` is."""

    def __init__(self) -> None:
        self.clusters: list[Sandbox] = []

    def __call__(self, options: HostOptions | None = None) -> Sandbox:
        """Start a cluster. Raises SandboxError, ManifestError."""
        sandbox = Sandbox(options)
        sandbox.start()
        self.clusters.append(sandbox)
        return sandbox

    def stop(self) -> None:
        """Stop all of them, each whatever the others' ends raise."""
        with contextlib.ExitStack() as ends:
            for sandbox in self.clusters:
                ends.callback(sandbox.stop)


class Recording:
    """Recorded requests."""

    def __init__(self, sandbox: Sandbox, user: str, user_agent: str) -> None:
        self._sandbox = sandbox
        self._kept: list[RecordedRequest] = []
        self._recorder = Recorder(sandbox.clock, self._kept.append, user, user_agent).intercept
        sandbox.run(lambda: sandbox.server.api.interceptors.append(self._recorder))

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests that were answered so far, in order. Watches are included once they have started."""
        return list(self._kept)

    @property
    def writes(self) -> list[RecordedRequest]:
        """The requests for resources other than get, list and watch."""
        return [one for one in self._kept if one.resource and one.method not in _READS]

    def stop(self) -> None:
        """Stop recording. May be called twice."""
        with contextlib.suppress(ValueError):
            self._sandbox.run(lambda: self._sandbox.server.api.interceptors.remove(self._recorder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Injection:
    """An injected fault."""

    def __init__(self, sandbox: Sandbox, injected: Injected) -> None:
        self._sandbox = sandbox
        self._injected = injected

    @property
    def happened(self) -> list[Happening]:
        """The requests that it has hit so far, in order; the last 10,000 of them."""
        return list(self._injected.happened)

    def remove(self) -> None:
        """End the fault. May be called twice."""
        self._sandbox.remove_fault(self._injected)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

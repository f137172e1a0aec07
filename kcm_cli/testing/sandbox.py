"""A control plane in this process: API server, controllers, scheduler and simulated nodes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Self, TypeVar

from kcm_cli.cli.sandbox_manager import SandboxManager
from kcm_cli.component.arguments import checked, checks_arguments
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.hosted import HostedSandbox, HostOptions, Injection, Recording
from kcm_cli.sandbox.manifests import Manifest
from kcm_cli.sandbox.run import Sandbox as Running
from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.sandbox.streams.inside import Function
from kcm_cli.sandbox.waiting import Errors
from kcm_cli.sandbox.warp import PATIENCE_S

T = TypeVar("T")
_ALONE = ("--leader-elect=false", "--secure-port=0")


def run_controllers(
    sandbox: Running, stop: asyncio.Event, flags: tuple[str, ...], ready: Callable[[], object]
) -> Awaitable[int]:
    """The companion of a HostedSandbox: runs the controllers."""
    return SandboxManager(sandbox, (*_ALONE, *flags)).accompany(stop, ready)


@checks_arguments
class Sandbox(HostedSandbox):
    """A complete cluster for tests and programs. It serves over TLS on its own thread.

    Use it in a ``with`` statement, or with ``start`` and ``stop``. Its methods may be called from any thread.
    """

    def __init__(self, options: HostOptions | None = None) -> None:
        """Raises ValueError for invalid flags of the controllers."""
        super().__init__(options or HostOptions(), run_controllers)


class AsyncSandbox:
    """A ``Sandbox`` with awaitable methods, so that the caller's loop can serve a webhook or an operator meanwhile. Use
    it in an ``async with`` statement. ``sandbox``: the synchronous interface to the same cluster."""

    def __init__(self, options: HostOptions | None = None) -> None:
        self.sandbox: HostedSandbox = Sandbox(options)

    @classmethod
    @checked
    def of(cls, sandbox: HostedSandbox) -> "AsyncSandbox":
        """Wrap a running sandbox, such as that of the fixture ``kcm_sandbox``."""
        made = cls.__new__(cls)
        made.sandbox = sandbox
        return made

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def kubeconfig(self) -> str:
        """The path of the administrator's kubeconfig."""
        return self.sandbox.kubeconfig

    @property
    def url(self) -> str:
        return self.sandbox.url

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self.sandbox.token

    async def start(self) -> None:
        """See ``Sandbox.start``. The same applies to all methods."""
        await asyncio.to_thread(self.sandbox.start)

    async def stop(self) -> None:
        await asyncio.to_thread(self.sandbox.stop)

    async def apply(self, *manifests: Manifest, namespace: str = "") -> None:
        await asyncio.to_thread(self.sandbox.apply, *manifests, namespace=namespace)

    async def advance(self, seconds: float, *, patience: float = PATIENCE_S) -> None:
        await self.sandbox.advance_async(seconds, patience=patience)

    async def now(self) -> datetime:
        return await asyncio.to_thread(self.sandbox.now)

    async def wait(
        self, condition: Callable[[], Awaitable[T]], timeout: float = 10.0, ignoring: Errors = AssertionError
    ) -> T:
        return await self.sandbox.wait_async(condition, timeout, ignoring)

    async def advance_until(self, condition: Callable[[], Awaitable[object]], limit: float, step: float = 1.0) -> float:
        if not step > 0:
            raise ValueError(f"a step is a number of seconds above 0, not {step}")
        passed = 0.0
        while not (answer := await condition()):
            if passed >= limit:
                raise TimeoutError(f"not true after {limit:g} s of the cluster's time: {answer!r}")
            await self.advance(step)
            passed += step
        return passed

    async def report(self, namespace: str = "default") -> str:
        return await asyncio.to_thread(self.sandbox.report, namespace)

    async def make_namespace(self, name: str) -> None:
        await asyncio.to_thread(self.sandbox.make_namespace, name)

    async def drop_namespace(self, name: str) -> None:
        await asyncio.to_thread(self.sandbox.drop_namespace, name)

    async def add_user(self, name: str, groups: Iterable[str] = (), *, namespace: str = "") -> str:
        return await asyncio.to_thread(self.sandbox.add_user, name, groups, namespace=namespace)

    async def add_service_account(self, name: str, namespace: str = "default") -> str:
        return await asyncio.to_thread(self.sandbox.add_service_account, name, namespace)

    async def record(self, user: str = "", user_agent: str = "") -> Recording:
        return await asyncio.to_thread(self.sandbox.record, user, user_agent)

    async def inject(self, fault: Fault) -> Injection:
        return await asyncio.to_thread(self.sandbox.inject, fault)

    async def snapshot(self) -> Snapshot:
        return await asyncio.to_thread(self.sandbox.snapshot)

    async def reset(self, snapshot: Snapshot) -> None:
        await asyncio.to_thread(self.sandbox.reset, snapshot)

    async def route(self, service: str, to: int | str) -> None:
        await asyncio.to_thread(self.sandbox.route, service, to)

    async def webhook_certificates(self, *services: str) -> Path:
        return await asyncio.to_thread(self.sandbox.webhook_certificates, *services)

    async def add_node(self, name: str = "", *, capacity: str = "") -> str:
        return await asyncio.to_thread(self.sandbox.add_node, name, capacity=capacity)

    async def remove_node(self, name: str) -> None:
        await asyncio.to_thread(self.sandbox.remove_node, name)

    async def fail_node(self, name: str) -> None:
        await asyncio.to_thread(self.sandbox.fail_node, name)

    async def recover_node(self, name: str) -> None:
        await asyncio.to_thread(self.sandbox.recover_node, name)

    async def kill_container(
        self, namespace: str, pod: str, container: str = "", exit_code: int = 137, reason: str = ""
    ) -> None:
        await asyncio.to_thread(self.sandbox.kill_container, namespace, pod, container, exit_code, reason)

    async def set_ready(self, namespace: str, pod: str, ready: bool) -> None:
        await asyncio.to_thread(self.sandbox.set_ready, namespace, pod, ready)

    async def fail_image(self, pattern: str, message: str = "") -> None:
        await asyncio.to_thread(self.sandbox.fail_image, pattern, message)

    async def answer_exec(self, pod: str, function: Function, container: str = "") -> None:
        await asyncio.to_thread(self.sandbox.answer_exec, pod, function, container)

    async def set_logs(self, pod: str, text: str, container: str = "") -> None:
        await asyncio.to_thread(self.sandbox.set_logs, pod, text, container)

    async def forward(self, pod: str, port: int, to: int | str) -> None:
        await asyncio.to_thread(self.sandbox.forward, pod, port, to)

    async def restore_image(self, pattern: str) -> None:
        await asyncio.to_thread(self.sandbox.restore_image, pattern)

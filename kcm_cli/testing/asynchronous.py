"""A sandbox for asynchronous tests and programs."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from kcm_cli.component.arguments import checked
from kcm_cli.testing.sandbox import HostOptions, Sandbox
from kcm_cli.testing.waiting import IGNORED, Errors, Steps
from kcm_cli.testing.warp import PATIENCE_S

P = ParamSpec("P")
T = TypeVar("T")


def _threaded(
    method: Callable[Concatenate[Sandbox, P], T],
) -> "Callable[Concatenate[AsyncSandbox, P], Coroutine[Any, Any, T]]":
    """The sandbox's method of this name, run on a thread."""

    @wraps(method)
    async def run(self: "AsyncSandbox", /, *args: P.args, **keywords: P.kwargs) -> T:
        bound: Callable[P, T] = getattr(self.sandbox, method.__name__)  # of a subclass, perhaps
        return await asyncio.to_thread(bound, *args, **keywords)

    run.__qualname__ = f"AsyncSandbox.{method.__name__}"  # for the warning about a call that is not awaited
    return run


class AsyncSandbox:
    """A ``Sandbox`` with awaitable methods, so that the caller's loop can serve a webhook or an operator meanwhile. Use
    it in an ``async with`` statement. ``sandbox``: the synchronous interface to the same cluster."""

    def __init__(self, options: HostOptions | None = None) -> None:
        self.sandbox: Sandbox = Sandbox(options)

    @classmethod
    @checked
    def of(cls, sandbox: Sandbox) -> "AsyncSandbox":
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
        """The address of the API server."""
        return self.sandbox.url

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self.sandbox.token

    start = _threaded(Sandbox.start)
    stop = _threaded(Sandbox.stop)
    apply = _threaded(Sandbox.apply)
    now = _threaded(Sandbox.now)
    get = _threaded(Sandbox.get)
    list = _threaded(Sandbox.list)
    report = _threaded(Sandbox.report)
    trace = _threaded(Sandbox.trace)
    make_namespace = _threaded(Sandbox.make_namespace)
    drop_namespace = _threaded(Sandbox.drop_namespace)
    add_user = _threaded(Sandbox.add_user)
    add_service_account = _threaded(Sandbox.add_service_account)
    operator = _threaded(Sandbox.operator)
    new_event_loop = _threaded(Sandbox.new_event_loop)
    record = _threaded(Sandbox.record)
    inject = _threaded(Sandbox.inject)
    snapshot = _threaded(Sandbox.snapshot)
    reset = _threaded(Sandbox.reset)
    route = _threaded(Sandbox.route)
    webhook_certificates = _threaded(Sandbox.webhook_certificates)
    add_node = _threaded(Sandbox.add_node)
    remove_node = _threaded(Sandbox.remove_node)
    fail_node = _threaded(Sandbox.fail_node)
    recover_node = _threaded(Sandbox.recover_node)
    kill_container = _threaded(Sandbox.kill_container)
    set_ready = _threaded(Sandbox.set_ready)
    fail_image = _threaded(Sandbox.fail_image)
    restore_image = _threaded(Sandbox.restore_image)
    answer_exec = _threaded(Sandbox.answer_exec)
    set_logs = _threaded(Sandbox.set_logs)
    forward = _threaded(Sandbox.forward)

    async def advance(self, seconds: float, *, patience: float = PATIENCE_S) -> None:
        """``Sandbox.advance``. It ends if it is cancelled."""
        await self.sandbox.advance_async(seconds, patience=patience)

    async def wait(self, condition: Callable[[], Awaitable[T]], timeout: float = 10.0, ignoring: Errors = IGNORED) -> T:
        """Poll in real time until an awaitable condition is true; returns its value."""
        return await self.sandbox.wait_async(condition, timeout, ignoring)

    async def advance_until(
        self, condition: Callable[[], Awaitable[object]], limit: float, step: float = 1.0, ignoring: Errors = IGNORED
    ) -> float:
        """Advance by ``step`` seconds until an awaitable condition is true; returns the seconds."""
        steps = Steps(limit, step)
        while not await steps.holds_async(condition, ignoring):
            await self.advance(step)
        return steps.passed

"""Starts, kills and restarts operators under test.

An operator is one of

    async def main(kubeconfig)          runs on its own loop, in the cluster's time
    def main(kubeconfig, stop)          runs on a thread, in real time; ``stop`` is a threading.Event
    ["./operator", "--flag"]            runs as a process, in real time, with KUBECONFIG

Each start has a new kubeconfig and new credentials. ``kill`` revokes them first, so that a dying operator can neither
write nor use those of the next start.
"""

import asyncio
import contextlib
import inspect
import os
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, Self

from kcm_cli.api.well_known import MASTERS
from kcm_cli.sandbox.apiserver.entrance import Asked
from kcm_cli.testing.following import FollowingLoop
from kcm_cli.testing.pointing import environment, pointing_to
from kcm_cli.testing.whereabouts import whereabouts

Program = Callable[[str], Awaitable[object]] | Callable[[str, threading.Event], object] | Sequence[str]
"""See the module."""
STOP_S, KILL_S = 10.0, 0.1
"""How long to wait for an operator that is stopped, and for one that is killed, which has no access to the server."""

_GUARD = 'read -r line; kill -KILL "-$1"'
"""Waits for the end of its standard input, and kills the process group of that number."""


class OperatorError(Exception):
    """The operator has ended by itself, or does not stop; the text says by which error, or where it is."""


class Host(Protocol):
    """The sandbox of operators, as ``testing.sandbox.Sandbox``."""

    def new_identity(self, name: str, groups: Iterable[str], *, namespace: str = "") -> "Identity":
        """A user with a token of its own."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop for another thread, in the cluster's time."""


class _Run(Protocol):
    """One run of an operator."""

    def alive(self) -> bool: ...
    def failed(self) -> bool: ...
    def error(self) -> str: ...
    def stop(self, *, at_once: bool) -> None: ...


class Operator:
    """An operator on a sandbox. Use it in a ``with`` or ``async with`` statement, or with ``start`` and ``stop``.

    The statement ends with OperatorError if the operator has failed meanwhile. An error of the statement itself, as a
    failed assertion, gets a note that says so.

    virtual: whether it runs in the cluster's time. kubeconfig: that of the present run. user: its user.
    """

    def __init__(
        self,
        sandbox: Host,
        program: Program,
        *,
        user: str = "operator",
        groups: Iterable[str] = (MASTERS,),
        namespace: str = "",
    ) -> None:
        """Raises TypeError for an invalid program."""
        _check(program)
        self._sandbox = sandbox
        self._program = program
        self._identity = sandbox.new_identity(user, groups, namespace=namespace)
        self._run: _Run | None = None
        self._env = contextlib.ExitStack()
        self.user = user
        self.virtual = inspect.iscoroutinefunction(inspect.unwrap(program)) if callable(program) else False

    @property
    def kubeconfig(self) -> str:
        """The path of its kubeconfig."""
        return self._identity.kubeconfig

    def start(self) -> None:
        """Start it. Raises OSError if the command cannot be run."""
        if self._run is not None:
            raise OperatorError("the operator runs already")
        self._identity.renew()
        program = self._program
        if not callable(program):
            self._run = _Process(program, self.kubeconfig)
            return
        self._env.enter_context(pointing_to(self.kubeconfig))
        if self.virtual:
            self._run = _Task(program, self.kubeconfig, self._sandbox.new_event_loop)
        else:
            self._run = _Thread(program, self.kubeconfig)

    def kill(self) -> None:
        """Kill it as a crash does: none of its requests reaches the server any more. May be called twice."""
        self.disconnect()
        self._end(at_once=True)

    def disconnect(self) -> None:
        """Revoke its credentials and break its connections."""
        self._identity.cut_off()

    def stop(self) -> None:
        """Stop it, and wait until it has ended. May be called twice. Raises OperatorError if it does not end; then it
        has no access any more, as after ``kill``."""
        try:
            self._end(at_once=False)
        finally:
            self._identity.cut_off()

    def restart(self) -> None:
        """Kill and start it."""
        self.kill()
        self.start()

    def client_of(self, asked: Asked) -> str:
        """Empty: its requests are those of one client."""
        return ""

    def sever(self) -> None:
        """Break the connections of this run. Call it on the sandbox's thread."""
        self._identity.sever()

    def alive(self) -> bool:
        """Whether it has not ended by itself."""
        return self._run is None or self._run.alive()

    def check(self) -> None:
        """Raises OperatorError with its last error if it has ended by itself."""
        if self._run is not None and not self._run.alive():
            raise OperatorError(self._ended(self._run))

    def failure(self) -> str:
        """By which error it has ended, as a sentence; empty if it runs, was stopped, or has returned."""
        run = self._run
        return self._ended(run) if run is not None and not run.alive() and run.failed() else ""

    @staticmethod
    def _ended(run: _Run) -> str:
        return f"the operator has ended: {run.error()}"

    def _leave(self, error: BaseException | None) -> None:
        failure = self.failure()
        try:
            self.stop()
        finally:
            if failure and error is not None:
                error.add_note(failure)
        if failure and error is None:
            raise OperatorError(failure)

    def _end(self, *, at_once: bool) -> None:
        run, self._run = self._run, None
        if run is not None:
            try:
                run.stop(at_once=at_once)
            finally:
                self._env.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._leave(error)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        await asyncio.to_thread(self._leave, error)


def _check(program: object) -> None:
    if inspect.iscoroutine(program):
        program.close()
        raise TypeError(f"an operator is the function itself, which each start calls: {program.__name__}, not called")
    if not callable(program):
        if not program or isinstance(program, str) or not isinstance(program, Sequence):
            raise TypeError(f"a command is a list of words, as ['./operator', '--flag'], not {program!r}")
        return
    takes = ("kubeconfig",) if inspect.iscoroutinefunction(inspect.unwrap(program)) else ("kubeconfig", "stop")
    try:
        inspect.signature(program).bind(*takes)
    except TypeError as error:
        text = f"an operator is async def main(kubeconfig) or def main(kubeconfig, stop), not {program!r}: {error}"
        raise TypeError(text) from None
    except ValueError:  # it has no signature
        return


class Identity:
    """A user whose bearer token can be revoked and renewed.

    write: creates a token and a kubeconfig with it; returns the path and the token. sever: breaks all present and
    future connections with a token. run: calls a function on the sandbox's thread.
    """

    def __init__(
        self,
        write: Callable[[], tuple[str, str]],
        sever: Callable[[str], None],
        run: Callable[[Callable[[], None]], None],
    ) -> None:
        self._write, self._sever, self._run = write, sever, run
        self._token = self.kubeconfig = ""

    def renew(self) -> None:
        """Create a new token, in a new kubeconfig."""
        self.kubeconfig, self._token = self._write()

    def cut_off(self) -> None:
        """Break all present and future connections with the token, also after a reset, since a killed program may go
        on."""
        if self._token:
            self._run(self.sever)
            self._token = ""

    def sever(self) -> None:
        """``cut_off``, on the sandbox's thread."""
        self._sever(self._token)


class _OnThread:
    """Work on a thread of its own."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=work, name="operator under test", daemon=True)
        self._thread.start()

    def alive(self) -> bool:
        return self._thread.is_alive()

    def failed(self) -> bool:
        return self._error is not None

    def error(self) -> str:
        return repr(self._error) if self._error is not None else "it has returned"

    def _join(self, *, at_once: bool, killed_s: float) -> None:
        self._thread.join(killed_s if at_once else STOP_S)
        if not at_once and self._thread.is_alive():
            here = whereabouts(self._thread.ident, self._tasks())
            raise OperatorError(f"the operator did not stop within {STOP_S:g} s{here and f': it is in {here}'}")

    def _tasks(self) -> Iterable[asyncio.Task[Any]]:
        return ()


class _Thread(_OnThread):
    """A function on a thread, which ends when its event is set."""

    def __init__(self, program: Any, kubeconfig: str) -> None:
        self._stop = threading.Event()

        def work() -> None:
            try:
                program(kubeconfig, self._stop)
            except BaseException as error:  # noqa: BLE001 - kept for error()
                self._error = error

        super().__init__(work)

    def stop(self, *, at_once: bool) -> None:
        """Set the event. A killed function may go on for a while, without access to the server."""
        self._stop.set()
        self._join(at_once=at_once, killed_s=0.0)


class _Task(_OnThread):
    """A coroutine on its own loop and thread."""

    def __init__(self, program: Any, kubeconfig: str, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._main: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        begun = threading.Event()

        async def main() -> None:
            self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
            begun.set()
            await program(kubeconfig)

        def work() -> None:
            try:
                with asyncio.Runner(loop_factory=new_loop) as runner:
                    runner.run(main())
            except BaseException as error:  # noqa: BLE001 - kept for error()
                self._error = error
            finally:
                begun.set()

        super().__init__(work)
        begun.wait()

    def stop(self, *, at_once: bool) -> None:
        if self._loop is not None and self._main is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._main.cancel)
        if at_once:
            self._forsake()
        try:
            self._join(at_once=at_once, killed_s=KILL_S)
        except OperatorError:
            self._forsake()
            raise

    def _forsake(self) -> None:
        """Let the cluster's time pass without it."""
        if isinstance(self._loop, FollowingLoop):
            self._loop.forsake()

    def _tasks(self) -> Iterable[asyncio.Task[Any]]:
        return asyncio.all_tasks(self._loop) if self._loop is not None else ()


class _Process:
    """A command. Its output goes to the test's output. What it has started ends with it, unless in another session."""

    def __init__(self, command: Sequence[str], kubeconfig: str) -> None:
        self._process = subprocess.Popen(list(command), env=environment(kubeconfig), start_new_session=True)
        guard = ["/bin/sh", "-c", _GUARD, "sh", str(self._process.pid)]
        null = subprocess.DEVNULL
        try:
            self._guard = subprocess.Popen(
                guard, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True
            )
        except OSError:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise
        self._swept = False

    def alive(self) -> bool:
        if self._process.poll() is None:
            return True
        if not self._swept:  # at once and only once: later the number may be that of another group
            self._swept = True
            with contextlib.suppress(ProcessLookupError, PermissionError):  # none is left
                os.killpg(self._process.pid, signal.SIGKILL)
            self._guard.kill()
            self._guard.communicate()
        return False

    def failed(self) -> bool:
        return self._process.returncode != 0

    def error(self) -> str:
        return f"exit code {self._process.returncode}"

    def stop(self, *, at_once: bool) -> None:
        if at_once:
            self._process.kill()
        else:
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise OperatorError(f"the operator did not stop within {STOP_S:g} s of SIGTERM") from None
        finally:
            self.alive()  # ends what is left

"""Operators that are commands end with the process that started them."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading

import pytest

from kcm_cli.testing import operators
from kcm_cli.testing.following import FollowingLoop, Time
from kcm_cli.testing.operators import Identity, Operator, OperatorError, _Task

ENDS = """
import os, sys
from tests.unit.testing.test_operators import operator
operator(["sleep", "600"]).start()
os.kill(os.getpid(), int(sys.argv[1]))
"""


def stubborn(program, ended):
    """A program that is not cancelled."""

    async def run(kubeconfig):
        work = asyncio.ensure_future(program(kubeconfig))
        while not work.done():
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                pass
        ended.set()

    return run


class Users:
    """A sandbox with users and nothing else."""

    def new_identity(self, user, groups, *, namespace):
        return Identity(lambda: ("/no/kubeconfig", ""), lambda token: None, lambda work: work())

    def new_event_loop(self):
        return asyncio.new_event_loop()


def operator(command):
    return Operator(Users(), command)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_ends_with_the_process_that_started_it(how):
    """The command holds the standard output open: if it does not end, this test exceeds the time limit."""
    done = subprocess.run([sys.executable, "-c", ENDS, str(how.value)], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (-how, b"")


@pytest.mark.parametrize("end", [Operator.stop, Operator.kill])
def test_a_stopped_command_leaves_no_process(end):
    running = operator(["sleep", "60"])
    running.start()
    processes = [running._run._process, running._run._guard]
    end(running)
    assert all(each.returncode is not None for each in processes)


def test_a_command_that_has_ended_by_itself_leaves_no_process():
    running = operator(["true"])
    running.start()
    guard, command = running._run._guard, running._run._process
    command.wait()
    running.restart()
    assert guard.returncode is not None
    running.kill()


def test_the_process_group_of_a_command_that_has_ended_is_killed_once(monkeypatch):
    """Later the number may be that of another group."""
    killed = []
    monkeypatch.setattr(os, "killpg", lambda *args: killed.append(args))
    running = operator(["true"])
    running.start()
    guard, command = running._run._guard, running._run._process
    os.waitid(os.P_PID, command.pid, os.WEXITED | os.WNOWAIT)
    assert not running.alive()
    assert killed == [(command.pid, signal.SIGKILL)]
    assert guard.returncode is not None
    running.alive()
    running.kill()
    assert len(killed) == 1


def test_a_command_whose_guard_cannot_be_started_does_not_go_on(monkeypatch):
    started = []
    real = subprocess.Popen

    def popen(*args, **keywords):
        if started:
            raise OSError("no more processes")
        started.append(real(*args, **keywords))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", popen)
    running = operator(["sleep", "60"])
    with pytest.raises(OSError, match="no more processes"):
        running.start()
    try:
        assert started[0].returncode == -signal.SIGKILL
    finally:
        started[0].kill()
    running.kill()


@pytest.mark.parametrize("end", [Operator.stop, Operator.kill])
def test_what_a_command_has_started_ends_with_it(end, tmp_path):
    """The child holds the pipe open."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    running = operator(["sh", "-c", f"sleep 600 > {pipe} & wait"])
    running.start()
    reader = os.open(pipe, os.O_RDONLY)
    try:
        end(running)
        assert select.select([reader], [], [], 10)[0]
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


def test_a_coroutine_that_exits_says_so():
    async def leaves(kubeconfig):
        sys.exit("no configuration")

    run = _Task(leaves, "/no/kubeconfig", asyncio.new_event_loop)
    run._thread.join()
    assert run.error() == "SystemExit('no configuration')"


def ends(of):
    """Wait until an operator has ended by itself."""
    of._run._thread.join()


async def fails(kubeconfig):
    raise LookupError("no configuration")


def fails_on_a_thread(kubeconfig, stop):
    raise LookupError("no configuration")


@pytest.mark.parametrize("program", [fails, fails_on_a_thread])
def test_an_operator_that_has_failed_fails_its_with_statement(program):
    ended = r"^the operator has ended: LookupError\('no configuration'\)$"
    with pytest.raises(OperatorError, match=ended), operator(program) as running:
        ends(running)


def test_a_command_that_has_failed_fails_its_with_statement():
    ended = "^the operator has ended: exit code 3$"
    with pytest.raises(OperatorError, match=ended), operator(["sh", "-c", "exit 3"]) as running:
        running._run._process.wait()


def test_a_failed_assertion_says_that_the_operator_has_failed():
    with pytest.raises(AssertionError) as caught, operator(fails) as running:
        ends(running)
        raise AssertionError("nothing was written")
    assert caught.value.__notes__ == ["the operator has ended: LookupError('no configuration')"]


def test_an_operator_that_was_called_already_is_named():
    async def main(kubeconfig):
        pass

    with pytest.raises(TypeError, match="the function itself, which each start calls: main, not called"):
        operator(main("/kubeconfig"))


def test_an_operator_that_has_returned_is_no_error():
    async def returns(kubeconfig):
        pass

    with operator(returns) as running:
        ends(running)


def test_an_operator_that_does_not_stop_says_where_it_is(monkeypatch):
    monkeypatch.setattr(operators, "STOP_S", 0.05)
    released = threading.Event()

    def goes_on(kubeconfig, stop):
        released.wait()

    async def ignores(kubeconfig):
        while not released.is_set():
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                pass

    for program in (goes_on, ignores):
        where = rf"did not stop within 0.05 s: it is in {program.__name__} \(.*test_operators\.py:\d+\)$"
        with pytest.raises(OperatorError, match=where), operator(program):
            pass
    released.set()


def test_an_operator_that_does_not_stop_has_neither_access_nor_time(monkeypatch):
    """It goes on in this process, beside the tests that follow."""
    monkeypatch.setattr(operators, "STOP_S", 0.05)
    released, severed, loops = threading.Event(), [], []

    class Host(Users):
        def new_identity(self, user, groups, *, namespace):
            return Identity(lambda: ("/no/kubeconfig", "secret"), severed.append, lambda work: work())

        def new_event_loop(self):
            loops.append(FollowingLoop(time))
            return loops[0]

    async def goes_on(kubeconfig):
        while not released.is_set():
            await asyncio.sleep(0)

    time = Time()
    ended = threading.Event()
    with pytest.raises(OperatorError, match="did not stop"), Operator(Host(), stubborn(goes_on, ended)):
        pass
    assert severed == ["secret"]
    assert time.at_rest(None)
    released.set()
    assert ended.wait(5)


def test_a_command_finds_its_cluster_and_no_other(monkeypatch, tmp_path):
    """In a pod of a CI system, which has a cluster of its own."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    out = tmp_path / "out"
    running = operator(["sh", "-c", f"echo $KUBECONFIG,$KUBERNETES_SERVICE_HOST > {out}"])
    running.start()
    running._run._process.wait()
    running.kill()
    assert out.read_text() == "/no/kubeconfig,\n"

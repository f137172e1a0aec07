"""A sandbox on a thread: what a failed start leaves, and its errors."""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from kcm_cli.cli import kube_apiserver, kube_apiserver_options
from kcm_cli.cli.sandbox import _prepare
from kcm_cli.sandbox import run
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.run import SandboxOptions, SandboxServer
from kcm_cli.sandbox.views import PODS
from kcm_cli.testing import sandbox as hosted
from kcm_cli.testing.sandbox import HostOptions, Sandbox, SandboxError, Starter, UnhitFault


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary folders in this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Exclude the sandboxes of fixtures that live for the whole session."""
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


def threads() -> list[str]:
    alive = set(threading.enumerate()) - OTHERS
    return [thread.name for thread in alive if thread.name == "kcm sandbox"]


def nothing_is_left(folder: Path) -> bool:
    return not list(folder.iterdir()) and not threads()


class Controllers:
    """Stand in for the manager."""

    gives_ranges, causes = False, None

    def __init__(self, started: bool = True, error: Exception | None = None) -> None:
        self.started, self.end = asyncio.Event(), asyncio.Event()
        self._starts, self._error = started, error

    async def run(self, cluster: object, stop: asyncio.Event) -> int:
        if self._error is not None:
            raise self._error
        if self._starts:
            self.started.set()
        await (self.end if self._starts else stop).wait()
        return 0


def with_controllers(made: Controllers) -> Sandbox:
    class With(Sandbox):
        def _manager(self, server: SandboxServer) -> Any:
            return made

    return With(HostOptions(nodes=0))


def test_a_sandbox_that_was_never_started_has_nothing_to_stop(temporary: Path) -> None:
    Sandbox(HostOptions()).stop()
    assert nothing_is_left(temporary)


def test_it_ends_with_its_with_statement(temporary: Path) -> None:
    with Sandbox(HostOptions(controllers=False, nodes=0)) as sandbox:
        assert Path(sandbox.kubeconfig).exists()
        assert threads()
    assert nothing_is_left(temporary)
    sandbox.stop()


@pytest.mark.filterwarnings("error::kcm_cli.testing.UnhitFault")
def test_clusters_end_though_their_faults_have_hit_nothing(temporary: Path) -> None:
    started = Starter()
    for _ in range(2):
        started(HostOptions(controllers=False, nodes=0)).inject(Fault("refuse", user="nobody"))
    with pytest.raises(UnhitFault):
        started.stop()
    assert nothing_is_left(temporary)


def test_a_fault_that_has_hit_nothing_is_told_where_it_ends() -> None:
    nobody = Fault("refuse", user="nobody")
    with pytest.warns(UnhitFault) as told, Sandbox(HostOptions(controllers=False, nodes=0)) as sandbox:
        with sandbox.inject(nobody):
            pass
        sandbox.inject(nobody).remove()
        sandbox.inject(nobody)
        sandbox.reset(sandbox.snapshot())
        sandbox.inject(nobody)
    assert [warning.filename for warning in told] == [__file__] * 4


def test_what_waits_for_the_sandbox_is_refused_on_its_own_thread() -> None:
    with Sandbox(HostOptions(controllers=False, nodes=0)) as sandbox:

        async def wrong() -> object:
            return sandbox.list("nodes")

        with pytest.raises(SandboxError, match="its own thread"):
            sandbox.call(wrong())


def test_a_process_that_stops_no_sandbox_leaves_no_files(temporary: Path) -> None:
    """They have the administrator's credentials."""
    code = "from kcm_cli.testing import *; Sandbox(HostOptions(controllers=False, nodes=0)).start()"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert nothing_is_left(temporary)


def test_invalid_routes_are_refused() -> None:
    with Sandbox(HostOptions(controllers=False, nodes=0)) as sandbox:
        with pytest.raises(ValueError, match='"hook" does not name a Service'):
            sandbox.route("hook", 1)
        with pytest.raises(ValueError, match='"host" is no address'):
            sandbox.route("hook.default", "host")
        with pytest.raises(ValueError, match='"hook" does not name a Service'):
            sandbox.webhook_certificates("hook")
    with pytest.raises(SandboxError, match="not running"):
        sandbox.webhook_certificates()


def test_certificates_of_webhooks_name_their_services_and_this_machine() -> None:
    with Sandbox(HostOptions(controllers=False, nodes=0)) as sandbox:
        folder, other = sandbox.webhook_certificates("a.b", "c.d"), sandbox.webhook_certificates()
        assert sorted(file.name for file in folder.iterdir()) == ["ca.crt", "tls.crt", "tls.key"]
        certificate = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate((other / "ca.crt").read_bytes()))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(each.value) for each in names] == ["a.b.svc", "c.d.svc", "localhost", "127.0.0.1", "::1"]


def test_a_failed_start_has_a_reason_and_leaves_nothing(temporary: Path) -> None:
    sandbox = Sandbox(HostOptions(nodes=0, flags=("--x",)))
    with pytest.raises(SandboxError, match="unknown flag: --x"):
        sandbox.start()
    assert nothing_is_left(temporary)
    sandbox.stop()


def test_a_machine_on_which_nothing_can_listen_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(address: str, port: int) -> None:
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(run, "listening", refused)
    with pytest.raises(SandboxError, match="cannot listen on 127.0.0.1: Cannot assign requested address"):
        Sandbox(HostOptions(controllers=False, nodes=0)).start()
    assert nothing_is_left(temporary)


def test_a_start_that_takes_too_long_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(self: SandboxServer) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(SandboxServer, "serve", for_ever)
    monkeypatch.setattr(hosted, "START_S", 0.1)
    sandbox = Sandbox(HostOptions(controllers=False, nodes=0))
    with pytest.raises(SandboxError, match="within 0.1 s"):
        sandbox.start()
    assert nothing_is_left(temporary)


def test_controllers_that_end_too_soon_are_an_error_of_the_next_call(temporary: Path) -> None:
    made = Controllers()
    with with_controllers(made) as sandbox:
        sandbox.run(made.end.set)
        sandbox.wait(lambda: not threads())
        with pytest.raises(SandboxError, match="controllers have ended"):
            sandbox.make_namespace("a")
    assert nothing_is_left(temporary)


def test_it_has_not_started_before_the_controllers_run(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "START_S", 0.5)
    sandbox = with_controllers(Controllers(started=False))
    with pytest.raises(SandboxError, match="within 0.5 s"):
        sandbox.start()
    assert nothing_is_left(temporary)


def test_controllers_that_do_not_start_are_an_error_of_the_start(temporary: Path) -> None:
    with pytest.raises(SandboxError, match="no lease"):
        with_controllers(Controllers(error=ValueError("no lease"))).start()
    assert nothing_is_left(temporary)


def test_pods_are_disturbed_from_a_test() -> None:
    with Sandbox(HostOptions(controllers=False, nodes=1)) as sandbox:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}
        sandbox.fail_image("nginx:*", "denied")
        sandbox.apply({**pod, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}})
        sandbox.advance(5)
        with pytest.raises(LookupError, match="does not run"):
            sandbox.kill_container("default", "a")
        sandbox.restore_image("nginx:*")
        sandbox.advance(2)
        sandbox.kill_container("default", "a", reason="OOMKilled")
        sandbox.advance(2)
        sandbox.set_ready("default", "a", False)
        sandbox.advance(2)
        assert "0/1" in sandbox.report()
        sandbox.set_ready("default", "a", True)
        sandbox.advance(2)
        assert "1/1" in sandbox.report()


def test_what_happened_to_an_object_can_be_asked() -> None:
    web = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 1}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}
    spec |= {"template": {"metadata": {"labels": {"a": "b"}}, "spec": web}}
    with Sandbox(HostOptions(nodes=1)) as sandbox:
        head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        sandbox.apply({**head, "spec": spec})
        sandbox.advance(20)
        (pod,) = [one["metadata"]["name"] for one in sandbox.list("po", "default")]
        sandbox.apply({**head, "spec": {**spec, "replicas": 0}})
        sandbox.advance(20)
        story = sandbox.trace("po", pod).splitlines()
        assert "was deleted by replicaset-controller" in story[0], story
        assert any("patch Deployment default/web" in line for line in story[1:5]), story
        assert str(sandbox.now().year) in story[-2]
        assert "kubelet" in "\n".join(story)
        assert "Nothing" in sandbox.trace("pod", "never") or "nothing" in sandbox.trace("pod", "never")
        with pytest.raises(ValueError, match="no kind 'thing'"):
            sandbox.trace("thing", "x")


def test_without_controllers_nothing_is_recorded() -> None:
    with Sandbox(HostOptions(nodes=0, controllers=False)) as sandbox, pytest.raises(SandboxError, match="recorded"):
        sandbox.trace("pod", "web")


def test_without_a_folder_for_files_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    sandbox = Sandbox(HostOptions(nodes=0, controllers=False))
    with pytest.raises(SandboxError, match=r"no temporary folder can be made in .*/none/kcm-test-.*: .*\(TMPDIR names"):
        sandbox.start()
    sandbox.stop()
    server = SandboxServer(SandboxOptions(port=0))
    assert "no temporary folder can be made" in _prepare(server)
    assert "no temporary folder can be made" in kube_apiserver._prepare(server, kube_apiserver_options.read([]))
    asyncio.run(server.stop())


CONTROL_PLANE = [f"{name}-node-1" for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")]


def mirrored(sandbox: Sandbox) -> list[str]:
    """The control plane's pods that run."""
    pods = sandbox.list("pods", "kube-system", "tier=control-plane")
    return sorted(pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running")


def test_a_kubelet_makes_its_mirror_pods_again() -> None:
    flags = ("--controllers=pod-garbage-collector-controller",)
    with Sandbox(HostOptions(nodes=1, flags=flags, system_pods=True)) as sandbox:
        sandbox.advance(30)
        assert mirrored(sandbox) == CONTROL_PLANE
        first = sandbox.get("pod", CONTROL_PLANE[0], "kube-system")
        sandbox.call(sandbox._admin.delete(PODS, "kube-system", CONTROL_PLANE[0]))
        sandbox.advance(60)
        assert mirrored(sandbox) == CONTROL_PLANE
        assert sandbox.get("pod", CONTROL_PLANE[0], "kube-system")["metadata"]["uid"] != first["metadata"]["uid"]
        sandbox.remove_node("node-1")
        sandbox.advance(300)
        assert mirrored(sandbox) == []
        sandbox.add_node("node-1")
        sandbox.advance(60)
        assert mirrored(sandbox) == CONTROL_PLANE

"""Each half beside the original programs, where KUBEBUILDER_ASSETS names a folder with them.

With kube-apiserver and etcd: the recorded behaviour of kcm on that server, and whether a sandbox answers as it does.
With kube-controller-manager: the recorded behaviour of that manager on a sandbox.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Sandbox
from tests.differential.compare import MODES
from tests.differential.run import compare, report
from tests.kit.places import GOLDEN
from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until
from tests.kit.recorded import GOLDEN_FLAGS, judge, known, run, with_patience
from tests.kit.servers import TOKEN, kubeconfig, real_server, sandbox_server

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
SAMPLE, AT_LEAST = 0.1, 0.98
"""Of the variations of every kind of object, so many are tried, and answered alike."""
LATE_S = 0.02
"""How much later a sandbox answers that recorder: about as late as an etcd on a disk makes an API server."""
pytestmark = pytest.mark.e2e


def needs(program: str) -> pytest.MarkDecorator:
    """Skips a test where the folder lacks the program."""
    there = bool(ASSETS) and (Path(ASSETS) / program).exists()
    return pytest.mark.skipif(not there, reason=f"KUBEBUILDER_ASSETS names no folder with {program}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A real API server: its address, and the folder with its keys."""
    folder = tmp_path_factory.mktemp("real")
    with real_server(Path(ASSETS), folder) as url:
        (folder / "kubeconfig").write_text(kubeconfig(url))
        yield url, folder


@needs("kube-apiserver")
@pytest.mark.parametrize("mode", MODES)
def test_a_sandbox_responds_as_kube_apiserver(server: tuple[str, Path], tmp_path: Path, mode: str) -> None:
    with sandbox_server(tmp_path) as ours:
        tallies = asyncio.run(compare(server[0], ours, mode, ("*",), SAMPLE))
    asked, found = sum(one.asked for one in tallies), sum(len(one.found) for one in tallies)
    assert 1 - found / asked > AT_LEAST, report(tallies)


@needs("kube-apiserver")
def test_controllers_behave_as_recorded(server: tuple[str, Path]) -> None:
    url, folder = server
    files = ("root-ca-file=ca.crt", "service-account-private-key-file=sa.key")
    files += ("cluster-signing-cert-file=ca.crt", "cluster-signing-key-file=ca.key")
    flags = [f"--{flag}={folder}/{name}" for flag, name in (pair.split("=") for pair in files)]
    command = [*KCM, f"--kubeconfig={folder}/kubeconfig", "--secure-port=0"]
    with Processes() as processes:
        processes.start(*command, *GOLDEN_FLAGS, *flags, "--use-service-account-credentials", log=folder / "kcm.log")
        passed, failed, text = with_patience(url, TOKEN, 8)
    judge(passed, failed, known("golden"), text)
    assert '" cannot ' not in (folder / "kcm.log").read_text()


@needs("kube-apiserver")
def test_the_api_server_chooses_the_older_of_two_candidates(tmp_path: Path) -> None:
    gate = "--feature-gates=CoordinatedLeaderElection=true"
    served = "--runtime-config=coordination.k8s.io/v1beta1=true"
    with real_server(Path(ASSETS), tmp_path, gate, served) as url, Processes() as processes:
        (tmp_path / "kubeconfig").write_text(kubeconfig(url))
        words = [*KCM, f"--kubeconfig={tmp_path}/kubeconfig", gate, "--controllers=ttl-controller"]

        def leads(port: int) -> bool:
            return "ttl-controller" in ask(f"https://127.0.0.1:{port}/healthz?verbose").text

        newer, older = free_port(), free_port()
        first = processes.start(*words, f"--secure-port={newer}", log=tmp_path / "newer")
        until(lambda: leads(newer))
        processes.start(*words, f"--secure-port={older}", "--emulated-version=1.35", log=tmp_path / "older")
        until(lambda: leads(older))
        assert first.wait(END_S) == 1


@needs("kube-controller-manager")
def test_kube_controller_manager_behaves_as_recorded_on_a_sandbox(
    tmp_path: Path, start_sandbox: Callable[..., Sandbox]
) -> None:
    """Writes are answered as late as where it was recorded. Its caches are behind those that follow at once, and then
    it makes a pod too many or deletes a Job twice."""
    data, late = tmp_path / "data", tmp_path / "late.yaml"
    late.write_text(f'[{{fault: delay, userAgent: "Python*", delaySeconds: {LATE_S}}}]')
    sandbox = start_sandbox("--nodes", "0", "--no-manager", "--data-dir", str(data), "--faults", str(late))
    config, keys = str(sandbox.kubeconfig), data / "pki"
    flags = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
    flags += [f"--root-ca-file={keys}/ca.crt", f"--service-account-private-key-file={keys}/sa.key"]
    flags += [f"--cluster-signing-cert-file={keys}/ca.crt", f"--cluster-signing-key-file={keys}/ca.key"]
    command = [f"{ASSETS}/kube-controller-manager", *flags, "--secure-port=0", *GOLDEN_FLAGS]
    with Processes() as processes:
        processes.start(*command, log=tmp_path / "original.log")
        _, failed, text = run(GOLDEN, sandbox.url, sandbox.token, "--jobs", "8", "--patience", "2")
    assert not failed, text

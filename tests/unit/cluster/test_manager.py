"""The manager of a sandbox: its port, and how its controllers reach the API server."""

import asyncio
import base64
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm_cli.cluster import manager as sandbox_manager
from kcm_cli.cluster.manager import SandboxManager
from kcm_cli.cluster.sandbox import sandbox_cluster
from kcm_cli.component.metrics import Registry, RestClientMetrics
from kcm_cli.manager.config import ConfigError
from kcm_cli.manager.connections import connect
from kcm_cli.rest.session import Session
from kcm_cli.sandbox.run import SandboxOptions, SandboxServer
from kcm_cli.sandbox.transport import InProcessTransport

pytestmark = pytest.mark.real_time


@pytest.fixture
def usual_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port in place of 10257, which others may have."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    monkeypatch.setattr(sandbox_manager, "_PORT", port)
    return port


@pytest.fixture
def sandbox(usual_port: int) -> Iterator[SandboxServer]:
    made = SandboxServer(SandboxOptions(port=0))
    made.prepare()
    yield made
    asyncio.run(made.stop())


def started(manager: SandboxManager, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The config and place with which a manager would run."""
    found: list[Any] = []

    async def manage(config: object, stop: object, **more: Any) -> int:
        found.extend((config, more["place"]))
        return 0

    monkeypatch.setattr(sandbox_manager, "manage", manage)
    assert asyncio.run(manager.run(sandbox_cluster(manager._server, manager), asyncio.Event())) == 0
    return found[0], found[1]


def test_one_of_two_concurrent_sandboxes_gets_the_default_port(
    sandbox: SandboxServer, usual_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    managers = [SandboxManager(sandbox, ()), SandboxManager(sandbox, ())]
    (one, place), (other, elsewhere) = (started(manager, monkeypatch) for manager in managers)
    with place.listener:
        assert (one.serving.port, other.serving.port) == (usual_port, 0)
        assert place.listener.getsockname()[1] == usual_port
        assert elsewhere.listener is None


def test_a_requested_port_is_bound_by_the_manager(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    config, place = started(SandboxManager(sandbox, ("--secure-port=0",)), monkeypatch)
    assert (config.serving.port, place.listener) == (0, None)


@pytest.mark.parametrize("flag", ["--no-such-flag", "--bind-address=nowhere"])
def test_invalid_flags_release_the_port(sandbox: SandboxServer, usual_port: int, flag: str) -> None:
    with pytest.raises(ConfigError):
        SandboxManager(sandbox, (flag,))
    socket.create_server(("127.0.0.1", usual_port)).close()


@pytest.mark.parametrize(
    ("flags", "lease_s", "renew_s"),
    [
        ((), 30, 25),
        (("--leader-elect-lease-duration=20s",), 20, 10),
        (("--leader-elect-renew-deadline=12s",), 15, 12),
    ],
)
def test_lease_flags_override_the_sandboxs_defaults(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], lease_s: float, renew_s: float
) -> None:
    config, _ = started(SandboxManager(sandbox, ("--secure-port=0", *flags)), monkeypatch)
    election = config.component.generic.leader_election
    assert (election.lease_duration_s, election.renew_deadline_s) == (lease_s, renew_s)


def transports(config: Any, place: Any, sandbox: SandboxServer) -> set[type]:
    async def made() -> set[type]:
        connections = await connect(config, sandbox.clock, RestClientMetrics(Registry()), None, place.dial)
        try:
            return set(map(type, connections.transports))
        finally:
            await connections.close()

    return asyncio.run(made())


async def test_in_process_the_manager_has_the_user_of_its_certificate(sandbox: SandboxServer) -> None:
    files = sandbox.manager_files()
    doc = yaml.safe_load(files.kubeconfig.read_text())
    pem = base64.b64decode(doc["users"][0]["user"]["client-certificate-data"]).decode()
    await sandbox.serve()
    assert sandbox.api.authenticator.authenticate({}, ssl.PEM_cert_to_DER_cert(pem)) == files.user


def test_controllers_use_in_process_requests_without_another_kubeconfig(
    sandbox: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write_user_kubeconfig(tmp_path / "other", "somebody", "secret")
    own = started(SandboxManager(sandbox, ("--secure-port=0",)), monkeypatch)
    given = started(SandboxManager(sandbox, ("--secure-port=0", f"--kubeconfig={tmp_path / 'other'}")), monkeypatch)
    sandbox.api = None  # type: ignore[assignment]  # it is asked nothing
    assert transports(*own, sandbox) == {InProcessTransport}
    assert transports(*given, sandbox) == {Session}

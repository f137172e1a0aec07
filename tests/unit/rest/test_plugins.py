"""Exec credential plugins: real processes that a kubeconfig names."""

import asyncio
import base64
import errno
import json
import os
import signal
import sys
import textwrap
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest import access, plugins
from kcm_cli.rest.access import Access
from kcm_cli.rest.errors import AccessError, CredentialsError, KubeconfigError, TLSFilesError
from tests.trust.cases import LEAF, sign

pytestmark = pytest.mark.real_time

V1 = "client.authentication.k8s.io/v1"
PLUGIN = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[0]).parent
number = len(list(folder.glob("run-*"))) + 1
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
(folder / f"run-{number}").write_text(json.dumps({"info": info, "env": dict(os.environ), "args": sys.argv[1:]}))
print("words for people", file=sys.stderr)
status = json.loads((folder / "status").read_text().replace("NUMBER", str(number)))
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


class Kit:
    """A kubeconfig whose plugin is ``script``, which prints the status that is kept beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[tuple[int, str]] = []
        self.ends: list[float | None] = []
        self.ages: list[float] = []
        self.script(PLUGIN)
        self.status({"token": "token-NUMBER"})
        self.configure()

    def script(self, code: str) -> None:
        path = self.folder / "plugin"
        path.write_text(f"#!{sys.executable}\n{textwrap.dedent(code)}")
        path.chmod(0o755)

    def status(self, status: object) -> None:
        (self.folder / "status").write_text(json.dumps(status))

    def configure(self, cluster: dict[str, object] | None = None, **plugin: object) -> None:
        chosen = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **plugin}
        document = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": {"exec": chosen}}],
        }
        (self.folder / "kubeconfig").write_text(yaml.safe_dump(document))

    async def load(self) -> Access:
        path = str(self.folder / "kubeconfig")
        return await access.load(path=path, master="", clock=LoopClock(), environ={"HOME": "/h"}, metrics=self)

    def runs(self) -> list[dict[str, object]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("run-*"))]

    # PluginMetrics

    def called(self, code: int, status: str) -> None:
        self.calls.append((code, status))

    def shows(self, plugin: object, ends_s: float | None) -> None:
        self.ends.append(ends_s)

    def rotated(self, age_s: float) -> None:
        self.ages.append(age_s)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


def in_s(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pair() -> dict[str, str]:
    signed = sign(LEAF)
    return {"clientCertificateData": signed.pem.decode(), "clientKeyData": signed.secret.decode()}


async def test_a_plugin_runs_once_until_its_token_is_rejected(kit: Kit, capfd: pytest.CaptureFixture[str]) -> None:
    credentials = (await kit.load()).credentials
    assert credentials.current() is None
    first = await credentials.renew()
    assert first.header == "Bearer token-1"
    assert await credentials.renew() is first
    credentials.reject(first)
    assert (await credentials.renew()).header == "Bearer token-2"
    assert capfd.readouterr().err == "words for people\n" * 2
    assert kit.calls == [(0, "no_error")] * 2


@pytest.mark.parametrize("which", [1, 2], ids=["of the run", "of its time limit"])
async def test_a_plugin_runs_again_after_a_thread_could_not_start(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    start, started = threading.Thread.start, 0

    def limited(thread: threading.Thread) -> None:
        nonlocal started
        started += 1
        if started == which:
            raise RuntimeError("can't start new thread")
        start(thread)

    credentials = (await kit.load()).credentials
    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(CredentialsError, match="can't start new thread"):
        await credentials.renew()
    assert (await asyncio.wait_for(credentials.renew(), 60)).header == "Bearer token-1"


async def test_a_plugin_gets_its_environment_and_arguments(kit: Kit) -> None:
    kit.configure(args=["a", "--b"], env=[{"name": "PREFIX", "value": "x"}, {"name": "HOME", "value": "mine"}])
    await renewed(kit)
    (run,) = kit.runs()
    assert run["args"] == ["a", "--b"]
    assert run["info"] == {"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}}
    assert {"PREFIX": "x", "HOME": "mine"}.items() <= run["env"].items()  # type: ignore[attr-defined]


async def test_a_variable_ends_its_name_at_the_first_equals_sign(kit: Kit) -> None:
    """As for client-go, which hands over name, "=" and value as one word."""
    kit.configure(env=[{"name": "A=B", "value": "x"}, {"name": "C", "value": "y=z"}, {"name": "=D", "value": "w"}])
    await renewed(kit)
    (run,) = kit.runs()
    assert {"A": "B=x", "C": "y=z", "": "D=w"}.items() <= run["env"].items()  # type: ignore[attr-defined]


async def test_a_plugin_gets_cluster_info_if_requested(kit: Kit) -> None:
    bundle = sign(LEAF).pem
    (kit.folder / "ca.pem").write_bytes(bundle)
    config = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": ["a"]}}
    kit.configure(
        {
            "certificate-authority": "ca.pem",
            "tls-server-name": "api",
            "proxy-url": "http://p:1",
            "extensions": [{"name": "other", "extension": 1}, config],
        },
        provideClusterInfo=True,
        apiVersion="client.authentication.k8s.io/v1beta1",
    )
    await renewed(kit)
    info = kit.runs()[0]["info"]
    assert info["apiVersion"] == "client.authentication.k8s.io/v1beta1"  # type: ignore[index]
    assert info["spec"]["cluster"] == {  # type: ignore[index]
        "server": "https://10.0.0.1:6443",
        "tls-server-name": "api",
        "certificate-authority-data": base64.b64encode(bundle).decode(),
        "proxy-url": "http://p:1",
        "config": {"audience": ["a"]},
    }


async def test_an_unreadable_ca_for_cluster_info_is_one_error(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, read = kit.folder / "ca.pem", Path.read_bytes

    def refused(path: Path) -> bytes:
        if path == ca:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(path)

    ca.write_bytes(sign(LEAF).pem)
    kit.configure({"certificate-authority": "ca.pem"}, provideClusterInfo=True)
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(TLSFilesError, match=r"ca\.pem: Permission denied"):
        await renewed(kit)


@pytest.mark.parametrize(("ends_s", "left_s"), [(3600, 3570), (100, 90), (-100, None)])
async def test_a_plugin_runs_again_before_its_credentials_expire(kit: Kit, ends_s: float, left_s: float | None) -> None:
    kit.status({"token": "NUMBER", "expirationTimestamp": in_s(ends_s)})
    credentials = (await kit.load()).credentials
    credential = await credentials.renew()
    if left_s is None:
        assert credentials.current() is None
        assert (await credentials.renew()).header == "Bearer 2"
    else:
        assert credential.lifetime_s is not None
        assert abs(credential.lifetime_s - left_s) < 10


async def test_unchanged_credentials_are_used_until_they_expire(kit: Kit) -> None:
    kit.status({"token": "same", "expirationTimestamp": in_s(1000)})
    plugin = (await kit.load()).credentials
    first = await plugin.renew()
    plugin.reject(first)
    again = await plugin.renew()
    assert again == first
    assert again.lifetime_s is not None and first.lifetime_s is not None
    assert again.lifetime_s > first.lifetime_s


async def renewed(kit: Kit) -> str:
    return (await (await kit.load()).credentials.renew()).header


def test_a_plugin_runs_once_for_all_loops(kit: Kit) -> None:
    """The controllers, the election and the server each load the kubeconfig on a loop of their own."""
    go, got, kept = threading.Barrier(4), [], []

    async def one() -> None:
        loaded = await kit.load()
        kept.append(loaded)
        await asyncio.to_thread(go.wait)
        got.append((await loaded.credentials.renew()).header)
        await asyncio.to_thread(go.wait)

    threads = [threading.Thread(target=lambda: asyncio.run(one())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == ["Bearer token-1"] * 4


async def test_a_client_certificate_is_used_and_has_metrics(kit: Kit) -> None:
    first, second = pair(), pair()
    kit.status(first)
    youngest = (datetime.now(UTC) - LEAF.starts).total_seconds()
    loaded = await kit.load()
    assert loaded.certificate() is None
    credential = await loaded.credentials.renew()
    assert credential.header == ""
    assert loaded.certificate() == (first["clientCertificateData"].encode(), first["clientKeyData"].encode())
    kit.status(second)
    loaded.credentials.reject(credential)
    assert await loaded.credentials.renew() != credential
    assert loaded.certificate() == (second["clientCertificateData"].encode(), second["clientKeyData"].encode())
    assert [int(end or 0) for end in kit.ends] == [int(LEAF.ends.timestamp())] * 2
    oldest = (datetime.now(UTC) - LEAF.starts).total_seconds()
    assert [youngest - 1 <= age <= oldest + 1 for age in kit.ages] == [True]


PRINTED = {
    "nothing": ("", "decoding stdout"),
    "words": ("print('no document')", "decoding stdout"),
    "bytes": ("import sys; sys.stdout.buffer.write(b'\\xff\\x00')", "decoding stdout"),
    "null": ("print('null')", "decoding stdout"),
    "aliases": ("print('a: &a [x]\\nb: &b [*a, *a]\\nc: [*b, *b]')", "it has aliases"),
    "another version": (
        'print(\'{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}\')',
        f"configured to use API version {V1}, plugin returned version client.authentication.k8s.io/v1beta1",
    ),
    "failure": ("import sys; sys.exit(7)", "failed with exit code 7"),
    "a crash": ("import os; os.kill(os.getpid(), 11)", "failed with exit code -1"),
}


@pytest.mark.parametrize(("code", "text"), PRINTED.values(), ids=PRINTED.keys())
async def test_invalid_output_is_one_clear_line(kit: Kit, code: str, text: str) -> None:
    kit.script(code)
    with pytest.raises(CredentialsError) as raised:
        await renewed(kit)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


STATUSES = {
    "no status": (None, "didn't return a status field"),
    "empty": ({}, "didn't return a token or cert/key pair"),
    "nulls": ({"token": None, "expirationTimestamp": None}, "didn't return a token or cert/key pair"),
    "certificate alone": ({"clientCertificateData": "x"}, "only certificate or key, not both"),
    "no certificate": ({"clientCertificateData": "x", "clientKeyData": "y"}, "failed parsing client key/certificate"),
    "no time": ({"token": "x", "expirationTimestamp": "tomorrow"}, "decoding stdout"),
    "a number": ({"token": 5}, "decoding stdout"),
}


@pytest.mark.parametrize(("status", "text"), STATUSES.values(), ids=STATUSES.keys())
async def test_an_invalid_status_is_one_clear_line(kit: Kit, status: object, text: str) -> None:
    kit.status(status)
    with pytest.raises(CredentialsError, match=text):
        await renewed(kit)


async def test_yaml_is_accepted(kit: Kit) -> None:
    kit.script(f"print('apiVersion: {V1}\\nkind: ExecCredential\\nstatus:\\n  token: 123')")
    assert await renewed(kit) == "Bearer 123"


async def test_a_missing_command_is_named_with_its_hint(kit: Kit) -> None:
    kit.configure(command="no-such-plugin", installHint="\x1b[31mInstall\x1b[0m it\nfirst")
    with pytest.raises(CredentialsError) as raised:
        await renewed(kit)
    assert str(raised.value) == "exec: executable no-such-plugin not found: Install it first"
    assert kit.calls == [(1, "plugin_not_found_error")]


async def test_a_command_without_a_slash_is_searched_in_the_path_only(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.configure(command="plugin")
    monkeypatch.chdir(kit.folder)
    with pytest.raises(CredentialsError, match="executable plugin not found"):
        await renewed(kit)


async def test_input_is_closed_unless_it_is_a_terminal(kit: Kit) -> None:
    kit.script(f"import sys; print({PLUGIN!r} and sys.stdin.read())")
    kit.configure(interactiveMode="IfAvailable")
    with pytest.raises(CredentialsError, match="decoding stdout"):
        await renewed(kit)
    kit.configure(interactiveMode="Always")
    with pytest.raises(CredentialsError, match="standard input is not a terminal"):
        await renewed(kit)


@pytest.fixture(params=["with waitid", "without waitid"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has no waitid before Python 3.13."""
    if request.param == "without waitid":
        monkeypatch.delattr(os, "waitid")


@pytest.mark.usefixtures("system")
async def test_a_plugin_that_ends_after_its_output(kit: Kit) -> None:
    kit.script(f"{PLUGIN}\nimport time; sys.stdout.flush(); os.close(1); time.sleep(0.3); os._exit(0)")
    assert await renewed(kit) == "Bearer token-1"


@pytest.mark.usefixtures("system")
async def test_a_hanging_plugin_is_killed_with_its_children(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "TIMEOUT_S", 0.5)
    kit.script("import subprocess; subprocess.run(['sleep', '1000'])")
    with pytest.raises(CredentialsError, match="was not done within"):
        await renewed(kit)


@pytest.mark.parametrize("session", [False, True], ids=["of its group", "of a session that it opened"])
async def test_a_child_that_holds_the_output_is_not_waited_for(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, session: bool
) -> None:
    monkeypatch.setattr(plugins, "TIMEOUT_S", 0.5)
    pid = kit.folder / "pid"  # by a shell: on a busy machine Python may not have started when the time is over
    (kit.folder / "plugin").write_text(f"#!/bin/sh\n{'setsid ' if session else ''}sleep 1000 &\necho $! > '{pid}'\n")
    with pytest.raises(CredentialsError, match="was not done within"):
        await asyncio.wait_for(renewed(kit), 60)
    with suppress(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_a_plugin_can_take_longer_than_a_request(kit: Kit) -> None:
    """Requests of the leader election have less time than a plugin may take."""
    kit.script(f"import time; time.sleep(1.5)\n{PLUGIN}")
    credentials, header = (await kit.load()).credentials, ""
    for _ in range(30):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.4):
                header = (await credentials.renew()).header
                break
    assert header == "Bearer token-1"
    assert len(kit.runs()) == 1


async def test_a_plugin_with_endless_output_is_killed(kit: Kit) -> None:
    kit.script("while True: print('x' * 65536)")
    with pytest.raises(CredentialsError, match="failed with exit code"):
        await renewed(kit)


async def test_shutdown_does_not_wait_for_a_plugin(kit: Kit) -> None:
    kit.script("import pathlib, sys, time; pathlib.Path(sys.argv[0] + '.on').touch(); time.sleep(1000)")
    task = asyncio.create_task(renewed(kit))
    while not (kit.folder / "plugin.on").exists():
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task], timeout=20)
    assert task.cancelled()


FAULTS = {
    "version": ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, 'invalid apiVersion "client.auth'),
    "mode": ({"interactiveMode": "Sometimes"}, 'invalid interactiveMode "Sometimes"'),
    "no mode": ({"interactiveMode": ""}, "needs interactiveMode"),
    "nameless variable": ({"env": [{"value": "x"}]}, "need names"),
}


@pytest.mark.parametrize(("plugin", "text"), FAULTS.values(), ids=FAULTS.keys())
async def test_invalid_settings_are_refused_at_once(kit: Kit, plugin: dict[str, object], text: str) -> None:
    kit.configure(**plugin)
    with pytest.raises(KubeconfigError, match=text):
        await kit.load()


async def test_auth_providers_are_refused_as_by_the_go_binary(kit: Kit) -> None:
    path = kit.folder / "kubeconfig"
    document = yaml.safe_load(path.read_text())
    document["users"][0]["user"] = {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}}
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(AccessError, match='no auth provider found for name "oidc"'):
        await kit.load()


async def test_other_credentials_of_the_user_override_the_plugin(kit: Kit) -> None:
    path = kit.folder / "kubeconfig"
    document = yaml.safe_load(path.read_text())
    document["users"][0]["user"]["token"] = "mine"
    path.write_text(yaml.safe_dump(document))
    assert await renewed(kit) == "Bearer mine"
    assert kit.runs() == []

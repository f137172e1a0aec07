"""Exec credential plugins: a command prints a token, a client certificate, or both.

A plugin runs when credentials are needed for the first time, shortly before they expire, and when the server rejects
them (401). There is one run at a time, whose result all waiting requests share. It continues when they time out: a
request of the leader election has less time than some plugins need. The plugin gets the environment, its own variables
and KUBERNETES_EXEC_INFO; its stderr is this process's. A plugin is killed after TIMEOUT_S, and when the process ends.
Certificates and keys are on disk only while OpenSSL reads them.

The auth providers (oidc, gcp, azure) are not in kube-controller-manager, and not here either.

upstream: staging/src/k8s.io/client-go/plugin/pkg/client/auth/exec, tools/clientcmd/{loader,client_config}.go
"""

import asyncio
import atexit
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import yaml
from cryptography import x509

from kcm_cli.component import key_pairs, threads
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.credentials import Credential, Source, bearer
from kcm_cli.rest.errors import CredentialsError, KubeconfigError, TLSFilesError, one_line
from kcm_cli.rest.kubeconfig import Chosen, Exec
from kcm_cli.rest.metrics import PluginMetrics
from kcm_cli.rest.tls import TLSFiles, client_context

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INFO = "KUBERNETES_EXEC_INFO"
TIMEOUT_S = 60.0
EARLY_S = 30.0
"""How long before their end credentials are renewed, a tenth of their lifetime at most."""
_MOST_BYTES = 4 * 1024 * 1024
_CHUNK = 64 * 1024
_POLL_MS = 100
_NOT_TEXT = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


class _Status(View, frozen=True, gc=False):
    expiration_timestamp: str | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class ExecCredential(View, frozen=True, gc=False):
    """client.authentication.k8s.io ExecCredential, as plugins print it."""

    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class _Given:
    """The result of a run. ``ends``: None for credentials that do not expire."""

    header: str
    certificate: tuple[bytes, bytes] | None = field(repr=False)
    ends: datetime | None

    def usable(self, now: datetime) -> bool:
        return self.ends is None or now <= self.ends


class Plugin:
    """One plugin for one cluster. Raises KubeconfigError for settings that can never work."""

    def __init__(
        self, chosen: Chosen, cluster: codec.Doc, clock: Clock, metrics: PluginMetrics, environ: Mapping[str, str]
    ) -> None:
        """``cluster``: what the plugin may know of it."""
        spec = self._spec = chosen.user.exec or Exec()
        if spec.api_version not in API_VERSIONS:
            raise KubeconfigError(f'{chosen}: exec plugin: invalid apiVersion "{spec.api_version}"')
        self._command = str(chosen.user_folder / spec.command) if os.sep in spec.command else spec.command
        self._cluster = cluster
        self._environ = environ
        self._clock = clock
        self._metrics = metrics
        self._lock = threading.Lock()
        self._given: _Given | None = None
        self._running: Future[_Given] | None = None

    def source(self) -> Source:
        """Asks for one credential after the other, for one user."""
        last: Credential | None = None

        async def other() -> Credential:
            nonlocal last
            last = await self.credential(last)
            return last

        return other

    async def credential(self, last: Credential | None) -> Credential:
        """Credentials other than the rejected or expired ``last``. Raises CredentialsError."""
        given = await asyncio.wrap_future(self._other(last))
        return Credential(given.header, self._lifetime_s(given, last), given.certificate)

    def _lifetime_s(self, given: _Given, last: Credential | None) -> float | None:
        if given.ends is None:
            return None
        left_s = (given.ends - self._clock.now()).total_seconds()
        # A plugin that keeps its credentials to their end must not be asked for others all the time.
        again = last is not None and (given.header, given.certificate) == (last.header, last.certificate)
        return left_s if again else left_s - min(EARLY_S, left_s / 10)

    def _other(self, last: Credential | None) -> "Future[_Given]":
        """The result of another loop, of the current run or of a new run. It cannot be cancelled."""
        with self._lock:
            if self._running is not None:
                return self._running
            found: Future[_Given] = Future()
            found.set_running_or_notify_cancel()
            known = self._given
            if known is not None and known.usable(self._clock.now()):
                shared = last is None or (known.header, known.certificate) != (last.header, last.certificate)
                if shared:
                    found.set_result(known)
                    return found
            try:
                threads.start(threading.Thread(target=self._renew, args=(found,), name="exec plugin", daemon=True))
            except OSError as error:
                raise CredentialsError(f"exec: {self._command}: {error.strerror}") from error
            self._running = found
            return found

    def _renew(self, found: "Future[_Given]") -> None:
        """On a thread that the end of the process does not wait for."""
        try:
            given = self._read(self._run(_Run()))
            self._measure(given, self._given)
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is awaited
            with self._lock:
                self._running = None
            found.set_exception(error)
            return
        with self._lock:
            self._given, self._running = given, None
        found.set_result(given)

    def _measure(self, given: _Given, before: _Given | None) -> None:
        certificate = _certificate(given)
        old = _certificate(before) if before is not None and before.certificate != given.certificate else None
        if old is not None:
            self._metrics.rotated((self._clock.now() - old.not_valid_before_utc).total_seconds())
        self._metrics.shows(self, None if certificate is None else certificate.not_valid_after_utc.timestamp())

    def _run(self, run: "_Run") -> bytes:
        interactive = self._interactive()
        spec: codec.Doc = {"cluster": self._cluster} if self._spec.provide_cluster_info else {}
        info = {"kind": "ExecCredential", "apiVersion": self._spec.api_version}
        words = (f"{variable['name']}={variable.get('value', '')}" for variable in self._spec.env or ())
        own = {name: value for name, _, value in (word.partition("=") for word in words)}
        env = {
            **self._environ,
            **own,
            INFO: codec.encode({**info, "spec": {**spec, "interactive": interactive}}).decode(),
        }
        command = shutil.which(self._command, path=self._environ.get("PATH", os.defpath))
        if command is None or not os.path.isabs(command):
            self._metrics.called(1, "plugin_not_found_error")
            hint = _NOT_TEXT.sub("", self._spec.install_hint)
            text = f"exec: executable {self._command} not found"
            raise CredentialsError(f"{text}: {' '.join(hint.split())}" if hint else text)
        try:
            code, out = run.run([command, *(self._spec.args or ())], env, interactive=interactive)
        except OSError as error:
            self._metrics.called(1, "plugin_not_found_error")
            raise CredentialsError(f"exec: {self._command}: {error.strerror}") from error
        self._metrics.called(code, "plugin_execution_error" if code else "no_error")
        if run.late:
            raise CredentialsError(f"exec: executable {self._command} was not done within {TIMEOUT_S:.0f}s")
        if code:
            raise CredentialsError(f"exec: executable {self._command} failed with exit code {code}")
        return out

    def _interactive(self) -> bool:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if self._spec.interactive_mode == "Always" and not terminal:
            raise CredentialsError("exec plugin cannot support interactive mode: standard input is not a terminal")
        return terminal and self._spec.interactive_mode != "Never"

    def _read(self, out: bytes) -> _Given:
        try:
            credential = _decode(out)
            status = credential.status
            ends = parse_time(status.expiration_timestamp) if status and status.expiration_timestamp else None
        except (codec.DecodeError, FormatError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise CredentialsError(f"exec plugin: decoding stdout: {one_line(error)}") from error
        if credential.api_version != self._spec.api_version or credential.kind != "ExecCredential":
            raise CredentialsError(
                f"exec plugin is configured to use API version {self._spec.api_version}, plugin returned version "
                f"{credential.api_version or '(none)'} {credential.kind or ''}".rstrip()
            )
        if status is None:
            raise CredentialsError("exec plugin didn't return a status field")
        token, cert, key = status.token or "", status.client_certificate_data or "", status.client_key_data or ""
        if not token and not cert and not key:
            raise CredentialsError("exec plugin didn't return a token or cert/key pair")
        if bool(cert) != bool(key):
            raise CredentialsError("exec plugin returned only certificate or key, not both")
        return _Given(bearer(token) if token else "", _pair(cert, key), ends)


class _Run:
    """One process, which may be killed from another thread."""

    def __init__(self) -> None:
        self.late = False
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = threading.Event()
        self._group = False

    def run(self, command: list[str], env: Mapping[str, str], *, interactive: bool) -> tuple[int, bytes]:
        """The exit code and what was printed. Raises OSError."""
        stdin = None if interactive else subprocess.DEVNULL
        self._group = not interactive  # the terminal belongs to our own group
        timer = threading.Timer(TIMEOUT_S, self._too_late)
        timer.daemon = True
        threads.start(timer)
        atexit.register(self.kill)
        try:
            process = subprocess.Popen(
                command, env=env, stdin=stdin, stdout=subprocess.PIPE, start_new_session=self._group
            )
            self._process = process
            assert process.stdout is not None
            with process.stdout:
                out = self._printed(process.stdout.fileno())
            self._wait(process)
        finally:
            atexit.unregister(self.kill)
            timer.cancel()
            with self._guard:
                self._process = None
        code = process.wait()
        return (code if code >= 0 else -1), out

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for its end. Its id stays its own until ``kill`` is over."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            return
        pause = threading.Event()
        while not self._over(process):  # on macOS before Python 3.13
            pause.wait(_POLL_MS / 1000)

    def _over(self, process: subprocess.Popen[bytes]) -> bool:
        with self._guard:
            if process.poll() is None:
                return False
            self._process = None
            return True

    def kill(self) -> None:
        """Kill the process and its children. Other processes that hold its output are not waited for."""
        self._killed.set()
        with self._guard:
            if self._process is None:
                return
            if self._group:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _printed(self, output: int) -> bytes:
        """Its output, read until all writers have closed it or it is killed."""
        out, ready = bytearray(), select.poll()
        ready.register(output, select.POLLIN)
        while not self._killed.is_set():
            if not ready.poll(_POLL_MS):
                continue
            data = os.read(output, _CHUNK)
            if not data:
                break
            out += data
            if len(out) > _MOST_BYTES:
                self.kill()
        return bytes(out)

    def _too_late(self) -> None:
        self.late = True
        self.kill()


_known: "WeakValueDictionary[object, Plugin]" = WeakValueDictionary()
_known_guard = threading.Lock()


def plugin(
    chosen: Chosen, cluster: codec.Doc, clock: Clock, metrics: PluginMetrics, environ: Mapping[str, str] = os.environ
) -> Plugin:
    """The plugin for these settings: one for all loops of a process that ask for the same. Raises KubeconfigError."""
    key = (codec.encode([chosen.user.exec, cluster]), chosen.user_folder, metrics, frozenset(environ.items()))
    with _known_guard:
        found = _known.get(key)
        if found is None:
            found = _known[key] = Plugin(chosen, cluster, clock, metrics, environ)
        return found


def _decode(out: bytes) -> ExecCredential:
    """JSON, or YAML where it does not begin with a brace."""
    if out.lstrip().startswith(b"{"):
        return codec.decode(out, ExecCredential)
    text = out.decode()
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
        raise codec.ShapeError("it has aliases")  # a few lines of them are gigabytes
    doc: Any = yaml.load(text, yaml.BaseLoader)
    if not isinstance(doc, dict):
        raise codec.ShapeError("it is no document")
    return codec.decode(codec.encode(doc), ExecCredential)


def _certificate(given: _Given) -> x509.Certificate | None:
    return key_pairs.chain(given.certificate[0])[0] if given.certificate is not None else None


def _pair(cert: str, key: str) -> tuple[bytes, bytes] | None:
    if not cert:
        return None
    pair = cert.encode(), key.encode()
    try:
        client_context(TLSFiles(cert_data=pair[0], key_data=pair[1], insecure=True))
        key_pairs.chain(pair[0])
    except (TLSFilesError, ValueError) as error:
        raise CredentialsError(f"exec plugin: failed parsing client key/certificate: {error}") from error
    return pair

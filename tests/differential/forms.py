"""The recorded scenarios with kcm in each form that it can run in, and a table of what held.

    [KUBEBUILDER_ASSETS=DIR] python -m tests.differential.forms [FORM...]

With KUBEBUILDER_ASSETS, a folder with etcd and kube-apiserver, on that server; else on a sandbox, which answers in
protobuf, too. Each form has a fresh server. Without names: all forms.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until
from tests.kit.recorded import GOLDEN_FLAGS, with_patience
from tests.kit.servers import TOKEN, kubeconfig, real_server, sandbox_server
from tests.kit.units import GROUPS, unit_flags

GROUP_FLAGS = ("--controllers", "--leader-elect-resource-name")
"""Flags of the systemd unit in which groups differ."""
JOBS = 8


@dataclass(frozen=True)
class Form:
    """``managers``: the flags of each process. ``takeover``: the first one ends before the scenarios start."""

    managers: tuple[tuple[str, ...], ...] = ((),)
    uvloop: bool = True
    takeover: bool = False


FORMS = {
    "protobuf": Form(),
    "json": Form(managers=(("--kube-api-content-type=application/json",),)),
    "asyncio": Form(uvloop=False),
    "standby": Form(managers=(("--warm-standby",),) * 2, takeover=True),
    "groups": Form(
        managers=tuple(tuple(flag for flag in unit_flags(group) if flag.startswith(GROUP_FLAGS)) for group in GROUPS)
    ),
}


def scenarios(form: Form, url: str, folder: Path, keys: Path) -> tuple[set[str], set[str], str]:
    """What passed, what failed, and the output of the last run. ``keys``: the folder with ca.crt and sa.key."""
    (folder / "kubeconfig").write_text(kubeconfig(url))
    files = {"root-ca-file": "ca.crt", "service-account-private-key-file": "sa.key"}
    files |= {"cluster-signing-cert-file": "ca.crt", "cluster-signing-key-file": "ca.key"}
    flags = [f"--{flag}={keys / name}" for flag, name in files.items()]
    flags += [f"--{who}kubeconfig={folder}/kubeconfig" for who in ("", "authentication-", "authorization-")]
    with Processes() as processes:
        ports = []
        for number, own in enumerate(form.managers):
            ports.append(free_port())
            words = (*KCM, *flags, *GOLDEN_FLAGS, *own, f"--secure-port={ports[-1]}")
            processes.start(*words, log=folder / f"manager-{number}.log", env=_environment(form, folder))
            _serves(ports[-1], folder / f"manager-{number}.log")
        if form.takeover:
            first = processes.running[0]
            first.terminate()
            first.wait(END_S)
        return with_patience(url, TOKEN, JOBS)


def _serves(port: int, log: Path) -> None:
    until(lambda: ask(f"https://127.0.0.1:{port}/healthz").status == 200, why=log.read_text)


def _environment(form: Form, folder: Path) -> dict[str, str]:
    if form.uvloop:
        return dict(os.environ)
    (folder / "uvloop.py").write_text('raise ModuleNotFoundError("left out by the test")\n')
    return {**os.environ, "PYTHONPATH": str(folder)}


@contextmanager
def fresh_server(folder: Path) -> Iterator[tuple[str, Path]]:
    """A server without a manager: its URL, and the folder of its keys."""
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        with real_server(Path(assets), folder) as url:
            yield url, folder
    else:
        with sandbox_server(folder, f"--data-dir={folder}/data") as url:
            yield url, folder / "data" / "pki"


def main() -> int:
    names = sys.argv[1:] or list(FORMS)
    if unknown := [name for name in names if name not in FORMS]:
        sys.exit(f"no such form: {', '.join(unknown)}; there are {', '.join(FORMS)}")
    bad = False
    for name in names:
        with tempfile.TemporaryDirectory() as path, fresh_server(Path(path)) as (url, keys):
            passed, failed, text = scenarios(FORMS[name], url, Path(path), keys)
        print(f"{name:10} {len(passed)} passed, {len(failed)} failed {' '.join(sorted(failed))}", flush=True)
        if failed:
            print(text)
        bad |= bool(failed)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

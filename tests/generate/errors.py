"""docs/errors.md: exit codes, and the errors of the command line with what to do about each.

Each command line is run, in an empty folder, so that the page has what is printed.
"""

import contextlib
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import msgspec

from kcm_cli.cli.main import main
from kcm_cli.cli.subcommands import MANAGER_EXITS, SUBCOMMANDS

_HEAD = """\
# Exit codes and errors

Written by `make docs` from the declarations and from what the commands print; do not edit.

## Exit codes

| Command | Code | When |
| --- | --- | --- |
"""
_ERRORS = """
Ctrl-C ends `kcm top` and `kcm trace --follow` with 0, and with 1 what has not printed all: `kcm plan`, `kcm trace`,
`kcm bug-report`, and `kcm top --once`. A signal that comes before a command handles any ends it with the shell's code
for that, such as 143 for SIGTERM.

## Errors

An error is one line on standard error, beginning with `Error:`, and all errors of a command line are reported at
once. After the start, `kcm` and `kcm sandbox` report errors in the log, `"command failed" err="…"`.
"""
_TABLE = "| Command line | Error | What to do |\n| --- | --- | --- |\n"


class Case(msgspec.Struct, frozen=True):
    """A command line that is refused, and what to do. The error is what it prints."""

    arguments: str
    remedy: str


_REACH = "Start the manager, or name its port with `--server`."
_TRUST = "Name the CA of the manager's certificate, or accept any. Without a token, on this machine, neither is needed."
_HELP = "Use a value that the error or `--help` names."
_FILE = "Name a file that exists and can be read."
CASES: Mapping[str, tuple[Case, ...]] = {
    "kcm": (
        Case("--concurent-gc-syncs=5", "Correct the name. `kcm --help` and [flags](flags.md) list all."),
        Case("--concurrent-gc-syncs=many", "Give a value of the type that `--help` shows."),
        Case("--kubeconfig", "Give the flag a value, as `--kubeconfig=FILE`."),
        Case("--leader-elect false", "Join a bool and its value by `=`. Upstream takes no other form either."),
        Case("sandbx", "Correct the name of the subcommand."),
        Case("-v=2 sandbox", "Name the subcommand first."),
        Case("--controllers=nope", "Use a name of the section *Controllers* of `kcm --help`, or a former name."),
        Case("--feature-gates=Nope=true", "Use a name of the section *Feature gates* of `kcm --help`."),
        Case("--feature-gates=WatchList=maybe", "Set gates to true or false."),
        Case("--config=missing.yaml", _FILE),
        Case("--logging-format=xml", _HELP),
        Case("--secure-port=99999", _HELP),
        Case("--emulated-version=1.20", "Emulate one of these releases."),
        Case("--cluster-cidr=pods --allocate-node-cidrs", "Write an address and a length."),
        Case("--write-config-to=missing/kcm.yaml", "Create the folder, or name another file."),
        Case("--install-completion zsh", "Run it in a zsh without the name, or source the script."),
    ),
    "kcm sandbox": (
        Case("sandbox --controllers=ttl", "Put flags of the manager behind `--`."),
        Case("sandbox extra", "Leave the word out."),
        Case("sandbox --port=99999", _HELP),
        Case("sandbox --nodes=99999", "Use fewer nodes: their addresses have to fit into the pods' network."),
        Case("sandbox --data-dir=/dev/null", "Name a folder. It is created if it does not exist."),
        Case("sandbox --faults=missing.yaml", _FILE),
        Case("sandbox --route=webhook=9443", "Name the Service with its namespace: `webhook.default=9443`."),
        Case("sandbox --no-manager -- --v=2", "Leave out one of the two."),
        Case("sandbox nodes fail", "Name the node: `kcm sandbox nodes fail node-1`."),
        Case("sandbox nodes drop node-1", "Use one of the verbs."),
        Case("sandbox nodes fail node-1", "Start a sandbox, and use its kubeconfig: `--kubeconfig` or `KUBECONFIG`."),
        Case("sandbox assets --dir=/dev/null/assets", "Name a folder that can be made."),
    ),
    "kcm top, kcm bug-report": (
        Case("top --once --server=https://127.0.0.1:1", _REACH),
        Case("top --once --token=secret", _TRUST),
        Case("top --once --token-file=missing", _FILE),
        Case("top --once --server=127.0.0.1", "Write the scheme and the port, too."),
        Case("top --output=json", "Add `--once`."),
        Case("top --sort=size", _HELP),
        Case("bug-report --server=https://127.0.0.1:1", _REACH),
    ),
    "kcm trace": (
        Case("trace", "Name the object: `kcm trace deploy/web`."),
        Case("trace web", "Name the kind, too."),
        Case("trace deploy/web --server=https://127.0.0.1:1", f"{_REACH} Of another manager than kcm: `--observe`."),
        Case("trace deploy/web --observe", "Name the kubeconfig of the cluster."),
        Case("trace deploy/web --audit-log=missing.log", _FILE),
        Case("trace deploy/web --follow -o html", "Leave out one of the two, or watch for a given time."),
    ),
    "kcm plan": (
        Case("plan", "Name the kubeconfig of the cluster, or a snapshot: `--snapshot`."),
        Case("plan --snapshot=missing.kcm", _FILE),
        Case("plan -f missing.yaml", _FILE),
        Case("plan --scale=web", "Write the kind, and `=` with the number: `--scale=deploy/web=5`."),
        Case("plan --set-image=deploy/web", "Write the image: `--set-image=deploy/web=nginx:1.27`."),
        Case("plan --for=10", "Write the unit: `10m`."),
        Case("plan --seeds=0", _HELP),
        Case("plan --output=xml", _HELP),
        Case("plan --fail-on=never", _HELP),
        Case("plan --snapshot=", "Give it a value, or leave it out. Is a variable not set, as in `--snapshot=$FILE`?"),
    ),
}


def printed(case: Case) -> tuple[str, ...]:
    """What a command line that is refused prints, without ``Error:``."""
    out, err = io.StringIO(), io.StringIO()
    with _elsewhere(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(case.arguments.split())
    lines = err.getvalue().splitlines()
    if code != 1 or out.getvalue() or not lines or not all(line.startswith("Error: ") for line in lines):
        raise ValueError(f"kcm {case.arguments}: {code}, {out.getvalue()}{err.getvalue()}")
    return tuple(line.removeprefix("Error: ") for line in lines)


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """In an empty folder, as a user without kubeconfig."""
    before = Path.cwd()
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"HOME": "/home/me"}):
        for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
            os.environ.pop(name, None)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def errors_document() -> str:
    """docs/errors.md."""
    commands = (("kcm", MANAGER_EXITS), *((f"kcm {one.name}", one.exits) for one in SUBCOMMANDS))
    exits = "".join(f"| `{name}` | {code} | {why} |\n" for name, exits in commands for code, why in exits)
    sections = (f"\n### {title}\n\n{_TABLE}{''.join(map(_row, cases))}" for title, cases in CASES.items())
    return "".join([_HEAD, exits, _ERRORS, *sections])


def _row(case: Case) -> str:
    lines = "<br>".join(f"`{line.replace('|', chr(92) + '|')}`" for line in printed(case))
    return f"| `kcm {case.arguments}` | {lines} | {case.remedy} |\n"

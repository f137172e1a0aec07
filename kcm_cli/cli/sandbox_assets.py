"""``kcm sandbox assets``: creates the folder for envtest's KUBEBUILDER_ASSETS."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kcm_cli.component.flagset import Flag, FlagSet, before_dashes, unexpected
from kcm_cli.component.value_types import BOOL, INT, STRING, STRINGS
from kcm_cli.sandbox.apiserver.webhooks.routes import service_of, where_of
from kcm_cli.sandbox.assets import folder
from kcm_cli.sandbox.networks import MOST_NODES

_CLUSTER = (
    Flag("nodes", INT, 0, "How many nodes are simulated; with 0 there is no scheduler, either.", "Cluster"),
    Flag("manager", BOOL, False, "Run the controllers. They also run with nodes, or with flags after --.", "Cluster"),
    Flag("no-manager", BOOL, False, "Leave the controllers out, also with nodes.", "Cluster"),
    Flag("route", STRINGS, (), "As of kcm sandbox: NAME.NAMESPACE=PORT or =HOST:PORT.", "Cluster"),
)
FLAGS = FlagSet(
    (
        *_CLUSTER,
        Flag("dir", STRING, "", "Where to put the folder; without it, in the user's cache.", "Assets"),
        Flag("help", BOOL, False, "Show this text.", "Assets", shorthand="h"),
    )
)
ABOUT = f"""kcm sandbox assets makes a folder with kube-apiserver, etcd and kubectl for suites that use envtest, and
prints its path: each kube-apiserver that is started there is a sandbox, without controllers and nodes as in envtest,
since suites write statuses themselves. The flags below hold for all of them; those in {folder.FLAGS} take their place.

Usage:
  export KUBEBUILDER_ASSETS=$(kcm sandbox assets [flags] [-- manager flags])"""


class Cluster(msgspec.Struct, frozen=True):
    """The parts beside the API server. routes: see ``SandboxOptions``."""

    nodes: int = 0
    manager: bool = False
    routes: tuple[tuple[str, str], ...] = ()
    manager_flags: tuple[str, ...] = ()


def main(arguments: Sequence[str]) -> int:
    """Create the folder; returns the exit code."""
    # imported here: a kube-apiserver that starts needs neither
    from kcm_cli.cli import usage
    from kcm_cli.cli.manager import fail

    words, _ = before_dashes(arguments)
    parsed = FLAGS.parse(words)
    if parsed.values.get("help"):
        sys.stdout.write(usage.help_text(ABOUT, FLAGS))
        return 0
    _, problems = read_flags(arguments)
    if parsed.values.get("dir") == "":
        problems.append("--dir: name a path")
    if problems:
        return fail(problems)
    target = str(parsed.values.get("dir", ""))
    try:
        made = folder.write(_without_dir(arguments), Path(target) if target else None)
    except OSError as error:
        return fail([f"cannot write {error.filename or target}: {error.strerror}"])
    sys.stdout.write(f"{made}\n")
    return 0


def read_flags(arguments: Sequence[str]) -> tuple[Cluster, list[str]]:
    """(the parsed flags, errors)."""
    words, manager_flags = before_dashes(arguments)
    parsed = FLAGS.parse(words)
    problems = [*parsed.problems, *unexpected(parsed, "kcm sandbox assets")]
    nodes, routes = parsed.values.get("nodes", 0), parsed.values.get("route", ())
    assert isinstance(nodes, int)
    assert isinstance(routes, tuple)
    pairs = pairs_of(routes)
    problems += cluster_problems(nodes, pairs)
    left_out = bool(parsed.values.get("no-manager", False))
    wanted = bool(parsed.values.get("manager", False)) or nodes > 0 or bool(manager_flags)
    cluster = Cluster(nodes, wanted and not left_out, pairs, tuple(manager_flags))
    if manager_flags and left_out:
        problems.append("--no-manager: there is no manager to take the flags after --")
    return cluster, problems


def pairs_of(routes: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The Service of each --route, and where its calls go."""
    return tuple((service, where) for service, _, where in (text.partition("=") for text in routes))


def cluster_problems(nodes: int, routes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Errors in --nodes and --route, which ``kcm sandbox`` has, too."""
    if not 0 <= nodes <= MOST_NODES - 1:
        yield f"--nodes: there can be 0 to {MOST_NODES - 1} nodes, not {nodes}"
    for service, where in routes:
        try:
            service_of(service)
            where_of(where)
        except ValueError as error:
            yield f"--route: {error}"


def _without_dir(arguments: Sequence[str]) -> list[str]:
    """The flags for kube-apiserver, in a canonical form."""
    words, manager_flags = before_dashes(arguments)
    values = FLAGS.parse(words).values
    known: list[str] = []
    for flag in _CLUSTER:
        if flag.name in values:
            value = values[flag.name]
            known.append(f"--{flag.name}={','.join(value) if isinstance(value, tuple) else flag.kind.show(value)}")
    return [*known, "--", *manager_flags] if manager_flags else known

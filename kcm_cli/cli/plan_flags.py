"""Parses and validates the command line of ``kcm plan``."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kcm_cli.cli import usage
from kcm_cli.cli.plan_words import NODES, BadWord, metric, node_count, scaled, set_image, target
from kcm_cli.cli.subcommands import subcommand
from kcm_cli.component.flagset import Flag, FlagSet, Parsed, not_utf8, unexpected
from kcm_cli.component.value_types import BOOL, DURATION, INT, STRING, STRINGS
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_str
from kcm_cli.machinery.quoting import escaped
from kcm_cli.plan.changes import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Options,
    RemoveNode,
    Scale,
    SetImage,
    Target,
)
from kcm_cli.plan.collect import check_include
from kcm_cli.sandbox.manifests import ManifestError, documents, parsed

FORMATS = ("text", "json", "yaml", "markdown", "html")
CASCADES = ("background", "foreground", "orphan")
CONDITIONS = (
    *("pending", "stuck", "unavailable", "no-endpoints", "data"),
    *("pdb", "quota", "refused", "image", "failed", "drain"),
)
_FIRST = frozenset(("Namespace", "CustomResourceDefinition"))
"""Applied before other manifests, which may need them."""
AUDIT_S, PLAN_S = 600.0, 3600.0
_OF_COMPARE = frozenset(("compare", "kubeconfig", "include", "save", "snapshot", "namespace", "output"))
_PATHS = frozenset(("filename", "flags-from", "kubeconfig", "save", "snapshot", "compare"))
_NAMING = frozenset(
    (
        *("filename", "drain", "fail-node", "remove-node", "add-node", "set-image", "scale", "delete", "metric"),
        *("fail-on", "flags-from", "save", "snapshot", "compare"),
    )
)
"""Flags without which something else is done."""
_CHANGES, _VIEW, _SOURCE, _OUTPUT = "Change", "Run", "Snapshot", "Output"
FLAGS = FlagSet(
    (
        Flag("filename", STRINGS, (), "Manifests to apply: files, folders, or - for standard input.", _CHANGES, "f"),
        Flag("drain", NODES, (), "Nodes to drain as kubectl drain does: NAME or a label selector.", _CHANGES),
        Flag("fail-node", NODES, (), "Nodes whose kubelet stops: NAME or a label selector, as of a zone.", _CHANGES),
        Flag("remove-node", NODES, (), "Nodes to delete: NAME or a label selector.", _CHANGES),
        Flag("add-node", STRINGS, (), "Add copies of a node: NAME or NAME=COUNT.", _CHANGES),
        Flag(
            "set-image", STRINGS, (), "Set an image: KIND/NAME=[CONTAINER=]IMAGE, such as deploy/web=web:2.", _CHANGES
        ),
        Flag("scale", STRINGS, (), "Set the number of replicas: KIND/NAME=REPLICAS, such as deploy/web=50.", _CHANGES),
        Flag("delete", STRINGS, (), "Delete an object: KIND/NAME. See --cascade for its dependents.", _CHANGES),
        Flag(
            "cascade",
            STRING,
            "background",
            "Propagation policy of --delete: background, foreground or orphan.",
            _CHANGES,
        ),
        Flag(
            "metric",
            STRINGS,
            (),
            "Set a metric that autoscalers read: KIND/NAME=METRIC:VALUE, such as deploy/web=cpu:120%.",
            _CHANGES,
        ),
        Flag(
            "server-side",
            BOOL,
            False,
            "Apply manifests server-side. Without it, only objects that kubectl applied so before.",
            _CHANGES,
        ),
        Flag(
            "force-conflicts",
            BOOL,
            False,
            "Apply manifests server-side, and take ownership of fields of other managers.",
            _CHANGES,
        ),
        Flag(
            "for",
            DURATION,
            PLAN_S,
            "Period of virtual time to simulate. Without a change the default is 10m.",
            _VIEW,
            unit="",
        ),
        Flag("seeds", INT, 1, "Number of runs, each with different random choices.", _VIEW),
        Flag(
            "namespace",
            STRING,
            "",
            "Namespace of names without one. Restricts what is listed to this namespace. Default: that of the "
            "kubeconfig's context, or default, and no restriction.",
            _VIEW,
            "n",
        ),
        Flag(
            "selector",
            STRING,
            "",
            "Restrict what is listed to objects whose labels match, or whose pods or owners have labels that match.",
            _VIEW,
            "l",
        ),
        Flag("controllers", STRING, "", "Controllers to run, as --controllers of the manager.", _VIEW),
        Flag(
            "flags-from",
            STRING,
            "",
            "Take the manager's options from this file: a systemd unit, a static pod or a component config.",
            _VIEW,
        ),
        Flag(
            "kubeconfig",
            STRING,
            "",
            "kubeconfig of the cluster to read. Default: KUBECONFIG or ~/.kube/config.",
            _SOURCE,
        ),
        Flag("include", STRINGS, (), "Also read: configmaps, events, custom (custom resources).", _SOURCE),
        Flag("save", STRING, "", "Write the snapshot to this file.", _SOURCE),
        Flag("snapshot", STRING, "", "Read this snapshot instead of a cluster.", _SOURCE),
        Flag(
            "compare",
            STRING,
            "",
            "Compare a saved plan (-o json) with the cluster as it is now, or in a later --snapshot.",
            _SOURCE,
        ),
        Flag(
            "output",
            STRING,
            "text",
            "Output format: text, json, yaml, markdown or html.",
            _OUTPUT,
            "o",
        ),
        Flag("detailed-exitcode", BOOL, False, "Exit with 2 if anything changes.", _OUTPUT),
        Flag("fail-on", STRINGS, (), f"Exit with 3 if the change causes one of: {', '.join(CONDITIONS)}.", _OUTPUT),
        Flag("help", BOOL, False, "Show this help.", _OUTPUT, "h"),
    )
)
ABOUT = """kcm plan shows what the controllers, the scheduler and the kubelets of a cluster would do. It reads the
cluster (it never reads Secrets and never writes), builds a twin of it in memory, and advances the twin's clock twice:
without the change and with it. Without any change it shows what kcm would write if it took over the cluster now.

Usage:
  kcm plan [flags]
  kcm plan --drain node-1 --for 30m
  kcm plan -f app.yaml --save cluster.kcm
  kcm plan --snapshot cluster.kcm --scale deploy/web=50 -o markdown --fail-on pending,stuck
  kcm plan --set-image deploy/web=web:2 -o json > plan.json; ...; kcm plan --compare plan.json"""


class Command(msgspec.Struct, frozen=True):
    """The parsed command line."""

    changes: tuple[Change, ...]
    options: Options
    kubeconfig: str
    include: tuple[str, ...]
    save: str
    snapshot: str
    output: str
    detailed: bool
    fail_on: frozenset[str]
    compare: str = ""


def help_text() -> str:
    """The output of --help."""
    return usage.help_text(ABOUT, FLAGS, subcommand("plan").exits)


def read(parsed_flags: Parsed, manager_flags: Sequence[str]) -> tuple[Command | None, list[str]]:
    """(the command, errors). ``manager_flags``: those from --flags-from."""
    problems = [*parsed_flags.problems, *_misplaced(parsed_flags), *unexpected(parsed_flags, "kcm plan")]
    problems += [*not_utf8(parsed_flags, _PATHS), *_empty(parsed_flags)]
    values = FLAGS.values_of(parsed_flags)
    problems += _problems(values)
    changes: list[Change] = []
    try:
        changes += _changes(values)
        if values["filename"] and not any(isinstance(change, Apply) for change in changes):
            problems.append(f"-f: there are no manifests in {', '.join(_words(values['filename']))}")
        problems += _contradictions(changes)
        problems += _beside_compare(parsed_flags, values)
    except (BadWord, ManifestError) as error:
        problems.append(" ".join(str(error).split()))
    if problems:
        return None, problems
    horizon = values["for"] if "for" in parsed_flags.values or changes else AUDIT_S
    seeds = values["seeds"]
    assert isinstance(horizon, float | int) and isinstance(seeds, int)
    flags = list(manager_flags)
    if values["controllers"]:
        flags.append(f"--controllers={values['controllers']}")
    options = Options(
        horizon_s=float(horizon),
        seeds=tuple(range(1, seeds + 1)),
        namespace=str(values["namespace"]),
        selector=str(values["selector"]),
        flags=tuple(flags),
        server_side=bool(values["server-side"]),
        force_conflicts=bool(values["force-conflicts"]),
    )
    return (
        Command(
            tuple(changes),
            options,
            str(values["kubeconfig"]),
            _words(values["include"]),
            str(values["save"]),
            str(values["snapshot"]),
            str(values["output"]),
            bool(values["detailed-exitcode"]),
            frozenset(_words(values["fail-on"])),
            str(values["compare"]),
        ),
        [],
    )


def _problems(values: Mapping[str, object]) -> Iterator[str]:
    if values["output"] not in FORMATS:
        yield f'--output: "{values["output"]}" is not one of {", ".join(FORMATS)}'
    if values["cascade"] not in CASCADES:
        yield f'--cascade: "{values["cascade"]}" is not one of {", ".join(CASCADES)}'
    for word in _words(values["fail-on"]):
        if word not in CONDITIONS:
            yield f'--fail-on: "{word}" is not one of {", ".join(CONDITIONS)}'
    yield from check_include(_words(values["include"]))
    seeds, horizon = values["seeds"], values["for"]
    if not (isinstance(seeds, int) and 1 <= seeds <= 1000):
        yield f"--seeds: {seeds} is not between 1 and 1000"
    if not (isinstance(horizon, float | int) and 0 < horizon <= 366 * 86400):
        yield "--for: look ahead by more than nothing and less than a year"
    if values["snapshot"]:
        for name in ("kubeconfig", "include"):
            if values[name]:
                yield f"--{name}: a snapshot file is as it was saved"


def _misplaced(parsed: Parsed) -> Iterator[str]:
    """Errors about files that are named without -f, as where a shell has replaced a pattern."""
    for word in list(parsed.rest):
        if os.path.exists(word):
            parsed.rest.remove(word)
            yield f"unexpected argument: {word} (manifests are named by -f: -f {word})"


def _empty(parsed: Parsed) -> Iterator[str]:
    """Errors about flags that name nothing, as by a variable that is not set: a takeover audit would take the place of
    the plan, and a check would find nothing."""
    for name in sorted(_NAMING & parsed.values.keys()):
        value = parsed.values[name]
        words = value if isinstance(value, tuple | list) else (value,)
        if not any(str(word).strip() for word in words):
            yield f"--{name}: its value is empty"


def _beside_compare(parsed: Parsed, values: Mapping[str, object]) -> Iterator[str]:
    """Errors about flags that mean nothing for a plan that was made already."""
    if not values["compare"]:
        return
    for name in sorted(parsed.values.keys() - _OF_COMPARE):
        yield f"--{name}: --compare reads a plan that was made already, with its changes"
    if values["output"] == "markdown":
        yield "--output: --compare prints text, json, yaml or html"


def _contradictions(changes: Sequence[Change]) -> Iterator[str]:
    """Errors about changes that contradict each other."""
    deleted = {change.target for change in changes if isinstance(change, Delete)}
    scaled_to: dict[Target, int] = {}
    for change in changes:
        if isinstance(change, Scale | SetImage) and change.target in deleted:
            yield f"--delete: {change.target} is also to be {'scaled' if isinstance(change, Scale) else 'changed'}"
        if isinstance(change, Scale) and scaled_to.setdefault(change.target, change.replicas) != change.replicas:
            yield f"--scale: {change.target} is to have {scaled_to[change.target]} and {change.replicas} replicas"
    removed = {change.node for change in changes if isinstance(change, RemoveNode)}
    for change in changes:
        if isinstance(change, Drain | FailNode) and change.node in removed:
            what = "drained" if isinstance(change, Drain) else "failing"
            yield f"--remove-node: {change.node} is also to be {what}"


def _changes(values: Mapping[str, object]) -> Iterator[Change]:
    manifests: list[Apply] = []
    for name in _words(values["filename"]):
        manifests += (Apply(doc, escaped(where)) for where, doc in _documents(name))
    yield from sorted(manifests, key=lambda change: nested_str(change.doc, "kind") not in _FIRST)
    yield from map(set_image, _words(values["set-image"]))
    yield from map(scaled, _words(values["scale"]))
    for word in _words(values["delete"]):
        yield Delete(target(word, "--delete"), str(values["cascade"]).capitalize())
    for word in _words(values["metric"]):
        yield metric(word, str(values["namespace"]))
    for word in _words(values["add-node"]):
        yield AddNode(*node_count(word))
    yield from map(FailNode, _words(values["fail-node"]))
    yield from map(RemoveNode, _words(values["remove-node"]))
    yield from map(Drain, _words(values["drain"]))


def _documents(name: str) -> Iterator[tuple[str, Doc]]:
    """The objects of a value of -f. Raises ManifestError."""
    if name == "-":
        return parsed(sys.stdin.buffer.read(), "standard input")
    if name.startswith(("http://", "https://")):
        raise ManifestError(f"-f: kcm reads no URL: curl -sL {name} | kcm plan -f -")
    return documents(Path(name))


def _words(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple | list)
    return tuple(str(word).strip() for word in value if str(word).strip())

"""Parses and validates the command line of ``kcm sandbox``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import yaml
from msgspec.structs import replace

from kcm_cli.cli import usage
from kcm_cli.cli.sandbox_assets import cluster_problems, pairs_of
from kcm_cli.component.flagset import Flag, FlagSet, before_dashes, unexpected
from kcm_cli.component.value_types import BOOL, INT, IP, STRING, STRINGS
from kcm_cli.machinery.yaml_errors import described, load
from kcm_cli.manager.options import flag_set
from kcm_cli.sandbox.apiserver.entry.audit_log import AuditOptions
from kcm_cli.sandbox.apiserver.entry.audit_policy import DEFAULT, Policy, policy_of
from kcm_cli.sandbox.apiserver.entry.fault import faults_of
from kcm_cli.sandbox.apiserver.settings import DEFAULTS
from kcm_cli.sandbox.networks import SERVICE_RANGE, misfit, service_ranges
from kcm_cli.sandbox.run import SandboxOptions

if TYPE_CHECKING:
    from kcm_cli.sandbox.nodes.rules import Rule

_FLAGS = (
    Flag("port", INT, 6443, "Port of the API server. 0: a free port.", "Sandbox"),
    Flag("bind-address", IP, "127.0.0.1", "Address that the API server listens on.", "Sandbox"),
    Flag(
        "token",
        STRING,
        "",
        "Bearer token of the administrator. Without it, only client certificates authenticate.",
        "Sandbox",
    ),
    Flag(
        "kubeconfig",
        STRING,
        "",
        "File to write the administrator's kubeconfig to. Entries of other clusters in it are kept. Default: the file "
        "kubeconfig in --data-dir, or a temporary file.",
        "Sandbox",
    ),
    Flag(
        "data-dir", STRING, "", "Directory to store the cluster in. Without it, the cluster is lost on exit.", "Sandbox"
    ),
    Flag("nodes", INT, 3, "Number of simulated nodes. 0: neither nodes nor a scheduler.", "Sandbox"),
    Flag(
        "route",
        STRINGS,
        (),
        "Route webhook calls for a Service to a local port or another address: NAME.NAMESPACE=PORT or =HOST:PORT.",
        "Sandbox",
    ),
    Flag(
        "faults",
        STRING,
        "",
        "YAML file with faults to inject into requests of clients under test: docs/sandbox.md.",
        "Sandbox",
    ),
    Flag(
        "rules",
        STRING,
        "",
        "YAML file with rules for the behavior of pods, by selector and image: docs/sandbox.md.",
        "Sandbox",
    ),
    Flag(
        "service-cluster-ip-range",
        STRING,
        SERVICE_RANGE,
        "CIDR of Service addresses, or two of different families, the default one first.",
        "Sandbox",
    ),
    Flag(
        "system-pods",
        BOOL,
        False,
        "Run in kube-system what kubeadm and kind run there: coredns, kube-proxy, and the pods of the control plane.",
        "Sandbox",
    ),
    Flag(
        "audit-log-path",
        STRING,
        "",
        "File to append the API server's audit log to, for kcm trace --audit-log; - for standard output.",
        "Sandbox",
    ),
    Flag(
        "audit-log-maxsize",
        INT,
        100,
        "Megabytes after which the audit log is renamed to FILE.1, in place of the one before.",
        "Sandbox",
    ),
    Flag(
        "audit-policy-file",
        STRING,
        "",
        "YAML file with an audit policy (audit.k8s.io/v1). Default: writes with their bodies, without those of Secrets "
        "and ConfigMaps.",
        "Sandbox",
    ),
    Flag("no-manager", BOOL, False, "Do not run the controllers.", "Sandbox"),
    Flag("no-view", BOOL, False, "Print plain lines instead of the status view on terminals too.", "Sandbox"),
    Flag("help", BOOL, False, "Show this help.", "Sandbox", shorthand="h"),
)
ABOUT = """kcm sandbox runs a Kubernetes control plane in one process: an API server, simulated nodes, a scheduler
and the controllers. Flags after -- are passed to the controller manager.

Usage:
  kcm sandbox [flags] [-- manager flags]
  kcm sandbox nodes add|remove|fail|recover [NAME...]
  kcm sandbox assets [flags]       (for test suites that use envtest)"""
_LAST_PORT = 65535
T = TypeVar("T")


class Flags(FlagSet):
    """A flag set that recognizes flags of the manager before ``--``."""

    def hint(self, name: str) -> str:
        flags = flag_set()
        if flags.get(name) is not None or flags.letter(name) is not None:
            return " (a flag of the manager goes after --: kcm sandbox -- [manager flags])"
        return super().hint(name)


FLAGS = Flags(_FLAGS)


class Command(msgspec.Struct, frozen=True):
    """The parsed command line."""

    options: SandboxOptions
    view: bool = True
    manager_flags: tuple[str, ...] = ()
    help: bool = False


def help_text() -> str:
    """The output of --help."""
    return usage.help_text(ABOUT, FLAGS)


def read(arguments: Sequence[str]) -> tuple[Command, list[str]]:
    """(the command, errors)."""
    words, manager_flags = before_dashes(arguments)
    parsed = FLAGS.parse(words)
    problems = [*parsed.problems, *unexpected(parsed, "kcm sandbox")]
    faults, broken = _file("faults", parsed.values.get("faults"), faults_of)
    rules, broken_rules = _file("rules", parsed.values.get("rules"), _rules)
    policies, broken_policy = _file("audit-policy-file", parsed.values.get("audit-policy-file"), _policies)
    values = FLAGS.values_of(parsed)
    ranges, broken_ranges = _ranges(str(values["service-cluster-ip-range"]))
    options = SandboxOptions(
        port=_whole(values["port"]),
        bind_address=str(values["bind-address"]),
        token=str(values["token"]),
        kubeconfig=str(values["kubeconfig"]),
        data_dir=str(values["data-dir"]),
        nodes=_whole(values["nodes"]),
        manager=not values["no-manager"],
        routes=pairs_of(_texts(values["route"])),
        faults=faults,
        rules=rules,
        settings=replace(DEFAULTS, service_ranges=ranges),
        system_pods=bool(values["system-pods"]),
        audit=_audit(str(values["audit-log-path"]), _whole(values["audit-log-maxsize"]), policies),
    )
    view = not values["no-view"] and values["audit-log-path"] != "-"
    command = Command(options, view, tuple(manager_flags), bool(values["help"]))
    broken += [*broken_rules, *broken_policy, *broken_ranges]
    return command, [*problems, *broken, *_problems(command, parsed.values)]


def _ranges(given: str) -> tuple[tuple[str, ...], list[str]]:
    try:
        return service_ranges(given), []
    except ValueError as error:
        return DEFAULTS.service_ranges, [f"--service-cluster-ip-range: {error}"]


def _audit(path: str, megabytes: int, policies: tuple[Policy, ...]) -> AuditOptions | None:
    return AuditOptions(path, policies[0] if policies else DEFAULT, megabytes << 20) if path else None


def _policies(found: object) -> tuple[Policy, ...]:
    return (policy_of(found),)


def _file(flag: str, path: object, read_as: Callable[[object], tuple[T, ...]]) -> tuple[tuple[T, ...], list[str]]:
    """(the content of a flag's file, errors)."""
    if not isinstance(path, str):
        return (), []
    try:
        return read_as(load(Path(path).read_text(encoding="utf-8"))), []
    except OSError as error:
        return (), [f"--{flag}: cannot read {path}: {error.strerror}"]
    except yaml.YAMLError as error:
        return (), [f"--{flag}: {path}: not YAML: {described(error)}"]
    except ValueError as error:
        return (), [f"--{flag}: {path}: {error}"]


def _rules(found: object) -> "tuple[Rule, ...]":
    from kcm_cli.sandbox.nodes.rules import rules_of  # imported here: a server without nodes is ready sooner

    return rules_of(found)


def _problems(command: Command, given: Mapping[str, object]) -> Iterator[str]:
    options = command.options
    if not 0 <= options.port <= _LAST_PORT:
        yield f"--port: {options.port} is no port: 0 to {_LAST_PORT}"
    if options.token and not (options.token.isascii() and options.token.isprintable() and " " not in options.token):
        yield "--token: only visible ASCII characters can be sent"
    if _whole(given.get("audit-log-maxsize", 1)) < 1:
        yield "--audit-log-maxsize: must be 1 or more"
    if options.audit is None and given.keys() & {"audit-log-maxsize", "audit-policy-file"}:
        yield "--audit-log-path: name the file of the audit log"
    for name in ("kubeconfig", "data-dir", "audit-log-path"):
        if given.get(name) == "":
            yield f"--{name}: name a path"
    if problem := misfit(options.settings.service_ranges, system_pods=options.system_pods):
        yield f"--service-cluster-ip-range: {problem}"
    if options.system_pods and not options.nodes:
        yield "--system-pods: they need a node: --nodes 1"
    yield from cluster_problems(options.nodes, options.routes)
    if command.manager_flags and not options.manager:
        yield "--no-manager: there is no manager to take the flags after --"


def _texts(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value

"""The command line of ``kcm sandbox``."""

from pathlib import Path

import pytest

from kcm_cli.cli.sandbox_flags import help_text, read
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.networks import MOST_NODES
from kcm_cli.sandbox.nodes.rules import Rule
from kcm_cli.sandbox.run import SandboxOptions


def test_the_default_is_a_whole_cluster() -> None:
    command, problems = read([])
    assert problems == []
    assert command.options == SandboxOptions()
    assert (command.view, command.manager_flags) == (True, ())


def test_all_flags_are_set() -> None:
    words = "--port 0 --bind-address ::1 --token T --kubeconfig k --data-dir d --nodes 7 --no-view -- -v=2 -- x"
    command, problems = read(words.split())
    assert problems == []
    assert command.options == SandboxOptions(0, "::1", "T", "k", "d", 7, True)
    assert (command.view, command.manager_flags) == (False, ("-v=2", "--", "x"))


def test_the_cluster_of_kubeadm() -> None:
    command, problems = read(["--system-pods", "--service-cluster-ip-range=10.96.0.1/12, fd00:10:96::/112"])
    assert problems == []
    assert command.options.system_pods
    assert command.options.settings.service_ranges == ("10.96.0.0/12", "fd00:10:96::/112")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--port -1", "--port: -1 is no port: 0 to 65535"),
        ("--port 65536", "--port: 65536 is no port: 0 to 65535"),
        ("--nodes -1", f"--nodes: there can be 0 to {MOST_NODES - 1} nodes, not -1"),
        ("--nodes 1000000", f"--nodes: there can be 0 to {MOST_NODES - 1} nodes, not 1000000"),
        ("--token=ä", "--token: only visible ASCII characters can be sent"),
        ("--kubeconfig=", "--kubeconfig: name a path"),
        ("--data-dir=", "--data-dir: name a path"),
        ("--audit-log-path=", "--audit-log-path: name a path"),
        ("--audit-log-path=a --audit-log-maxsize=0", "--audit-log-maxsize: must be 1 or more"),
        ("--audit-log-maxsize=5", "--audit-log-path: name the file of the audit log"),
        ("--no-manager -- -v=2", "--no-manager: there is no manager to take the flags after --"),
        ("--route hook=1", '--route: "hook" does not name a Service: write NAME.NAMESPACE'),
        ("--route hook.ns", '--route: "" is no address: write PORT or HOST:PORT'),
        ("--route hook.ns=65536", '--route: "65536" is no address: write PORT or HOST:PORT'),
        (
            "--service-cluster-ip-range=10.0.0.0/33",
            '--service-cluster-ip-range: "10.0.0.0/33" is no CIDR, such as 10.0.0.0/16, or two: '
            "10.96.0.0/16,fd00:10:96::/112",
        ),
        (
            "--service-cluster-ip-range=10.0.0.0/8,11.0.0.0/8",
            "--service-cluster-ip-range: two CIDRs are of different families, such as 10.96.0.0/16,fd00:10:96::/112",
        ),
        (
            "--service-cluster-ip-range=10.0.0.0/29 --system-pods",
            "--service-cluster-ip-range: 10.0.0.0/29 is too small: DNS has the tenth address",
        ),
        (
            "--service-cluster-ip-range=100.64.0.0/16",
            "--service-cluster-ip-range: 100.64.0.0/16 overlaps 100.64.0.0/10, the addresses of simulated pods and "
            "nodes",
        ),
        ("--system-pods --nodes 0", "--system-pods: they need a node: --nodes 1"),
        ("word", "unexpected argument: word (see kcm sandbox --help)"),
        ("--prt 1", "unknown flag: --prt (did you mean --port?)"),
        (
            "--node_monitor_period 1s",
            "unknown flag: --node_monitor_period (a flag of the manager goes after --: kcm sandbox -- [manager flags])",
        ),
        (
            "-v2",
            'unknown shorthand flag: "v" in -v2 (a flag of the manager goes after --: kcm sandbox -- [manager flags])',
        ),
    ],
)
def test_errors_name_the_flag(words: str, problem: str) -> None:
    assert read(words.split())[1] == [problem]


def test_routes_can_be_repeated() -> None:
    command, problems = read(["--route", "a.b=1", "--route", "c.d=[::1]:2,e.f=host:3"])
    assert problems == []
    assert command.options.routes == (("a.b", "1"), ("c.d", "[::1]:2"), ("e.f", "host:3"))


@pytest.mark.parametrize("token", ["a b", "a\nb", "a\tb"])
def test_an_invalid_token(token: str) -> None:
    assert len(read(["--token", token])[1]) == 1


@pytest.mark.parametrize("address", ["localhost", "1.2.3"])
def test_an_address_is_an_ip(address: str) -> None:
    (problem,) = read(["--bind-address", address])[1]
    assert "--bind-address" in problem


def test_all_mistakes_are_reported_together() -> None:
    assert len(read(["--port", "-1", "--nodes", "-1", "word", "--no-such"])[1]) == 4


def test_help_names_every_flag() -> None:
    assert read(["-h"])[0].help
    assert all(f"--{name}" in help_text() for name in ("port", "kubeconfig", "no-view", "nodes"))


def test_faults_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("- {fault: throttle, userAgent: a/*, retryAfterSeconds: 2}\n- fault: conflict\n")
    command, problems = read(["--faults", str(file)])
    assert (command.options.faults, problems) == (
        (Fault("throttle", user_agent="a/*", retry_after_s=2), Fault("conflict")),
        [],
    )
    for text, why in (("{", "expected"), ("- fault: x", "Invalid enum value 'x'"), ("3", "Expected `object`")):
        file.write_text(text)
        assert why in read(["--faults", str(file)])[1][0]
    assert read(["--faults", "/nowhere"])[1] == ["--faults: cannot read /nowhere: No such file or directory"]


def test_rules_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("- {selector: app=web, exit-code: 3}\n")
    command, problems = read(["--rules", str(file)])
    assert (command.options.rules, problems) == ((Rule({"exit-code": "3"}, "app=web"),), [])
    file.write_text("- {exitcode: 3}\n")
    assert read(["--rules", str(file)])[1][0].startswith(f'--rules: {file}: rule 1: "exitcode" is none of')
    file.write_text("a: [1")
    assert read(["--rules", str(file)])[1] == [
        f"--rules: {file}: not YAML: line 1: expected ',' or ']', but got '<stream end>'"
    ]
    assert read(["--rules", "/nowhere"])[1] == ["--rules: cannot read /nowhere: No such file or directory"]


def test_an_audit_policy_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    command, problems = read([f"--audit-policy-file={path}", "--audit-log-path=-", "--audit-log-maxsize=2"])
    assert problems == []
    audit = command.options.audit
    assert not command.view  # the log has the terminal
    assert audit is not None and (audit.path, audit.most_bytes) == ("-", 2 << 20)
    assert [rule.level for rule in audit.policy.rules] == ["Metadata"]
    path.write_text("rules: [")
    assert read([f"--audit-policy-file={path}", "--audit-log-path=-"])[1][0].startswith(f"--audit-policy-file: {path}:")

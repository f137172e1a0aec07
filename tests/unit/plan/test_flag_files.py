"""The manager's flags from manifests, units and configuration files."""

import json
from pathlib import Path

import pytest
import yaml

from kcm_cli.plan import Options, PlanError, plan
from kcm_cli.plan.flag_files import manager_flags
from kcm_cli.plan.planning import configured
from tests.kit.places import ROOT
from tests.unit.plan.clusters import settled


def test_a_static_pod() -> None:
    flags = manager_flags(str(ROOT / "configs/kubernetes/static-pod.yaml"))
    assert "--cluster-cidr=10.244.0.0/16" in flags
    assert "--controllers=*,bootstrap-signer-controller,token-cleaner-controller" in flags
    assert not any("kubeconfig" in flag or "file" in flag or "leader" in flag for flag in flags)
    configured(flags)


def test_a_systemd_unit(tmp_path: Path) -> None:
    unit = tmp_path / "kcm.service"
    unit.write_text(
        "[Service]\nExecStart=/opt/kcm/bin/kcm \\\n  --kubeconfig=%d/k \\\n  --node-monitor-grace-period=20s \\\n"
        "  --kube-api-qps 100 --root-ca-file=/x\n"
    )
    assert manager_flags(str(unit)) == ("--node-monitor-grace-period=20s", "--kube-api-qps=100")


def test_the_unit_that_kcm_ships() -> None:
    flags = manager_flags(str(ROOT / "configs/systemd/kcm.service"))
    assert flags == manager_flags(str(ROOT / "configs/kubernetes/static-pod.yaml"))


def test_a_unit_is_known_by_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("[Service]\n  ExecStart = /bin/kcm --concurrent-gc-syncs=7\n")
    assert manager_flags(str(path)) == ("--concurrent-gc-syncs=7",)
    noted = {"annotations": {"was": "ExecStart=/bin/old"}}
    container = {"name": "kube-controller-manager", "args": ["--concurrent-gc-syncs=8"]}
    path.write_text(yaml.safe_dump({"kind": "Pod", "metadata": noted, "spec": {"containers": [container]}}))
    assert manager_flags(str(path)) == ("--concurrent-gc-syncs=8",)


def test_variables_of_a_unit(tmp_path: Path) -> None:
    unit = tmp_path / "kcm.service"
    lines = (
        "Environment=LOST=1",
        "Environment=",
        'Environment=QPS=70 "MORE=--min-resync-period=1h --kube-api-burst=9"',
    )
    unit.write_text(
        "\n".join(("[Service]", *lines, "ExecStart=/bin/kcm --kube-api-qps=${QPS} $MORE --kubeconfig=${K}"))
    )
    assert manager_flags(str(unit)) == ("--kube-api-qps=70", "--min-resync-period=1h0m0s", "--kube-api-burst=9")


def test_variables_of_a_pod(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    env = [
        {"name": "WHICH", "value": "*,-ttl"},
        {"name": "K", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    args = ["--controllers=$(WHICH)", "--kubeconfig=$(K)"]
    container = {"name": "kube-controller-manager", "args": args, "env": env}
    pod.write_text(json.dumps({"kind": "Pod", "spec": {"containers": [container]}}))
    assert manager_flags(str(pod)) == ("--controllers=*,-ttl",)


@pytest.mark.parametrize(
    ("env", "value", "flags"),
    [
        ({"A": "ttl", "B": "*,-$(A)"}, "$(B)", ("--controllers=*,-ttl",)),
        ({"B": "*,-$(A)", "A": "ttl", "C": "*"}, "$(C),-$(A)", ("--controllers=*,-ttl",)),
        ({"A": "ttl", "B": "$$(A)"}, "$(B)", ("--controllers=$(A)",)),
        ({"A": "ttl"}, "$$(A)", ("--controllers=$(A)",)),
        ({}, "$$(A)", ("--controllers=$(A)",)),
        ({"A": None}, "*$(A)", ("--controllers=*",)),
    ],
)
def test_variables_of_a_pod_are_expanded_in_order(
    tmp_path: Path, env: dict[str, str | None], value: str, flags: tuple[str, ...]
) -> None:
    pod = tmp_path / "pod.yaml"
    variables = [{"name": name, "value": each} for name, each in env.items()]
    container = {"name": "kube-controller-manager", "args": [f"--controllers={value}"], "env": variables}
    pod.write_text(json.dumps({"kind": "Pod", "spec": {"containers": [container]}}))
    assert manager_flags(str(pod)) == flags


def test_a_dollar_sign_in_a_unit(tmp_path: Path) -> None:
    unit = tmp_path / "kcm.service"
    unit.write_text("[Service]\nExecStart=/bin/kcm --controllers=$${A}\n")
    assert manager_flags(str(unit)) == ("--controllers=${A}",)


def test_a_component_config(tmp_path: Path) -> None:
    path = str(ROOT / "configs/kcm-config.yaml")
    assert manager_flags(path) == (f"--config={path}",)
    assert plan(settled(), (), Options(horizon_s=5, flags=manager_flags(path))).audit == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no systemd unit, no Pod and no KubeControllerManagerConfiguration"),
        ("kind: Deployment\n", "is no systemd unit"),
        ("kind: [", "--flags-from"),
        ("kind: Pod\nspec: {containers: [{name: x, command: [sleep]}]}\n", "no container of the Pod"),
        ("[Service]\nExecStart=/bin/kcm --node-monitor-gracious=1s\n", "unknown flag: --node-monitor-gracious"),
        ('[Service]\nExecStart=/bin/kcm --x="\n', "No closing quotation"),
        ('[Service]\nEnvironment=A="\nExecStart=/bin/kcm\n', "Environment: No closing quotation"),
        (
            "[Service]\nExecStart=/bin/kcm $ARGS\n",
            r"ExecStart has \$ARGS, which the file does not set: write its value",
        ),
        (
            "[Service]\nExecStart=/bin/kcm --controllers=${C}\n",
            r"--controllers has \$\{C\}, which the file does not set",
        ),
        (
            "kind: Pod\nspec: {containers: [{name: kube-controller-manager, args: [--controllers=$(B)], env: ["
            "{name: A, value: a}, {name: A, valueFrom: {}}, {name: B, value: x-$(C)}]}]}\n",
            r"--controllers has \$\(C\), which the file does not set",
        ),
        (
            "kind: Pod\nspec: {containers: [{name: kube-controller-manager, args: ['--controllers=$(A)$(A)'], env: ["
            f"{{name: A, value: {'a' * 100_000}}}]}}]}}\n",
            r"--controllers=\$\(A\)\$\(A\) is too long with the values",
        ),
        (
            "kind: Pod\nspec: {containers: [{name: kube-controller-manager, args: [--controllers=$(C)]}]}\n",
            r"--controllers has \$\(C\), which the file does not set",
        ),
    ],
)
def test_unsupported_files_are_one_error_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(PlanError, match=why) as raised:
        manager_flags(str(path))
    assert "\n" not in str(raised.value)

"""The manager's flags from manifests, units and configuration files."""

from pathlib import Path

import pytest

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
    ],
)
def test_unsupported_files_are_one_error_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(PlanError, match=why) as raised:
        manager_flags(str(path))
    assert "\n" not in str(raised.value)

"""The operations on volumes that are counted, and their results."""

import asyncio

import pytest

from kcm_cli.component.clock import RealClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.shared.storage_operations import StorageOperations


@pytest.mark.parametrize(
    ("error", "statuses"),
    [
        pytest.param(None, ["success"], id="done"),
        pytest.param(OSError(), ["fail-unknown"], id="failed"),
        pytest.param(asyncio.CancelledError(), [], id="cancelled"),
    ],
)
def test_result_of_an_operation(error: BaseException | None, statuses: list[str]) -> None:
    registry = Registry()
    operations = StorageOperations(registry, RealClock())

    def work() -> None:
        with operations.measured("kubernetes.io/csi", "volume_attach"):
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(type(error)):
            work()
    shown = registry.expose().decode()
    name = "storage_operation_duration_seconds_count"
    labels = 'migrated="false",operation_name="volume_attach",status="{}",volume_plugin="kubernetes.io/csi"'
    found = [one for one in ("success", "fail-unknown") if f"{name}{{{labels.format(one)}}} 1" in shown]
    assert found == statuses

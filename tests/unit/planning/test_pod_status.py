from datetime import UTC, datetime

import pytest

from kcm_cli.api.core import Pod, PodStatus
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.pod_status import status_patch

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("failed", "tracks", "known", "stated"),
    [
        pytest.param(True, True, 0, 7, id="with the phase"),
        pytest.param(True, False, 0, None, id="gate off"),
        pytest.param(True, False, 3, 7, id="gate off, stated before"),
        pytest.param(False, True, 3, None, id="the condition alone leaves it to the kubelet"),
    ],
)
def test_the_generation_in_the_status(failed: bool, tracks: bool, known: int, stated: int | None) -> None:
    pod = Pod(metadata=ObjectMeta(name="p", generation=7), status=PodStatus(observed_generation=known))
    condition = {"type": "DisruptionTarget", "status": "True"}
    patch = status_patch(pod, condition, NOW, failed=failed, tracks_generation=tracks)
    assert patch is not None
    assert patch.body["status"].get("observedGeneration") == stated

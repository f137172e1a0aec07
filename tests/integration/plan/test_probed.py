"""Plans say of a Service what a prober saw while the change was made on a real control plane (tests/plans/probed.py).

The others are set beside their recordings by ``python -m tests.plans.probed --write``.
"""

import pytest

from tests.plans.probed import Probed, beside, changes, recorded

FEWEST = 12
CHECKED = frozenset(
    (
        "one-of-one-unavailable",
        "recreated-after-a-pause",
        "image-without-a-registry",
        "drain-of-two-without-a-budget",
        "node-removed-under-slow-pods",
    )
)


def test_each_change_is_recorded() -> None:
    assert len(changes()) == len(recorded()) >= FEWEST


@pytest.mark.parametrize("one", [one for one in changes() if one.name in CHECKED], ids=lambda one: one.name)
def test_a_service_is_as_available_as_planned(one: Probed) -> None:
    found = beside(one)
    assert found.agrees, found

"""How many ready endpoints a Service is to have."""

import pytest

from kcm_cli.plan.answer import Availability, Object
from kcm_cli.plan.availability import _wanted
from kcm_cli.plan.losses import Serving

WEB = Object("Deployment", "n", "web")


def of(before: int, wanted: int) -> dict[Object, Availability]:
    return {WEB: Availability(WEB, before, wanted, 0, 0.0, ())}


@pytest.mark.parametrize(
    ("before", "final", "workloads", "wanted"),
    [
        (4, 4, of(4, 4), 4),
        (4, 3, of(4, 4), 4),  # one never came back
        (4, 3, {}, 4),
        (4, 2, of(4, 2), 2),  # scaled down
        (4, 1, of(4, 2), 2),
        (4, 3, of(4, 2), 3),
        (4, 6, of(4, 4), 4),  # scaled up
        (4, 0, {}, 4),  # it selects others, or none
    ],
)
def test_what_a_service_is_to_have(before: int, final: int, workloads: dict[Object, Availability], wanted: int) -> None:
    ready = [(0.0, before), (1.0, final)]
    assert _wanted(ready, Serving(final, frozenset([WEB])), workloads) == wanted

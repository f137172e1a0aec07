"""The lock of each controller while controllers move to a cloud controller manager (leader migration).

upstream: staging/src/k8s.io/controller-manager/pkg/leadermigration
"""

from collections.abc import Mapping, Sequence
from enum import Enum

COMPONENT = "kube-controller-manager"
DEFAULT_NAME = "cloud-provider-extraction-migration"
DEFAULT_LEADERS = (
    ("route-controller", "*"),
    ("service-controller", "*"),
    ("cloud-node-lifecycle-controller", "*"),
)


class Lock(Enum):
    """The lock under which a controller runs."""

    MAIN = "main"
    MIGRATION = "migration"
    ELSEWHERE = "elsewhere"


def locks(leaders: Sequence[tuple[str, str]], aliases: Mapping[str, str]) -> Mapping[str, Lock]:
    """The lock of each named controller. ``leaders``: pairs of a controller and the component that runs it."""
    found: dict[str, Lock] = {}
    for controller, component in leaders:
        ours = component in (COMPONENT, "*")
        found[aliases.get(controller, controller)] = Lock.MIGRATION if ours else Lock.ELSEWHERE
    return found

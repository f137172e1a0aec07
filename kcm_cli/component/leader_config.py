"""Options of leader election and leader migration."""

from collections.abc import Iterator
from dataclasses import replace  # noqa: TID251  # option groups are dataclasses
from typing import ClassVar

from kcm_cli.component.options import OptionGroup, duration, option
from kcm_cli.component.value_types import BOOL, CONTROLLER_LEADERS, STRING

JITTER_FACTOR = 1.2
"""A retry comes after one period, and a random part of so many more."""
"""A candidate waits between one and 2.2 retry periods, so the deadline must leave room for more than one."""

LOCK = "leases"
FORMER_LOCKS = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
"""Lock types of releases before 1.24; unit files still name them. They are read as ``leases``."""


class LeaderElectionConfig(OptionGroup):
    """Options of leader election on a Lease."""

    SECTION: ClassVar[str] = "Generic"

    enabled: bool = option(
        BOOL,
        True,
        flag="leader-elect",
        key="leaderElect",
        help="Acquire a lease before starting controllers. Needed if more than one replica runs.",
    )
    lease_duration_s: float = duration(
        15.0,
        flag="leader-elect-lease-duration",
        key="leaseDuration",
        help=(
            "How long other candidates wait after the last observed renewal before they try to "
            "acquire the lease. This is the longest time without a leader after one fails."
        ),
    )
    renew_deadline_s: float = duration(
        10.0,
        flag="leader-elect-renew-deadline",
        key="renewDeadline",
        help=("How long the leader retries a renewal before it stops leading. Less than the lease duration."),
    )
    retry_period_s: float = duration(
        2.0,
        flag="leader-elect-retry-period",
        key="retryPeriod",
        help="How long to wait between two attempts to acquire or renew the lease.",
    )
    resource_lock: str = option(
        STRING,
        LOCK,
        flag="leader-elect-resource-lock",
        key="resourceLock",
        choices=(LOCK,),
        help="Kind of the lock object. leases is the only one.",
    )
    resource_name: str = option(
        STRING,
        "kube-controller-manager",
        flag="leader-elect-resource-name",
        key="resourceName",
        help="Name of the lock object.",
    )
    resource_namespace: str = option(
        STRING,
        "kube-system",
        flag="leader-elect-resource-namespace",
        key="resourceNamespace",
        help="Namespace of the lock object.",
    )

    def completed(self) -> "LeaderElectionConfig":
        """With leases instead of a lock of an earlier release."""
        return replace(self, resource_lock=LOCK) if self.resource_lock in FORMER_LOCKS else self

    def problems(self) -> Iterator[str]:
        if not self.enabled:
            return
        for name, value in (
            ("leader-elect-lease-duration", self.lease_duration_s),
            ("leader-elect-renew-deadline", self.renew_deadline_s),
            ("leader-elect-retry-period", self.retry_period_s),
        ):
            if value <= 0:
                yield f"{name} must be greater than zero"
        if self.lease_duration_s <= self.renew_deadline_s:
            yield "leader-elect-lease-duration must be greater than leader-elect-renew-deadline"
        if self.renew_deadline_s <= self.retry_period_s * JITTER_FACTOR:
            yield f"leader-elect-renew-deadline must be greater than leader-elect-retry-period * {JITTER_FACTOR}"
        if self.resource_lock != LOCK:
            yield f'leader-elect-resource-lock must be "{LOCK}", but got "{self.resource_lock}"'
        for name, text in (
            ("leader-elect-resource-name", self.resource_name),
            ("leader-elect-resource-namespace", self.resource_namespace),
        ):
            if not text:
                yield f"{name} must not be empty"


class LeaderMigrationConfig(OptionGroup):
    """Which component leads which controller, while controllers migrate to a cloud controller manager."""

    leader_name: str = option(STRING, "", key="leaderName", help="Name of the second lock.")
    resource_lock: str = option(
        STRING, "", key="resourceLock", help="Kind of the second lock object. leases is the only one."
    )
    controller_leaders: tuple[tuple[str, str], ...] = option(
        CONTROLLER_LEADERS,
        (),
        key="controllerLeaders",
        help="A controller, and the component that runs it under the second lock.",
    )

    def problems(self) -> Iterator[str]:
        if self == LeaderMigrationConfig():
            return
        if not self.leader_name:
            yield "leaderName of the leader migration must be set"
        if self.resource_lock not in (LOCK, "endpoints"):
            yield f'resourceLock of the leader migration must be {LOCK} or endpoints, but got "{self.resource_lock}"'
        for index, (name, component) in enumerate(self.controller_leaders):
            if not name or not component:
                yield f"controllerLeaders[{index}] of the leader migration must have a name and a component"


DEFAULT_MIGRATION = LeaderMigrationConfig(
    leader_name="cloud-provider-extraction-migration",
    resource_lock=LOCK,
    controller_leaders=(
        ("route-controller", "*"),
        ("service-controller", "*"),
        ("cloud-node-lifecycle-controller", "*"),
    ),
)
"""What is migrated when leader migration is on and no file says otherwise."""

"""What an election needs to know, and which values contradict each other.

upstream: staging/src/k8s.io/component-base/config/validation, client-
go/tools/leaderelection#NewLeaderElector
"""

from dataclasses import dataclass

JITTER_FACTOR = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionConfig:
    """One election. Durations in seconds; ``identity`` is unique to the process."""

    identity: str
    name: str = "kube-controller-manager"
    namespace: str = "kube-system"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    @property
    def request_timeout_s(self) -> float:
        """How long one request of the election may take."""
        return max(1.0, self.renew_deadline_s / 2)


def problems(config: ElectionConfig) -> list[str]:
    """Everything that makes an election with these values impossible, one line each;

    empty if nothing does.
    """
    found: list[str] = []
    durations = (
        ("leaseDuration", config.lease_duration_s),
        ("renewDeadline", config.renew_deadline_s),
        ("retryPeriod", config.retry_period_s),
    )
    found.extend(f"{name} must be greater than zero" for name, value in durations if value <= 0)
    if config.lease_duration_s < 1:
        found.append("leaseDuration must be at least one second: a Lease holds whole seconds")
    if config.lease_duration_s <= config.renew_deadline_s:
        found.append("leaseDuration must be greater than renewDeadline")
    if config.renew_deadline_s <= JITTER_FACTOR * config.retry_period_s:
        found.append(f"renewDeadline must be greater than retryPeriod*{JITTER_FACTOR}")
    named = (("resourceName", config.name), ("resourceNamespace", config.namespace))
    found.extend(f"{name} must not be empty" for name, value in named if not value)
    return found

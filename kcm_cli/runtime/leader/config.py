"""The configuration of an election. Flags are validated in component.leader_config."""

import msgspec

JITTER_FACTOR = 1.2


class ElectionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One election. Durations in seconds; ``identity`` is unique to the process.

    ``coordinated``: the API server chooses among the LeaseCandidates (gate CoordinatedLeaderElection).
    """

    identity: str
    name: str = "kube-controller-manager"
    namespace: str = "kube-system"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    coordinated: bool = False

    @property
    def duration_s(self) -> int:
        """The lease duration in whole seconds, as a Lease holds it."""
        return max(1, int(self.lease_duration_s))

    @property
    def request_timeout_s(self) -> float:
        """How long one request of the election may take."""
        return max(1.0, self.renew_deadline_s / 2)

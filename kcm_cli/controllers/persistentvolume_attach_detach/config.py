"""Options of the persistentvolume-attach-detach-controller."""

from collections.abc import Iterator
from dataclasses import dataclass

from kcm_cli.component.kinds import BOOL
from kcm_cli.component.options import duration, option


@dataclass(frozen=True, slots=True)
class AttachDetachConfig:
    """Options of the persistentvolume-attach-detach controller."""

    disable_reconciler_sync: bool = option(
        BOOL,
        False,
        flag="disable-attach-detach-reconcile-sync",
        key="DisableAttachDetachReconcilerSync",
        help=(
            "Do not compare what is attached with what nodes report. Volumes may then be taken for attached "
            "when they are not."
        ),
    )
    reconciler_sync_period_s: float = duration(
        60.0,
        flag="attach-detach-reconcile-sync-period",
        key="ReconcilerSyncLoopPeriod",
        help=(
            "How often what is attached is compared with what nodes report. At least one second; a long "
            "period lets pods wait on stale state."
        ),
    )
    disable_force_detach_on_timeout: bool = option(
        BOOL,
        False,
        flag="disable-force-detach-on-timeout",
        key="disableForceDetachOnTimeout",
        help=(
            "Never detach a volume because its node failed to unmount it in time; it then stays attached "
            "until the node is marked out of service."
        ),
    )

    def problems(self) -> Iterator[str]:
        if self.reconciler_sync_period_s < 1:
            yield "attach-detach-reconcile-sync-period must be at least one second"

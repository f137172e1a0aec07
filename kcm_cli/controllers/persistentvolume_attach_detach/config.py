"""Options of the persistentvolume-attach-detach-controller."""

from collections.abc import Iterator

from kcm_cli.component.options import OptionGroup, duration, option
from kcm_cli.component.value_types import BOOL


class AttachDetachConfig(OptionGroup):
    disable_reconciler_sync: bool = option(
        BOOL,
        False,
        flag="disable-attach-detach-reconcile-sync",
        key="DisableAttachDetachReconcilerSync",
        help=(
            "Do not check attached volumes against what nodes report. Volumes may then be considered "
            "attached although they are not."
        ),
    )
    reconciler_sync_period_s: float = duration(
        60.0,
        flag="attach-detach-reconcile-sync-period",
        key="ReconcilerSyncLoopPeriod",
        help=(
            "How often to check attached volumes against what nodes report. At least one second. "
            "With a long period, pods may wait because of outdated state."
        ),
    )
    disable_force_detach_on_timeout: bool = option(
        BOOL,
        False,
        flag="disable-force-detach-on-timeout",
        key="disableForceDetachOnTimeout",
        help=(
            "Never detach a volume because its node did not unmount it in time. It stays attached "
            "until the node has the out-of-service taint."
        ),
    )

    def problems(self) -> Iterator[str]:
        if self.reconciler_sync_period_s < 1:
            yield "attach-detach-reconcile-sync-period must be at least one second"

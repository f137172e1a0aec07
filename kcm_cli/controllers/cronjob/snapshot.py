"""What the CronJob controller reads for one CronJob."""

from datetime import UTC, tzinfo

import msgspec

from kcm_cli.api.batch import CronJob, Job


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A CronJob and the Jobs that name it as their controller.

    known: uids of Jobs that the API server has in status.active although the cache does not. deleted: uids in
    status.active of Jobs that exist no more, as the API server says. local: the machine's time zone, for schedules
    without one.
    """

    cron_job: CronJob
    jobs: tuple[Job, ...] = ()
    known: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    local: tzinfo = UTC

"""The snapshot of one CronJob."""

from datetime import UTC, tzinfo

import msgspec

from kcm_cli.api.batch import CronJob, Job


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A CronJob and the Jobs that it controls.

    known: uids of Jobs that are in status.active on the API server, but not in the cache. deleted: uids in
    status.active of Jobs that the API server does not have. local: the machine's time zone, for schedules without one.
    """

    cron_job: CronJob
    jobs: tuple[Job, ...] = ()
    known: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    local: tzinfo = UTC

"""kcm as upstream's integration tests start it in the place of the controllers that they have in process.

    python tests/upstream/launcher.py FLAGS...

Four things that tests need and no flag gives: constants set before kcm starts (KCM_TUNE: a JSON object of names of
TUNABLE and values), lines ``SYNCED 0|1`` and once ``READY`` on standard output as caches fill, a wall clock that is as
many seconds ahead as a line on standard input says, and an end when standard input ends.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

TUNABLE = frozenset(
    {
        "controllers.disruption.plan:STALE_CONDITION_S",
        "controllers.garbage_collector.controller:SYNC_TIMEOUT_S",
        "controllers.garbage_collector.controller:PERIOD_S",
        "controllers.job.plan.spec:BATCH_PERIOD_S",
        "controllers.job.plan.spec:MAX_PODS_PER_SYNC",
        "controllers.job.plan.spec:MAX_POD_BACKOFF_S",
        "controllers.job.plan.spec:MAX_UNCOUNTED",
        "controllers.job.plan.spec:POD_BACKOFF_S",
        "controllers.legacy_serviceaccount_token_cleaner.controller:PERIOD_S",
        "controllers.pod_garbage_collector.controller:PERIOD_S",
        "controllers.pod_garbage_collector.controller:QUARANTINE_S",
    }
)
"""What tests set: module of kcm_cli and the name of a number in it."""
READY_S = 10.0
"""READY comes after this time even if a cache is not full: some never are."""


def tune(values: Mapping[str, float]) -> None:
    """Set constants. Raises KeyError for a name that is not in TUNABLE, AttributeError for one that kcm lacks."""
    for path, value in values.items():
        if path not in TUNABLE:
            raise KeyError(path)
        module_name, _, name = path.partition(":")
        module = importlib.import_module(f"kcm_cli.{module_name}")
        setattr(module, name, type(getattr(module, name))(value))


def report_caches() -> None:
    """Write SYNCED and READY once informers are started. Controllers may ask for further ones meanwhile."""
    from kcm_cli.runtime.informers import Informers
    from kcm_cli.runtime.tasks import Tasks

    start = Informers.start
    watched: list[asyncio.Task[None]] = []

    async def watch(informers: Informers) -> None:
        loop = asyncio.get_running_loop()
        deadline, calm, reported, ready = loop.time() + READY_S, 0, None, False
        while True:
            full = all(informer.synced.is_set() for informer in informers.all())
            if full != reported:
                os.write(1, b"SYNCED %d\n" % full)
                reported = full
            calm = calm + 1 if full else 0
            if not ready and (calm == 3 or loop.time() > deadline):
                os.write(1, b"READY\n")
                ready = True
            await asyncio.sleep(0.2 if ready else 0.03)

    def start_and_watch(informers: Informers, tasks: Tasks) -> None:
        start(informers, tasks)
        if not watched:
            watched.append(asyncio.create_task(watch(informers)))

    Informers.start = start_and_watch  # type: ignore[method-assign]


def follow_stdin() -> None:
    """Move the wall clock as standard input says; end with it."""
    ahead = timedelta()

    def now(clock: object) -> datetime:
        return datetime.now(UTC) + ahead

    def read() -> None:
        nonlocal ahead
        for line in sys.stdin:
            from kcm_cli.component.clock import LoopClock

            ahead = timedelta(seconds=float(line))
            LoopClock.now = now  # type: ignore[method-assign,assignment]
        os._exit(9)

    threading.Thread(target=read, daemon=True).start()


if __name__ == "__main__":
    follow_stdin()
    tune(json.loads(os.environ.get("KCM_TUNE") or "null") or {})
    report_caches()
    from kcm_cli.cli.main import main

    sys.argv[0] = "kcm"
    sys.exit(main())

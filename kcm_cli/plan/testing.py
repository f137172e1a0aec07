"""Plans in tests: what the pytest fixture ``kcm_twin`` gives."""

import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from kcm_cli.component.virtual import run
from kcm_cli.plan.answer import Answer
from kcm_cli.plan.changes import Change, Options
from kcm_cli.plan.files import load
from kcm_cli.plan.planning import configured, plan
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.plan.twin.twin import Twin

T = TypeVar("T")


class TwinOf:
    """A snapshot, to plan on and to live in. ``options``: of all its plans, where they do not say otherwise."""

    def __init__(self, snapshot: Snapshot | str | os.PathLike[str], options: Options | None = None) -> None:
        """Raises PlanError for a file that cannot be read."""
        self.snapshot = snapshot if isinstance(snapshot, Snapshot) else load(snapshot)
        self.options = options or Options()

    def plan(self, *changes: Change, horizon_s: float | None = None, options: Options | None = None) -> Answer:
        """What follows from these changes. Raises PlanError."""
        chosen = options or self.options
        if horizon_s is not None:
            chosen = replace(chosen, horizon_s=horizon_s)
        return plan(self.snapshot, changes, chosen)

    def audit(self, horizon_s: float = 600.0) -> Answer:
        """What kcm would write if it led now. Raises PlanError."""
        return self.plan(horizon_s=horizon_s)

    def live(self, story: Callable[[Twin], Awaitable[T]]) -> T:
        """Run a story on a fresh twin whose caches are full; what it returns.

        ``twin.client`` writes as an administrator, ``twin.clock.sleep`` lets time pass, ``twin.store`` has the objects.
        """

        async def whole() -> T:
            async with Twin(self.snapshot, configured(self.options.flags), self.options.seeds[0]) as twin:
                await twin.settle()
                return await story(twin)

        return run(whole())

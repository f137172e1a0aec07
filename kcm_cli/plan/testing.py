"""Plans in tests: the objects of the pytest fixture ``kcm_twin``."""

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
    """A snapshot for plans and twins. ``options``: the default of its plans."""

    def __init__(self, snapshot: Snapshot | str | os.PathLike[str], options: Options | None = None) -> None:
        """Raises PlanError for an invalid file."""
        self.snapshot = snapshot if isinstance(snapshot, Snapshot) else load(snapshot)
        self.options = options or Options()

    def plan(self, *changes: Change, horizon_s: float | None = None, options: Options | None = None) -> Answer:
        """The answer for these changes. Raises PlanError."""
        chosen = options or self.options
        if horizon_s is not None:
            chosen = replace(chosen, horizon_s=horizon_s)
        return plan(self.snapshot, changes, chosen)

    def audit(self, horizon_s: float = 600.0) -> Answer:
        """The writes of kcm if it took over now. Raises PlanError."""
        return self.plan(horizon_s=horizon_s)

    def live(self, story: Callable[[Twin], Awaitable[T]]) -> T:
        """Run ``story`` on a new twin whose caches have synced. Returns its result."""

        async def whole() -> T:
            async with Twin(self.snapshot, configured(self.options.flags), self.options.seeds[0]) as twin:
                await twin.settle()
                return await story(twin)

        return run(whole())

"""Writes to EndpointSlices, noted by the tracker; what went wrong in the words of the events.

upstream: staging/src/k8s.io/endpointslice/reconciler.go#finalize
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.controllers.shared.slice_tracker import SliceTracker
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Action, Create, Delete, Plan, Update


class SliceSyncError(SyncError):
    """Slices could not all be written, or not all endpoints be placed; each of the reasons once.

    upstream: apimachinery pkg/util/errors#aggregate.Error
    """

    def __init__(self, problems: Iterable[str]) -> None:
        texts = list(dict.fromkeys(problems))
        super().__init__(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


@dataclass(frozen=True, slots=True)
class WriteFailure:
    """The write that failed, and why."""

    action: Action
    error: Exception

    def text(self, owner: str) -> str:
        """``failed to update web-abc EndpointSlice for Service ns/web: …``; ``owner`` with its kind."""
        match self.action:
            case Create():
                return f"failed to create EndpointSlice for {owner}: {self.error}"
            case Update(obj=slice_):
                return f"failed to update {slice_.name} EndpointSlice for {owner}: {self.error}"
            case Delete(name=name):
                return f"failed to delete {name} EndpointSlice for {owner}: {self.error}"
        return str(self.error)


class SliceWrites:
    """Carries out plans over slices. ``count`` is called for each write: create, update or delete."""

    def __init__(self, executor: Executor, tracker: SliceTracker, count: Callable[[str], None]) -> None:
        self._executor = executor
        self._tracker = tracker
        self._count = count

    async def run(self, key: str, plan: Plan) -> WriteFailure | None:
        """Write the slices of a Service (its key) until something fails; returns that."""
        outcome = await self._executor.run(plan)
        for done in outcome.done:
            action = done.action
            if isinstance(action, Delete):
                self._tracker.deleted(key, f"{action.namespace}/{action.name}", action.uid)
                self._count("delete")
            elif isinstance(done.result, EndpointSlice):
                self._tracker.wrote(done.result)
                self._count("create" if isinstance(action, Create) else "update")
        if not outcome.failed:
            return None
        failed = outcome.failed[0]
        return WriteFailure(failed.action, failed.error)

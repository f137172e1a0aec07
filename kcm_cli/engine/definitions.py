"""Tells when CustomResourceDefinitions have changed, so that discovery need not be polled for new kinds.

Upstream polls discovery every 30 s, and so does ``Refreshes``. A definition that is not served yet brings the next
refresh forward. Without the right to list definitions the period remains.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kcm_cli.api.apiextensions import CUSTOM_RESOURCE_DEFINITIONS
from kcm_cli.api.resource import Resource
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.passes import Loop
from kcm_cli.machinery.meta import Object, SlimObject
from kcm_cli.rest.mapper import SETTLE_S, Mapper

BATCH_S = 0.5
"""Definitions that change within this time cause one refresh."""
PERIOD_S = 30.0
"""The longest pause between two refreshes."""


class Definitions:
    """When definitions were last added, changed or deleted. They are followed from the first question on, in the cache
    of metadata that the garbage collector also has."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._followed = False
        self._last_s = float("-inf")
        self._recent: dict[str, float] = {}
        self.changed = asyncio.Event()
        """Set by each change."""

    def follow(self) -> None:
        """Start to watch definitions, unless that was done."""
        if self._followed:
            return
        self._followed = True
        gvr, kind = CUSTOM_RESOURCE_DEFINITIONS.gvr, CUSTOM_RESOURCE_DEFINITIONS.kind
        informer = self._context.informers.metadata(Resource(gvr, kind, SlimObject, namespaced=False))
        informer.listen(on_add=self._noted, on_update=lambda old, new: self._noted(new), on_delete=self._deleted)
        self._context.start_informers()

    def last_s(self) -> float:
        """The monotonic time of the last change."""
        self.follow()
        return self._last_s

    def recent(self) -> set[str]:
        """The names (``plural.group``) of the definitions that were added or changed in the last SETTLE_S seconds."""
        oldest = self._context.clock.monotonic() - SETTLE_S
        self._recent = {name: at for name, at in self._recent.items() if at >= oldest}
        return set(self._recent)

    def _noted(self, definition: Object) -> None:
        self._recent[definition.name] = self._last_s = self._context.clock.monotonic()
        self.changed.set()

    def _deleted(self, definition: Object) -> None:
        self._recent.pop(definition.name, None)
        self._last_s = self._context.clock.monotonic()


def mapper(context: ControllerContext) -> Mapper:
    """A mapper that finds the kinds of new definitions at once."""
    return Mapper(context.client, context.clock, Definitions(context).last_s)


class Refreshes:
    """Repeats ``step``, which follows what discovery lists.

    awaits: whether some of these definitions (names) should be followed, and are not yet. The next step follows after
    PERIOD_S; if a definition that has just changed is awaited, after BATCH_S and then after pauses that double, until
    it is followed or SETTLE_S have passed: some definitions are never served.
    """

    def __init__(
        self, context: ControllerContext, step: Callable[[], Awaitable[None]], awaits: Callable[[set[str]], bool]
    ) -> None:
        self._clock = context.clock
        self._awaits = awaits
        self._definitions = Definitions(context)
        self._loop = Loop(
            name=context.name, clock=context.clock, step=step, pause_s=lambda: PERIOD_S, pause=self._pause
        )

    async def run(self) -> None:
        """Until cancelled."""
        self._definitions.follow()
        await self._loop.run()

    async def _pause(self, pause_s: float) -> None:
        ends = self._clock.monotonic() + pause_s
        changed = self._definitions.changed
        while (rest_s := ends - self._clock.monotonic()) > 0:
            if self._awaits(self._definitions.recent()):
                age_s = self._clock.monotonic() - self._definitions.last_s()
                await self._clock.sleep(min(max(BATCH_S, age_s), rest_s))
                return
            changed.clear()
            timer = self._clock.call_later(rest_s, changed.set)
            try:
                await changed.wait()
            finally:
                timer.cancel()


def name_of(group: str, plural: str) -> str:
    """The name of the definition of a custom resource."""
    return f"{plural}.{group}"

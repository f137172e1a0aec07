"""Executes a plan: sets expectations, then writes, then emits Events.

Guarantees: every action is in the outcome exactly once, as done, failed or skipped. Expectations of failed and skipped
actions are withdrawn, so that a key never waits for a write that was not made; except those of creations in a
terminating namespace, which cannot succeed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from kcm_cli.component.clock import Clock
from kcm_cli.engine.door import Door
from kcm_cli.engine.writes import send, tell
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import (
    Action,
    Create,
    Delete,
    Done,
    Expect,
    Failed,
    Mode,
    Notice,
    Outcome,
    Plan,
    Stage,
)
from kcm_cli.rest.errors import NotFound, namespace_terminating
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.expectations import Expectations

T = TypeVar("T")
SendOne = Callable[[Action], Awaitable[Object | None]]

MAX_BATCH = 500
"""The maximum number of writes that slow start sends at the same time."""


class Recorder(Protocol):
    """Emits Events."""

    def emit(self, notice: Notice) -> None:
        """Emit an Event. Returns at once; it is written in the background."""


class Executor:
    """Executes the plans of one controller with its client, recorder and expectations.

    ``send_one``: sends an action, if the controller has actions of its own. ``alone``: errors that say nothing about
    the actions that do not follow in order.
    """

    def __init__(
        self,
        client: Door,
        recorder: Recorder,
        expectations: Expectations,
        clock: Clock,
        send_one: SendOne | None = None,
        alone: tuple[type[Exception], ...] = (),
    ) -> None:
        self.client = client
        self._send = partial(send, client) if send_one is None else send_one
        self._alone = alone
        self._recorder = recorder
        self._expectations = expectations
        self._clock = clock

    async def run(self, plan: Plan) -> Outcome:
        """Run the stages in order. Does not raise errors of the API or of an action."""
        outcome = Outcome()
        for stage in plan:
            if outcome.failed and not stage.anyway:
                outcome = outcome.merge(Outcome(skipped=stage.actions))
            else:
                outcome = outcome.merge(await self.stage(stage))
        return outcome

    async def stage(self, stage: Stage) -> Outcome:
        """Run one stage."""
        if stage.remark is not None:
            tell(stage.remark)
        expect = stage.expect
        if expect is not None:
            now = self._clock.monotonic()
            self._expectations.expect(
                expect.key,
                now,
                uid=expect.uid,
                creations=expect.creations,
                deletions=expect.deletions,
                more=expect.more,
            )
        results: list[Done | Failed] = []
        left = stage.tolerates
        for batch in _batches_of(stage):
            answers = await self._together(batch, expect)
            results += answers
            if not (errors := [answer.error for answer in answers if isinstance(answer, Failed)]):
                continue
            left -= sum(stage.mode is Mode.SEQUENTIAL or not isinstance(error, self._alone) for error in errors)
            if left < 0 or any(map(namespace_terminating, errors)):
                return _gathered(results, self._skip(stage.actions[len(results) :], expect))
        return _gathered(results)

    async def _together(self, actions: Sequence[Action], expect: Expect | None) -> list[Done | Failed]:
        if len(actions) == 1:
            return [await self._one(actions[0], expect)]
        return await asyncio.gather(*(self._one(action, expect) for action in actions))

    async def _one(self, action: Action, expect: Expect | None) -> Done | Failed:
        try:
            result = await self._send(action)
        except (RequestError, SyncError) as error:
            doomed = namespace_terminating(error)
            if not (doomed and isinstance(action, Create)):  # otherwise each deleted pod would cause another attempt
                self._unexpect(action, expect)
            if isinstance(action, Delete) and isinstance(error, NotFound):
                return Done(action)  # deleted already
            if action.failed is not None and not doomed:
                self._emit(action.failed, str(error), None)
            return Failed(action, error)
        if action.done is not None:
            self._emit(action.done, "", result)
        return Done(action, result)

    def _unexpect(self, action: Action, expect: Expect | None) -> None:
        if expect is None:
            return
        if isinstance(action, Create):
            self._expectations.creation_observed(expect.key)
        elif isinstance(action, Delete):
            self._expectations.deletion_observed(expect.key, f"{action.namespace}/{action.name}")

    def _skip(self, actions: tuple[Action, ...], expect: Expect | None) -> tuple[Action, ...]:
        for action in actions:
            self._unexpect(action, expect)
        return actions

    def _emit(self, notice: Notice, error: str, result: Object | None) -> None:
        name = result.name if result is not None else ""
        message = notice.message.replace("{name}", name).replace("{error}", error)
        self._recorder.emit(Notice(notice.ref, notice.type, notice.reason, message))


def _gathered(results: Iterable[Done | Failed], skipped: tuple[Action, ...] = ()) -> Outcome:
    done = tuple(result for result in results if isinstance(result, Done))
    failed = tuple(result for result in results if isinstance(result, Failed))
    return Outcome(done, failed, skipped)


def _batches_of(stage: Stage) -> Iterable[Sequence[Action]]:
    """The actions of a stage that are sent at the same time, in order."""
    if stage.mode is Mode.PARALLEL:
        return (stage.actions,)
    return batches(stage.actions) if stage.mode is Mode.SLOW_START else ((action,) for action in stage.actions)


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slow start: 1, 2, 4, … items in their order, at most MAX_BATCH, so that a server that refuses one creation
    does not get a thousand.

    upstream: pkg/controller/replicaset/replica_set.go#slowStartBatch
    """
    position, size = 0, 1
    while position < len(items):
        yield items[position : position + size]
        position += size
        size = min(2 * size, MAX_BATCH)

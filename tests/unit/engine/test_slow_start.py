import asyncio
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.execute import Executor, batches
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Delete, Mode, Outcome, Stage
from kcm_cli.runtime.expectations import Expectations
from tests.kit.world import EPOCH


class Alone(SyncError):
    """Of one action only."""


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(0, []), (1, [1]), (3, [1, 2]), (10, [1, 2, 4, 3]), (1600, [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 89])],
)
def test_sizes(count, sizes):
    assert [len(batch) for batch in batches(range(count))] == sizes


@given(st.lists(st.integers()))
def test_everything_once_in_order(items):
    assert [item for batch in batches(items) for item in batch] == items


def run(errors: list[type[Exception] | None], *stages: Stage) -> Outcome:
    """Sends the actions of the stages, whose names are indexes of ``errors``."""

    async def send(action):
        error = errors[int(action.name)]
        if error is not None:
            raise error("no")

    async def work() -> Outcome:
        executor = Executor(None, None, Expectations(), LoopClock(EPOCH), send, (Alone,))  # type: ignore[arg-type]
        return await executor.run(stages)

    return asyncio.run(work())


def stage(names, mode=Mode.SLOW_START, **how):
    return Stage(tuple(Delete(PODS, "ns", str(name)) for name in names), mode, **how)


@given(st.lists(st.sampled_from([None, Alone, SyncError]), max_size=40), st.integers(0, 4))
def test_what_follows_a_batch_with_too_many_failures_is_skipped(errors, tolerates):
    outcome = run(errors, stage(range(len(errors)), tolerates=tolerates))
    ends = list(accumulate(map(len, batches(errors))))
    sent = next((end for end in ends if errors[:end].count(SyncError) > tolerates), len(errors))
    assert len(outcome.skipped) == len(errors) - sent
    assert len(outcome.failed) == sent - errors[:sent].count(None)


@pytest.mark.parametrize(("anyway", "skipped"), [(False, ["1"]), (True, [])])
def test_a_stage_is_executed_anyway(anyway, skipped):
    outcome = run([SyncError, None], stage([0]), stage([1], anyway=anyway))
    assert [action.name for action in outcome.skipped] == skipped


@pytest.mark.parametrize("error", [SyncError, Alone])
@pytest.mark.parametrize(("tolerates", "skipped"), [(0, ["2", "3"]), (1, ["3"]), (4, [])])
def test_in_sequence_a_failure_that_is_not_tolerated_skips_the_rest(error, tolerates, skipped):
    outcome = run([None, error, error, None], stage(range(4), Mode.SEQUENTIAL, tolerates=tolerates))
    assert [one.name for one in outcome.skipped] == skipped

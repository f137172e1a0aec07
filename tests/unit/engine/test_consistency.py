"""Waiting for caches that have not caught up with our own writes."""

import random

import pytest

from kcm_cli.api.apps import STATEFUL_SETS
from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.freshness import Consistency
from kcm_cli.machinery.meta import ObjectMeta, PartialObject
from kcm_cli.runtime.informer import Informer


def written(version):
    return PartialObject(metadata=ObjectMeta("p", "ns", "u", version))


@pytest.fixture
def world():
    """(consistency, informer of pods, informer of sets, queued keys, what is called back later)."""
    queued, timers = [], []
    consistency = Consistency(queued.append, lambda delay_s, callback: timers.append(callback))
    clock, rng = LoopClock(), random.Random(1)
    pods = Informer(PODS, None, clock, rng)
    sets = Informer(STATEFUL_SETS, None, clock, rng)
    consistency.follow(pods, sets)
    return consistency, pods, sets, queued, timers


def show(informer, name, version):
    informer._put(informer.resource.view(metadata=ObjectMeta(name, "ns", name, version)))


def test_a_key_that_wrote_nothing_waits_for_nothing(world):
    assert world[0].behind("ns/a") is None


def test_a_key_waits_until_its_write_is_seen_and_is_then_queued(world):
    consistency, pods, sets, queued, _ = world
    consistency.wrote("ns/a", pods, written("7"))
    assert consistency.behind("ns/a") is pods
    show(sets, "s", "9")
    show(pods, "other", "6")
    assert (consistency.behind("ns/a"), queued) == (pods, [])
    show(pods, "p", "7")
    assert (consistency.behind("ns/a"), queued) == (None, ["ns/a"])


def test_a_later_version_of_anything_of_the_kind_is_enough(world):
    consistency, pods, *_ = world
    consistency.wrote("ns/a", pods, written("7"))
    show(pods, "other", "8")
    assert consistency.behind("ns/a") is None


def test_a_bookmark_is_enough(world):
    consistency, pods, *_ = world
    consistency.wrote("ns/a", pods, written("7"))
    pods.last_version = "7"
    assert consistency.behind("ns/a") is None


def test_the_last_write_counts_and_all_kinds_do(world):
    consistency, pods, sets, *_ = world
    for version in ("7", "5"):
        consistency.wrote("ns/a", pods, written(version))
    consistency.wrote("ns/a", sets, written("8"))
    show(sets, "s", "8")
    show(pods, "p", "6")
    assert consistency.behind("ns/a") is pods


def test_keys_do_not_wait_for_each_other_nor_for_an_owner_that_is_gone(world):
    consistency, pods, *_ = world
    consistency.wrote("ns/a", pods, written("7"))
    assert consistency.behind("ns/b") is None
    consistency.forget("ns/a")
    assert consistency.behind("ns/a") is None


@pytest.mark.parametrize(
    ("shown", "expected"), [((), ["ns/a"]), (("7",), ["ns/a"])], ids=["the news never come", "they have come"]
)
def test_a_key_is_queued_once_by_the_news_or_after_a_while(world, shown, expected):
    consistency, pods, _, queued, timers = world
    consistency.wrote("ns/a", pods, written("7"))
    for _ in range(2):
        consistency.behind("ns/a")
    for version in shown:
        show(pods, "p", version)
    assert len(timers) == 1
    timers[0]()
    assert queued == expected


def test_a_key_that_found_out_by_itself_is_not_queued_later(world):
    consistency, pods, _, queued, timers = world
    consistency.wrote("ns/a", pods, written("7"))
    assert consistency.behind("ns/a") is pods
    pods.last_version = "7"
    assert consistency.behind("ns/a") is None
    timers[0]()
    assert queued == []


def test_a_sync_that_is_put_off_is_told_of(world):
    skips = []
    consistency = Consistency(
        lambda key: None, lambda delay_s, callback: None, skipped=lambda *resource: skips.append(resource)
    )
    pods = world[1]
    consistency.follow(pods)
    assert not consistency.must_wait("ns/a")
    consistency.wrote("ns/a", pods, written("7"))
    assert consistency.must_wait("ns/a")
    assert skips == [("", "pods")]


def test_nobody_waits_where_it_is_off(world):
    consistency = Consistency(lambda key: None, lambda delay_s, callback: None, enabled=False)
    pods = world[1]
    consistency.follow(pods)
    consistency.wrote("ns/a", pods, written("7"))
    assert not consistency.must_wait("ns/a")

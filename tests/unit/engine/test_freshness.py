"""What a controller remembers of its own writes, and for how long."""

import random

import pytest

from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.freshness import Freshness
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.runtime.informer import Informer


def pod(version, uid="u"):
    return Pod(metadata=ObjectMeta("p", "ns", uid, version))


OTHER = pod("9", "another")


@pytest.fixture
def pods():
    return Informer(PODS, None, LoopClock(), random.Random(1))


@pytest.fixture
def fresh(pods):
    return Freshness(pods)


def test_an_object_is_stale_until_the_cache_shows_the_write(pods, fresh):
    pods._put(pod("5"))
    fresh.wrote(pod("7"))
    assert fresh.stale(pod("5"))
    assert fresh.stale(pod("6"))
    assert not fresh.stale(pod("7"))
    assert not len(fresh)


def test_the_answer_to_a_write_may_come_after_the_news_that_the_object_is_gone(pods, fresh):
    pods._put(pod("5"))
    pods._remove("ns/p", pod("6"))
    fresh.wrote(pod("7"))
    assert not len(fresh)


@pytest.mark.parametrize(
    "change", [lambda pods: pods._remove("ns/p", pod("8")), lambda pods: pods._put(pod("9", "another"))]
)
def test_what_is_gone_or_replaced_is_forgotten(pods, fresh, change):
    pods._put(pod("5"))
    fresh.wrote(pod("7"))
    change(pods)
    assert not len(fresh)


def test_another_object_of_the_name_is_not_noted(pods, fresh):
    pods._put(OTHER)
    fresh.wrote(pod("7"))
    assert not len(fresh)

"""Plans equal the writes of the Go manager in every recorded scenario (tests/plans)."""

import pytest

from kcm_cli.plan import Options, load, plan
from tests.kit.space import Tree
from tests.plans.agreement import PLACE, Agreement, compare, recorded
from tests.plans.scenarios import Scenario


def runs_soon(doc: Tree) -> bool:
    """Whether a CronJob goes on by itself."""
    return doc["kind"] == "CronJob" and doc["spec"]["schedule"] == "* * * * *" and not doc["spec"].get("suspend")


SCENARIOS = recorded()
SETTLED = [one for one in SCENARIOS if not any(runs_soon(doc) for doc in one.setup)]
FEWEST = 100
LEAST = 0.99
"""The order in which controllers come to the objects of a deleted namespace decides about a few writes, and is another
one with each request that is saved or added before."""
_found: dict[str, Agreement] = {}


def found(scenario: Scenario) -> Agreement:
    if scenario.name not in _found:
        _found[scenario.name] = compare(scenario)
    return _found[scenario.name]


def test_enough_scenarios_are_recorded() -> None:
    assert len(SCENARIOS) >= FEWEST


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_the_plan_of_a_scenario_agrees(scenario: Scenario) -> None:
    """With the closest of its recordings. In what order two controllers come to an object, and the namespace controller
    to kinds (a map of Go's), is another one each time."""
    one = found(scenario)
    assert one.share >= 0.8, (sorted(one.missed), sorted(one.added))


def test_the_plans_of_all_scenarios_agree() -> None:
    every = [found(scenario) for scenario in SCENARIOS]
    both = sum(len(one.both) for one in every)
    whole = both + sum(len(one.missed) + len(one.added) for one in every)
    assert both / whole >= LEAST


@pytest.mark.parametrize("scenario", SETTLED, ids=lambda one: one.name)
def test_objects_settled_by_the_go_manager_are_not_changed(scenario: Scenario) -> None:
    """The takeover audit before each scenario. The recording cluster had more nodes, which ttl-controller counts."""
    answer = plan(load(PLACE / f"{scenario.name}.kcm"), (), Options(horizon_s=120.0))
    assert [one for one in answer.audit if one.controller != "ttl-controller"] == []

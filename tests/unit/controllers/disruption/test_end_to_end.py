"""The controller on informers with objects that an API server would refuse."""

from typing import Any

from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS
from kcm_cli.controllers.disruption import controller
from kcm_cli.machinery.labels import LabelSelector, LabelSelectorRequirement, from_label_selector
from tests.kit.controlling import controllers
from tests.kit.world import World


async def test_an_invalid_selector_of_a_budget_does_not_affect_others(world: World, monkeypatch):
    def compiled(selector: LabelSelector | None) -> Any:
        broken = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "Equals", ("web",)),))
        unusable = selector is not None and (selector.match_labels or {}).get("app") == "broken"
        return from_label_selector(broken if unusable else selector)

    monkeypatch.setattr(controller, "from_label_selector", compiled)
    for name in ("broken", "web"):
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
        await world.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": name}, "spec": spec})
    async with controllers(world, names=["disruption-controller"]):
        await world.wait(5)
        await world.pod("p", {"labels": {"app": "web"}})
        await world.wait(20)
        assert (await world.get(POD_DISRUPTION_BUDGETS, "web"))["status"]["currentHealthy"] == 1
        (condition,) = (await world.get(POD_DISRUPTION_BUDGETS, "broken"))["status"]["conditions"]
        assert (condition["reason"], condition["status"]) == ("SyncFailed", "False")
        assert '"Equals" is not a valid label selector operator' in condition["message"]


async def test_a_budget_that_is_made_again_does_not_rest(world: World, monkeypatch):
    """What is known of a budget ends with it."""
    monkeypatch.setattr(controller, "MANY", 1)
    monkeypatch.setattr(controller, "REST_PER_POD_S", 60.0)  # one pod for millions
    doc = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    async with controllers(world, names=["disruption-controller"]):
        await world.pod("p", {"labels": {"app": "web"}})
        await world.wait(20)
        await world.create(POD_DISRUPTION_BUDGETS, doc)
        await world.wait(5)
        await world.delete(POD_DISRUPTION_BUDGETS, "web")
        await world.wait(5)
        await world.create(POD_DISRUPTION_BUDGETS, doc)
        await world.wait(5)
        assert (await world.get(POD_DISRUPTION_BUDGETS, "web"))["status"]["currentHealthy"] == 1

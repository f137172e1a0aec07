"""Controllers of installed packages in plans."""

from kcm_cli.plan import Options, plan
from tests.kit.installing import TEAM_LABELS, WIDGET_OWNER, Install, install
from tests.kit.simulation import NAMESPACE, World
from tests.kit.widgets import definition
from tests.unit.plan.clusters import snapshot_of

__all__ = ["install"]
DEFINITIONS, WIDGETS = "apiextensions.k8s.io/v1/customresourcedefinitions", "example.com/v1/widgets"
SPEC = {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "nginx"}]}}}
WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": NAMESPACE},
    "spec": SPEC,
}


def test_they_run_with_the_kinds_that_they_declare(install: Install) -> None:
    """Without --include custom, as the kinds of built-in controllers are read."""
    install(widget=WIDGET_OWNER)

    async def story(world: World) -> None:
        await world.create(DEFINITIONS, definition("widgets", "Widget", status={}), "")
        await world.clock.sleep(5)
        await world.create(WIDGETS, WIDGET)

    answer = plan(snapshot_of(story), (), Options(300))
    written = {(one.verb, one.resource) for one in answer.audit if one.controller == "widget-controller"}
    assert written == {("create", "pods"), ("update", "widgets.example.com/status")}


def test_one_whose_kind_is_not_read_is_left_out(install: Install) -> None:
    install(team_label=TEAM_LABELS.replace("NAMESPACES", "SECRETS"))

    async def story(world: World) -> None:
        await world.clock.sleep(5)

    answer = plan(snapshot_of(story), (), Options(60))
    (line,) = [one for one in answer.not_modelled if "team-label-controller" in one]
    assert line.startswith("not run, since they need what is not read (")

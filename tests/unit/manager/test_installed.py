"""Controllers of installed packages: those that docs/controllers.md shows, and some that cannot be used."""

from typing import Any

import pytest

from kcm_cli.cli.manager import help_text
from kcm_cli.component.metrics import Registry
from kcm_cli.manager import controller_map
from kcm_cli.manager.config import Config, ConfigError, load
from kcm_cli.manager.configz import configz
from tests.kit.controlling import adds, controllers, metric
from tests.kit.installing import TEAM_LABELS as EXAMPLE
from tests.kit.installing import WIDGET_OWNER as OWNING
from tests.kit.installing import Install, install
from tests.kit.widgets import WIDGETS, serve_widgets
from tests.kit.world import PODS, World, resource

__all__ = ["install"]
NAMESPACES = resource("namespaces", namespaced=False)
KIND = {"apiVersion": "example.com/v1", "kind": "Widget"}
NAME, LABEL = "team-label-controller", "example.com/team"


def config(*flags: str) -> Config:
    return load(flags)


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.splitlines()) <= 40


async def test_an_external_controller_has_options_queue_writes_and_name(install: Install, world: World) -> None:
    install(team_label=EXAMPLE)
    assert "Team-label-controller flags:" in help_text(120)
    assert "--default-team string" in help_text(120)
    completed = config("--default-team=red", f"--controllers={NAME}")
    assert completed.controllers == (NAME,)
    assert completed.warnings == ()
    shown: Any = configz(completed.component)
    assert shown["kubecontrollermanager.config.k8s.io"]["TeamLabelController"] == {"DefaultTeam": "red"}
    metrics = Registry()
    configs = completed.by_type().values()
    async with controllers(world, *configs, names=completed.controllers, metrics=metrics):
        await world.create(NAMESPACES, {"metadata": {"name": "blue", "labels": {LABEL: "blue"}}})
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(5)
        labels = {one["metadata"]["name"]: one["metadata"]["labels"][LABEL] for one in await world.items(NAMESPACES)}
        assert (labels["blue"], labels["new"]) == ("blue", "red")
        assert adds(metrics, "team_label") == len(labels) - 1
        written = {"controller": NAME, "verb": "patch", "resource": "namespaces"}
        assert metric(metrics, "kcm_controller_writes_total", **written) == len(labels) - 1


async def test_an_external_controller_owns_pods_of_a_custom_resource(install: Install, world: World) -> None:
    install(widget=OWNING)
    async with controllers(world, names=("widget-controller",)):
        await serve_widgets(world, status={})
        spec = {"replicas": 3, "template": {"spec": {"containers": [{"name": "main", "image": "nginx"}]}}}
        await world.create(WIDGETS, {**KIND, "metadata": {"name": "a"}, "spec": spec})
        for replicas in (3, 1):
            await world.patch(WIDGETS, "a", {"spec": {"replicas": replicas}})
            await world.wait(35)
            (widget,) = await world.items(WIDGETS)
            pods = await world.items(PODS)
            assert widget["status"] == {"replicas": replicas}
            assert len(pods) == replicas and len({pod["metadata"]["name"] for pod in pods}) == replicas


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("from dataclasses", "import no_such_module\nfrom dataclasses"), "ModuleNotFoundError: No module named 'no_s"),
        (("LABEL = ", "raise SystemExit(3)\nLABEL = "), "SystemExit: 3"),
        (("def plan(", "    def problems(self): return 1 / 0\n\ndef plan("), "ZeroDivisionError: division by zero"),
        (("def plan(", "    def problems(self): yield 'no team'\n\ndef plan("), "its defaults are invalid: no team"),
        (("LABEL = ", "raise RuntimeError(1)\nLABEL = "), "RuntimeError: 1"),
        (("DESCRIPTOR = ", "OTHER = "), "AttributeError: module 'team_label' has no attribute 'DESCRIPTOR'"),
        (("DESCRIPTOR = Descriptor", "DESCRIPTOR = dict"), "it is no kcm_cli.engine.descriptor.Descriptor"),
        (("controller=Controller(", "gates=("), "StartError: team-label-controller: cannot import kcm_cli.controllers"),
        (
            ("controller=Controller(", "controller=TeamLabels or Controller("),
            "its controller is no kcm_cli.engine.controller.Controller",
        ),
        ((f'name="{NAME}"', 'name="job-controller"'), "job-controller is the name of another one"),
        ((f'name="{NAME}"', 'name="job"'), "job is the name of another one"),
        ((f'name="{NAME}"', 'name="class-controller"'), '"class-controller" is no name in lower case with hyphens'),
        ((f'name="{NAME}"', 'name="deprecated-controller"'), "deprecated is the name of another one"),
        ((f'name="{NAME}"', 'name="team.label"'), '"team.label" is no name in lower case with hyphens'),
        ((f'name="{NAME}"', f'name="{NAME}", key="JobController"'), "JobController is in the configuration file alre"),
        ((f'name="{NAME}"', f'name="{NAME}", key="Generic"'), "Generic is in the configuration file already"),
        (('"nobody", ', '"nobody", shorthand="v", '), "--default-team: there is another flag -v"),
        (('flag="default-team"', 'flag="default_team"'), "--default_team: words are joined by -"),
        (("class TeamConfig:", "class TeamConfig:\n    needed: int"), "missing 1 required positional argument: 'need"),
        (('flag="default-team"', 'flag="kubeconfig"'), "there is another flag --kubeconfig"),
        (('flag="default-team"', 'flag="concurrent-job-syncs"'), "there is another flag --concurrent-job-syncs"),
    ],
)
def test_an_invalid_external_controller_is_left_out_and_reported(
    install: Install, change: tuple[str, str], problem: str
) -> None:
    assert EXAMPLE.count(change[0]) == 1
    install(team_label=EXAMPLE.replace(*change), fine=EXAMPLE.replace("team", "crew"))
    assert [one.name for one in controller_map.installed().controllers] == ["crew-label-controller"]
    (warning,) = config().warnings
    assert warning.startswith("the controller team_label (team_label:DESCRIPTOR) of an installed package is left out: ")
    assert problem in warning


def test_flags_of_a_controller_that_is_left_out_are_refused_with_the_reason(install: Install) -> None:
    install(team_label=f"import no_such_module\n{EXAMPLE}")
    with pytest.raises(ConfigError) as refused:
        config("--default-team=red")
    unknown, reason = refused.value.problems
    assert unknown.startswith("unknown flag: --default-team") and "no_such_module" in reason


def test_a_section_of_its_own_stands_behind_those_of_controllers(install: Install) -> None:
    install(team_label=EXAMPLE.replace('"nobody", ', '"nobody", section="Another", '))
    assert config().warnings == ()
    text = help_text(120)
    assert text.index("Validatingadmissionpolicy-status-controller flags:") < text.index("Another flags:")
    assert text.index("Another flags:") < text.index("Metrics flags:")


def test_of_two_controllers_of_a_name_the_second_is_left_out(install: Install) -> None:
    install(one=EXAMPLE, two=EXAMPLE.replace("default-team", "usual-team"))
    assert len(controller_map.installed().controllers) == 1
    assert f"{NAME} is the name of another one" in config().warnings[0]

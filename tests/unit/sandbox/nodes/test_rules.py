"""Annotations that rules add to pods."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kcm_cli.sandbox.nodes.annotations import PARSERS
from kcm_cli.sandbox.nodes.rules import LABEL, Rule, Rules, rules_of
from kcm_cli.sandbox.views import Keyed, SimulatedPod, SimulatedPodSpec
from tests.kit.places import ROOT


class Informer:
    """Emits the events of the test."""

    def listen(
        self, *, on_add: Callable[..., None], on_update: Callable[..., None], on_delete: Callable[..., None]
    ) -> None:
        self.add, self.update, self.delete = on_add, on_update, on_delete


def rule(name: str, namespace: str = "ns", marked: str = "pods", **data: str) -> Keyed:
    metadata = {"name": name, "namespace": namespace, "labels": {LABEL: marked}}
    return msgspec.convert(
        {"metadata": metadata, "data": {key.replace("_", "-"): value for key, value in data.items()}}, Keyed
    )


def pod(labels: dict[str, str], **annotations: str) -> SimulatedPod:
    written = {f"sandbox.kcm.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata: dict[str, Any] = {"name": "p", "namespace": "ns", "labels": labels, "annotations": written}
    return msgspec.convert({"metadata": metadata}, SimulatedPod)


class World:
    def __init__(self, *given: Rule) -> None:
        self.informer = Informer()
        self.queued: list[str] = []
        self.rules = Rules(self.informer, given)  # type: ignore[arg-type]
        self.rules.listen(self.queued.append)

    def of(self, found: SimulatedPod) -> dict[str, str]:
        return {key.removeprefix("sandbox.kcm.dev/"): value for key, value in self.rules.annotations(found).items()}


def test_precedence_of_annotations_and_rules() -> None:
    world = World()
    for each in (
        rule("b", selector="app=web", run_time="2s", exit_code="2"),
        rule("a", selector="app in (web, db)", run_time="1s"),
        rule("all", "kube-system", run_time="9s", logs="hi", stop_time="3s"),
        rule("other", "elsewhere", cpu="1"),
        rule("unmarked", marked="no", cpu="2"),
        rule("unreadable", selector="a==b==c", cpu="3"),
    ):
        world.informer.add(each)
    assert world.of(pod({"app": "web"}, stop_time="0s")) == {
        "run-time": "1s", "exit-code": "2", "logs": "hi", "stop-time": "0s",
    }  # fmt: skip
    assert world.of(pod({})) == {"run-time": "9s", "logs": "hi", "stop-time": "3s"}


def test_pods_follow_changed_and_deleted_rules() -> None:
    world = World()
    first = rule("a", cpu="1")
    world.informer.add(first)
    world.informer.update(first, rule("a", cpu="1"))
    assert world.queued == ["ns"]
    world.informer.update(first, rule("a", cpu="2"))
    world.informer.update(first, rule("a", marked="no", cpu="2"))
    world.informer.add(rule("b", "kube-system"))
    world.informer.delete(rule("b", "kube-system"))
    world.informer.delete(rule("b", "kube-system"))
    assert world.queued == ["ns", "ns", "ns", "", ""]
    assert world.of(pod({})) == {}


@pytest.mark.parametrize("data", [None, {}, {"selector": ""}])
def test_an_empty_rule_has_no_effect(data: object) -> None:
    world = World()
    metadata = {"name": "a", "namespace": "ns", "labels": {LABEL: "pods"}}
    world.informer.add(msgspec.convert({"metadata": metadata, "data": data}, Keyed))
    assert world.of(pod({})) == {}


@pytest.mark.parametrize("data", [{"image": "*" * 300}, {"selector": "a," * 3000 + "a"}])
def test_a_rule_that_is_too_long_matches_nothing(data: dict[str, str]) -> None:
    """A ConfigMap may be so long that it would take seconds to read."""
    world, found = World(), with_images(pod({"a": ""}), "i", "i")
    world.informer.add(rule("a", exit_code="1", **data))
    assert world.of(found) == {}
    world.informer.add(rule("a", exit_code="1", **{name: text[-101:] for name, text in data.items()}))
    assert world.of(found)


def test_rules_in_options_have_the_lowest_precedence() -> None:
    first, second = Rule({"run-time": "5s", "cpu": "1"}, "app=web"), Rule({"cpu": "2", "logs": "x"})
    world = World(first, second, Rule({"memory": "1"}, "", "no"))
    assert world.of(pod({"app": "web"}, logs="mine")) == {"run-time": "5s", "cpu": "1", "logs": "mine"}
    world.informer.add(rule("a", run_time="1s"))
    assert world.of(pod({"app": "web"})) == {"run-time": "1s", "cpu": "1", "logs": "x"}
    assert world.of(pod({})) == {"run-time": "1s", "cpu": "2", "logs": "x"}


def test_rules_for_images_are_about_the_containers_that_have_them() -> None:
    world = World(
        Rule({"run-time": "5s", "start-delay": "1s"}, image="*/crash:*"),
        Rule({"exit-code.a": "3", "exit-code.b": "4"}, image="*/crash:*"),
        Rule({"run-time": "9s", "cpu": "1"}),
    )
    found = with_images(pod({}), "r/crash:1", "r/other")
    assert world.of(found) == {
        "run-time.a": "5s",
        "start-delay": "1s",
        "exit-code.a": "3",
        "run-time": "9s",
        "cpu": "1",
    }
    own = with_images(pod({}, run_time="1s"), "r/crash:1", "r/other")
    assert world.of(own) == {"run-time": "1s", "start-delay": "1s", "exit-code.a": "3", "cpu": "1"}
    world.informer.add(rule("all", "kube-system", image="*/other", logs="hi"))
    assert world.of(found)["logs.b"] == "hi"
    assert "image" not in world.of(found)
    assert world.of(with_images(pod({}), "x", "y")) == {"run-time": "9s", "cpu": "1"}


@pytest.mark.parametrize("image", ["", "*"])
@pytest.mark.parametrize("words", [{"exit-code": "1", "exit-code.a": "2"}, {"exit-code.a": "2", "exit-code": "1"}])
def test_in_a_rule_the_value_of_one_container_comes_first(words: dict[str, str], image: str) -> None:
    found = World(Rule(words, image=image)).of(with_images(pod({}), "x", "y"))
    assert (found["exit-code.a"], found.get("exit-code.b", found.get("exit-code"))) == ("2", "1")


def with_images(found: SimulatedPod, *images: str) -> SimulatedPod:
    containers = [{"name": name, "image": image} for name, image in zip("ab", images, strict=True)]
    return msgspec.structs.replace(found, spec=msgspec.convert({"containers": containers}, SimulatedPodSpec))


def test_rules_are_read_from_yaml() -> None:
    found = [{"selector": "a=b", "namespace": "ns", "exit-code.main": 3}, {"run-time": "1s"}]
    assert rules_of(found) == (Rule({"exit-code.main": "3"}, "a=b", "ns"), Rule({"run-time": "1s"}))
    assert rules_of(found[1]) == (Rule({"run-time": "1s"}),)
    assert rules_of([]) == ()
    assert rules_of({"image": "*/a:*", "cpu": "1"}) == (Rule({"cpu": "1"}, image="*/a:*"),)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "a rule is an object"),
        (["x"], "a rule is an object"),
        ({"runtime": "1s"}, '"runtime" is none of: cpu, '),
        ({"selector": "a==b==c"}, 'selector "a==b==c": '),
        ({"exit-code": True}, "exit-code: True is not a string"),
        ({"run-time": 1.5}, "run-time: 1.5 is not a string"),
        ({3: "x"}, '"3" is none of'),
        ({"ready-delay.main": "soon"}, 'ready-delay.main: time: invalid duration "soon"'),
        ({"run-time": 3}, "run-time: time: "),
        ({"exit-code": -1}, "exit-code: '-1' is not a whole number"),
        ({"exec-code": "²"}, "exec-code: '²' is not a whole number"),
        ({"restarts": "9" * 5000}, "is not a whole number from 0 to 2147483647"),
        ([{"run-time": ""}, {"run-time": "never"}, {"restarts": "x"}], "rule 3: restarts: 'x' is not"),
    ],
)
def test_invalid_rules_are_refused(found: object, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        rules_of(found)


def test_all_names_are_documented() -> None:
    page = (ROOT / "docs" / "sandbox.md").read_text()
    tables = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = {name for cell in tables for name in re.findall(r"`([a-z-]+)`", cell)}
    assert names >= PARSERS.keys()

"""Perturbation finds bugs, and no others; the whole set is run by ``python -m tests.perturb.run``."""

import asyncio
import functools
import gc
import os
import ssl
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes
import kubernetes_asyncio
import pytest
import urllib3

from kcm_cli.api.protobuf.encoding import to_protobuf
from kcm_cli.api.resource import GVR
from kcm_cli.testing import Sandbox
from kcm_cli.testing.perturb import trial
from kcm_cli.testing.perturb.campaign import each, perturb
from kcm_cli.testing.perturb.host import Measure
from kcm_cli.testing.perturb.kopf_flaws import FINALIZER, LATE_STATUS, KopfFlaws
from kcm_cli.testing.perturb.points import ALL_KINDS, KINDS, Point, Spot, Spots, kinds_of, point_of
from kcm_cli.testing.perturb.random_words import ties_of, untied, words_of
from kcm_cli.testing.perturb.record import Record
from kcm_cli.testing.perturb.states import (
    OTHER_CLIENT,
    State,
    differences,
    generated_name,
    masked,
    name_of,
    plain,
    stable,
    state_of,
)
from kcm_cli.testing.perturb.taken_back import Taken, entries, moved, numbers, went_back
from kcm_cli.testing.perturb.trial import OperatorTrial, Perturbed
from kcm_cli.testing.pytest_plugin import pytest_addoption, pytest_load_initial_conftests
from tests.perturb.kit import OPTIONS, config_map, core
from tests.perturb.kopf_operators import FLAWS
from tests.perturb.run import CASES

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""What is killed closes nothing."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with Sandbox(OPTIONS) as made:
        yield made
    gc.collect()  # here, not in a test that does not expect open connections


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """It has nothing of other tests, which may run before in one run and after in another."""
    base = shared.snapshot()
    yield shared
    shared.reset(base)


@pytest.mark.parametrize("name", ["only-added", "counts-from-memory"])
def test_a_bug_is_found_and_reported_and_its_fix_passes(sandbox: Sandbox, name: str) -> None:
    found = perturb(sandbox, CASES[name].scenario(True), enough=1)
    assert found, name
    assert found[0].story.startswith("the operator ")
    assert f"--kcm-replay '{found[0].point}'" in found[0].story
    assert perturb(sandbox, CASES[name].scenario(False), only=[found[0].point]) == []


@pytest.mark.parametrize(
    ("name", "point", "note"),
    [
        ("finalizer-lost", "lost@patch:widgets.example.com:default/web#1", FINALIZER),
        ("status-by-patch", "crash@patch:widgets.example.com:default/web#1", LATE_STATUS),
        ("status-by-patch", "unsent@patch:widgets.example.com/status:default/web#1", LATE_STATUS),
    ],
)
def test_what_kopf_loses_is_noted(sandbox: Sandbox, name: str, point: str, note: str) -> None:
    case = next(case for case in FLAWS if case.name == name)
    (outcome,) = each(sandbox, case.scenario(True), only=[point_of(point)])
    assert (outcome.came_up, outcome.story, outcome.note) == (True, "", note)


@pytest.mark.parametrize(("name", "kinds"), [("finalizer-lost", ("lost",)), ("status-by-patch", ("crash", "unsent"))])
def test_nothing_is_lost_around_the_flaws_of_kopf(sandbox: Sandbox, name: str, kinds: Sequence[str]) -> None:
    """Where the flaws are; ``make perturb`` has their other points."""
    case = next(case for case in FLAWS if case.name == name)
    outcomes = list(each(sandbox, case.scenario(False), kinds=kinds))
    assert [one for one in outcomes if one.story or one.note or not one.came_up] == []
    assert outcomes


def test_differences_beside_a_late_status_are_reported() -> None:
    flaws = KopfFlaws()
    flaws._late = "widgets a"
    assert flaws.explain(["widgets a: status.text is not set, and was 'x'"]) == LATE_STATUS
    assert flaws.explain(["widgets a: status.text is not set, and was 'x'", "configmaps a is not there"]) == ""
    assert flaws.explain([]) == ""


def test_a_restarted_operator_sees_recreated_objects_as_terminating(sandbox: Sandbox) -> None:
    only = [point_of("terminating@create:configmaps:default/web#3")]
    (found,) = perturb(sandbox, CASES["cleans-up-by-name"].scenario(True), only=only)
    assert "widgets.example.com default/web, which is gone, is shown to it" in found.story
    assert "configmaps default/web was made 3 times, and 2 without" in found.story
    assert perturb(sandbox, CASES["cleans-up-by-name"].scenario(False), only=only) == []


def test_a_write_that_is_refused_once_is_retried(sandbox: Sandbox) -> None:
    only = [point_of("refused@create:configmaps:default/web-two#1")]
    (found,) = perturb(sandbox, CASES["ignores-refusals"].scenario(True), only=only)
    assert found.story.startswith("the operator was refused create of configmaps default/web-two with an error")
    assert "create of configmaps default/web-two: 500, PERTURBED (refused)" in found.story
    assert perturb(sandbox, CASES["ignores-refusals"].scenario(False), only=only) == []


@pytest.mark.parametrize(
    ("name", "point", "output"),
    [
        (
            "overwrites",
            "conflict@update:configmaps:default/shared#1",
            "configmaps default/shared: what another client wrote between its read and its write was overwritten",
        ),
        (
            "swallows-conflicts",
            "conflict@update:widgets.example.com/status:default/web#1",
            "widgets.example.com default/web: another client changes it, PERTURBED (conflict)",
        ),
        (
            "rents-again",
            "unsent@create:configmaps:default/web#1",
            "is '2 of its machines', and was '1 of its machines'",
        ),
        (
            "goes-back",
            "crash@patch:configmaps:default/web#2",
            "configmaps default/web: data.weight went back from 50 to 10; without: 10, 50, 100",
        ),
    ],
)
def test_failures_that_settled_states_do_not_show(sandbox: Sandbox, name: str, point: str, output: str) -> None:
    (found,) = perturb(sandbox, CASES[name].scenario(True), only=[point_of(point)])
    assert output in found.story
    assert perturb(sandbox, CASES[name].scenario(False), only=[point_of(point)]) == []


async def looks_into_a_cache(kubeconfig: str) -> None:
    api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
    async with api.api_client:
        while True:
            known = (await api.list_namespaced_config_map("default", resource_version="0")).items
            if not (made := any(one.metadata.name.startswith("made-") for one in known)):
                await api.create_namespaced_config_map("default", {"metadata": {"generateName": "made-"}})
            await asyncio.sleep(60 if made else 0.7)


def test_what_was_written_may_not_be_seen_for_a_second(sandbox: Sandbox) -> None:
    found = perturb(sandbox, lambda trial: trial.operator(looks_into_a_cache), kinds=("lag", "crash"))
    assert [str(one.point) for one in found] == ["lag@create:configmaps:default/made-*#1"]
    assert "configmaps default/made-*: there are 2, not 1" in found[0].story
    assert "restarted" not in found[0].story


async def is_refused_for_ever(kubeconfig: str) -> None:
    """From its second start on it sends what is invalid."""
    api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
    async with api.api_client:
        there = [one.metadata.name for one in (await api.list_namespaced_config_map("default")).items]
        with suppress(kubernetes_asyncio.client.ApiException):
            await api.create_namespaced_config_map("default", config_map("made"))
        while "made" in there:
            with suppress(kubernetes_asyncio.client.ApiException):
                await api.create_namespaced_config_map("default", config_map("Not a name"))
            await asyncio.sleep(60)
        await asyncio.sleep(1e6)


def test_writes_that_are_refused_again_and_again_are_reported(sandbox: Sandbox) -> None:
    only = [point_of("crash@create:configmaps:default/made#1")]
    (found,) = perturb(sandbox, lambda trial: trial.operator(is_refused_for_ever), only=only)
    assert "10 times create of configmaps default/Not a name refused in ten minutes without a change" in found.story


def test_an_operator_that_exits_at_its_start_is_restarted(sandbox: Sandbox) -> None:
    def operator(kubeconfig: str, stop: threading.Event) -> None:
        try:
            core(kubeconfig).create_namespaced_config_map("default", config_map("started"))
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise
        stop.wait()

    only = [point_of("lost@create:configmaps:default/started#1")]
    (outcome,) = each(sandbox, lambda trial: trial.operator(operator), only=only)
    assert (outcome.came_up, outcome.story) == (True, "")


def test_names_are_the_same_in_every_run() -> None:
    generated = {"web-x2k8p": "web-*", "web-x2k8p-7hj5s": "web-*-*", "web-abcde": "web-*"}
    assert [stable(name, generated) for name in ("web-x2k8p", "web-x2k8p-7hj5s.cfg", "a.of-web-abcde-b", "web-x")] == [
        "web-*",
        "web-*-*.cfg",
        "a.of-web-*-b",
        "web-x",
    ]
    assert name_of({"metadata": {"generateName": "web-x2k8p-", "name": "web-x2k8p-1"}}, "", "", generated) == "web-*-*"
    labels = {"pod-template-hash": "5d8c7"}
    assert generated_name({"metadata": {"name": "web-5d8c7", "labels": labels}}, {}) == "web-*"
    assert generated_name({"metadata": {"name": "web", "labels": labels}}, {}) == ""
    assert generated_name({"metadata": {"name": "web", "labels": {"pod-template-hash": ""}}}, {}) == ""
    assert generated_name({"metadata": {"name": "x", "generateName": "web-x2k8p-"}}, generated) == "web-*-*"
    keys = {"data": {"web-x2k8p": "2", "web-abcde": "1", "a": "3"}}
    assert plain(keys, "", generated=generated) == {"data": {"a": "3", "web-*": "1", "web-*#2": "2"}}
    assert plain({"data": {str(uuid.uuid4()): "1"}}, "") == {"data": {"*": "1"}}


def test_writes_of_other_clients_are_not_compared() -> None:
    assert plain({"metadata": {"annotations": {OTHER_CLIENT: "yes"}}}, "") == {"metadata": {}}
    assert plain({"metadata": {"annotations": {OTHER_CLIENT: "yes", "a": "b"}}}, "") == {
        "metadata": {"annotations": {"a": "b"}}
    }


def test_what_another_client_changed_is_no_change(sandbox: Sandbox) -> None:
    sandbox.apply(config_map("there", k="v"), config_map("again", k="v"))
    base = sandbox.snapshot()

    def states(change: Callable[[Any], None] | None) -> list[str]:
        store, gvr = sandbox.server.store, GVR("", "v1", "configmaps")
        doc = store.get(gvr, "default", "there").copy()  # type: ignore[union-attr]
        if change is not None:
            change(doc)
            store.update(gvr, "default", "there", doc, always=True)
        else:
            store.delete(gvr, "default", "again")
            store.create(gvr, "default", "again", {**doc, "metadata": {"name": "again", "uid": "other"}})
        return list(state_of(store, base, ""))

    changes = [lambda doc: None, lambda doc: doc["metadata"].update(annotations={OTHER_CLIENT: "yes"})]
    assert [sandbox.run(functools.partial(states, one)) for one in changes] == [[], []]
    assert sandbox.run(lambda: states(lambda doc: doc["data"].update(k="w"))) == ["configmaps default/there"]
    assert sandbox.run(lambda: states(None)) == ["configmaps default/again", "configmaps default/there"]


def test_a_finalizer_of_kopf_that_is_not_needed_is_no_difference() -> None:
    marker = "kopf.zalando.org/KopfFinalizerMarker"

    def state(*finalizers: str) -> State:
        return {"a x": [{"metadata": {"finalizers": list(finalizers)} if finalizers else {}}]}

    for wanted, found, differ in [((), (marker,), 0), (("a",), ("a", marker), 0), ((marker,), (), 1), ((), ("a",), 1)]:
        assert len(list(differences(state(*wanted), state(*found)))) == differ


@pytest.mark.parametrize(("step", "output"), [(0, 1), (1, 0), (2, 1)])
def test_what_is_gone_after_a_step_may_be_created_again_in_it(sandbox: Sandbox, step: int, output: int) -> None:
    """With an old view an operator may create something, and delete it when it knows better."""
    there: State = {"configmaps x": [{}]}
    made = Counter({(0, "configmaps x"): 1, (2, "configmaps x"): 1})
    reference = Record(
        checkpoints=[there, {}, there], made=Counter({"configmaps x": 2}), made_in=made, ties=[[], [], []]
    )
    run = OperatorTrial(sandbox, sandbox.snapshot(), "", point_of("older@delete:configmaps:x#1"), reference)
    run.stop()
    run.record.made, run.record.made_in = Counter({"configmaps x": 3}), made + Counter({(step, "configmaps x"): 1})
    wrong = [one for one in run._faults(reference) if "was made 3 times" in one]
    assert len(wrong) == output


def test_only_monotonic_numbers_must_not_decrease() -> None:
    assert numbers({"status": {"a": 1}, "spec": {"b": "50%", "c": 1.5, "d": True, "e": "1x"}}) == {
        ("spec", "b"): 50.0,
        ("spec", "c"): 1.5,
    }
    assert went_back([10, 50, 100], [10, 50, 10, 100]) == (50, 10)
    assert went_back([3, 2, 1], [3, 3, 1, 2]) == (1, 2)
    assert went_back([10, 50, 100], [10, 100]) is None
    for steps in ([10, 50], [10, 10, 50], [1, 2, 1]):
        assert went_back(steps, [50, 10, 5, 10]) is None


PROCESS = """
import base64, http.client, json, os, ssl, sys, urllib.parse, yaml

config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
address = urllib.parse.urlsplit(cluster["server"]).netloc
path = "/api/v1/namespaces/default/configmaps"

def ask(method, path, body=None):
    connection = http.client.HTTPSConnection(address, context=ssl.create_default_context(cadata=ca))
    headers = {"Authorization": "Bearer " + user["token"], "Content-Type": "application/json"}
    connection.request(method, path, body and json.dumps(body), headers)
    return connection.getresponse()

for line in ask("GET", path + "?watch=1&labelSelector=copy%3Dyes"):
    if json.loads(line)["type"] == "ADDED":
        ask("POST", path, {"metadata": {"generateName" if "buggy" in sys.argv else "name": "copy-of-a"}}).read()
"""


def test_a_command_is_killed_and_restarted(sandbox: Sandbox, tmp_path: Path) -> None:
    """A process creates another copy after its crash, and one with the bug fixed does not."""
    (tmp_path / "copying.py").write_text(PROCESS)
    command = [sys.executable, str(tmp_path / "copying.py")]

    def scenario(*words: str) -> Callable[[OperatorTrial], None]:
        def play(trial: OperatorTrial) -> None:
            trial.operator([*command, *words])
            metadata = {"name": "a", "labels": {"copy": "yes"}}
            trial.sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            trial.settle()

        return play

    (found,) = perturb(sandbox, scenario("buggy"), kinds=("crash",))
    assert str(found.point) == "crash@create:configmaps:default/copy-of-a*#1"
    assert "there are 2, not 1" in found.story
    assert perturb(sandbox, scenario(), only=[point_of("crash@create:configmaps:default/copy-of-a#1")]) == []


def test_each_operator_has_its_user(sandbox: Sandbox) -> None:
    one = trial.OperatorTrial(sandbox, sandbox.snapshot())
    try:
        for user in ("operator", "second"):
            one.operator(speaks_protobuf, user=user)
        with pytest.raises(FileNotFoundError):
            one.operator(["./there-is-none"], user="third")
        one.operator(speaks_protobuf, user="third")
        with pytest.raises(ValueError, match="an operator is the user 'second' already: give this one another name"):
            one.operator(speaks_protobuf, user="second")
    finally:
        one.stop()


def test_the_story_names_the_writer_of_several_operators(sandbox: Sandbox) -> None:
    async def rests(kubeconfig: str) -> None:
        api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
        async with api.api_client:
            await api.list_namespaced_config_map("default")
            await asyncio.sleep(1e6)

    async def writes(kubeconfig: str) -> None:
        api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
        async with api.api_client:
            await api.create_namespaced_config_map("default", {"metadata": {"generateName": "a-"}})
            await asyncio.sleep(1e6)

    def scenario(trial: OperatorTrial) -> None:
        trial.operator(rests)
        trial.operator(writes, user="second")

    (found,) = perturb(sandbox, scenario, kinds=("crash",))
    assert "second: create of configmaps default/a-*: 201, PERTURBED (crash)\n  (second was restarted)" in found.story


def test_without_an_operator_nothing_settles(sandbox: Sandbox) -> None:
    one = trial.OperatorTrial(sandbox, sandbox.snapshot())
    one.stop()
    with pytest.raises(ValueError, match="no operator was started"):
        one.settle()


def test_a_point_that_is_not_reached_is_reported(sandbox: Sandbox) -> None:
    only = [point_of("crash@create:configmaps:default/packed#1"), point_of("crash@create:configmaps:nothing#1")]
    outcomes = list(each(sandbox, lambda trial: trial.operator(speaks_protobuf), only=only))
    assert [(one.came_up, one.story) for one in outcomes] == [(True, ""), (False, "")]


async def never_waits(kubeconfig: str) -> None:
    """As a watch that gets 410 and restarts at the same version."""
    api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
    async with api.api_client:
        while True:
            await api.list_namespaced_config_map("default", label_selector="never=there")


def test_the_requests_of_an_operator_that_never_rests_are_reported(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox.loop, "advance", functools.partial(sandbox.loop.advance, stalled_s=1.0))
    with pytest.raises(Perturbed, match=r"it never waits; meanwhile it asked \d+ times list of configmaps") as output:
        perturb(sandbox, lambda trial: trial.operator(never_waits))
    assert "if it waits with time.sleep, write it as def main(kubeconfig, stop)" in str(output.value)


PROTOBUF = "application/vnd.kubernetes.protobuf"


async def speaks_protobuf(kubeconfig: str) -> None:
    """As client-go does: one write that has an effect, and one that has none."""
    config = kubernetes_asyncio.client.Configuration()
    await kubernetes_asyncio.config.load_kube_config(kubeconfig, client_configuration=config)
    path, headers = (
        f"{config.host}/api/v1/namespaces/default/configmaps",
        dict.fromkeys(("Accept", "Content-Type"), PROTOBUF),
    )
    headers["Authorization"] = await config.get_api_key_with_prefix("BearerToken")
    doc: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "packed"}, "data": {"k": "v"}}
    context = ssl.create_default_context(cafile=config.ssl_ca_cert)
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=context)) as session:
        async with session.post(path, data=to_protobuf(doc)), session.put(f"{path}/packed", data=to_protobuf(doc)):
            pass
        async with session.get(f"{path}?watch=1") as watch:
            await watch.content.read()


def test_writes_in_protobuf_have_names_and_count_if_effective(sandbox: Sandbox) -> None:
    one = OperatorTrial(sandbox, sandbox.snapshot())
    try:
        one.operator(speaks_protobuf)
        one.finish()
    finally:
        one.stop()
    assert [str(one) for one in one.record.spots.writes] == [
        "create:configmaps:default/packed#1",
        "update:configmaps:default/packed#1",
    ]
    assert one.record.written == {"create of configmaps default/packed": 1}
    assert one.record.spots.conflicting == []  # it names no version


async def writes_for_ever(kubeconfig: str) -> None:
    """A timer, and something that is done at each start."""
    api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
    async with api.api_client:
        for name in ("start", "timer"):
            with suppress(kubernetes_asyncio.client.ApiException):
                await api.create_namespaced_config_map("default", config_map(name))
        version = str(asyncio.get_running_loop().time())
        await api.patch_namespaced_config_map("start", "default", {"metadata": {"annotations": {"start": version}}})
        while True:
            await asyncio.sleep(60)
            version = str(asyncio.get_running_loop().time())
            await api.patch_namespaced_config_map("timer", "default", {"data": {"k": version}})


def test_nothing_is_perturbed_in_the_quiet_period(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does when it starts would be taken for work without end."""
    monkeypatch.setattr(trial, "_LIMIT_S", 150.0)
    late = Point("crash", Spot("patch", "configmaps", "default/timer", 8))
    for point in (None, late):
        one = trial.OperatorTrial(sandbox, base := sandbox.snapshot(), point=point)
        try:
            one.operator(writes_for_ever)
            one.finish()
        finally:
            one.stop()
            sandbox.reset(base)
        assert not one.fired
        assert one.record.restless == {"MODIFIED configmaps default/timer"}
        spots = Counter(f"{spot.verb} {spot.name}" for spot in one.record.spots.writes)
        assert spots.pop("patch default/timer") < 5
        assert spots == {"create default/start": 1, "create default/timer": 1, "patch default/start": 1}


async def writes_in_vain(kubeconfig: str) -> None:
    """It polls, and finds by its writes that all is done."""
    api = kubernetes_asyncio.client.CoreV1Api(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
    async with api.api_client:
        while True:
            with suppress(kubernetes_asyncio.client.ApiException):
                await api.create_namespaced_config_map("default", config_map("there"))
            await api.patch_namespaced_config_map("there", "default", {"data": {"k": "v"}})
            with suppress(kubernetes_asyncio.client.ApiException):
                await api.delete_namespaced_config_map("gone", "default")
            await asyncio.sleep(30)


def test_writes_without_effect_count_as_rest(sandbox: Sandbox) -> None:
    one = trial.OperatorTrial(sandbox, sandbox.snapshot())
    try:
        one.operator(writes_in_vain)
        one.settle()
        assert one.record.restless == set()
        assert one.record.written == {"create of configmaps default/there": 1, "patch of configmaps default/there": 1}
    finally:
        one.stop()


async def asks_again_and_again(kubeconfig: str) -> None:
    """What it may do."""
    api = kubernetes_asyncio.client.AuthorizationV1Api(
        await kubernetes_asyncio.config.new_client_from_config(kubeconfig)
    )
    attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
    async with api.api_client:
        while True:
            await api.create_self_subject_access_review({"spec": {"resourceAttributes": attributes}})
            await asyncio.sleep(30)


def test_a_question_is_no_write(sandbox: Sandbox) -> None:
    """A review is created, and is no object: to ask once more after a restart is right."""
    one = trial.OperatorTrial(sandbox, sandbox.snapshot())
    try:
        one.operator(asks_again_and_again)
        one.settle()
        assert one.record.restless == set()
        assert one.record.written == {}
    finally:
        one.stop()


CODE_REVIEWS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "codereviews.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "CodeReview", "plural": "codereviews", "singular": "codereview"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


async def reviews_code(kubeconfig: str) -> None:
    api = kubernetes_asyncio.client.CustomObjectsApi(await kubernetes_asyncio.config.new_client_from_config(kubeconfig))
    body = {"apiVersion": "example.com/v1", "kind": "CodeReview", "metadata": {"name": "mine"}}
    async with api.api_client:
        with suppress(kubernetes_asyncio.client.ApiException):
            await api.create_namespaced_custom_object("example.com", "v1", "default", "codereviews", body)
        await asyncio.sleep(1e6)


def test_a_custom_object_may_be_called_a_review(sandbox: Sandbox) -> None:
    sandbox.apply(CODE_REVIEWS)
    one = trial.OperatorTrial(sandbox, sandbox.snapshot())
    try:
        one.operator(reviews_code)
        one.settle()
        assert one.record.written == {"create of codereviews.example.com default/mine": 1}
    finally:
        one.stop()


@pytest.mark.parametrize("polls", [True, False])
def test_only_what_may_poll_is_quiet_while_it_writes_in_vain(sandbox: Sandbox, polls: bool) -> None:
    """A controller of kcm looks into its caches: if it goes on creating what exists, that is a finding."""
    one = trial.Trial(sandbox, sandbox.snapshot(), measure=Measure(polls=polls))
    try:
        one.begin(sandbox.operator(writes_in_vain))
        one.finish()
    finally:
        one.stop()
    vain = {
        "create of configmaps default/there",
        "patch of configmaps default/there",
        "delete of configmaps default/gone",
    }
    assert one.record.late.keys() == (set() if polls else vain)


async def takes_nothing() -> None: ...


def test_an_invalid_operator_is_refused_at_once(sandbox: Sandbox) -> None:
    wrong: list[Any] = [None, "", "./operator --flag", [], 3, takes_nothing, lambda kubeconfig: None]
    for program in wrong:
        with pytest.raises(TypeError, match="has to be a function or a list|a list of words|is async def main"):
            sandbox.operator(program)
    for right in (["./operator"], lambda kubeconfig, stop: None, functools.partial(print, sep=""), print):
        sandbox.operator(right)
    with pytest.raises(TypeError, match="groups has to be a list"):
        sandbox.operator(print, groups="system:masters")


def test_a_killed_operator_cannot_use_the_credentials_of_the_next_start(sandbox: Sandbox) -> None:
    """Its loop continues while it ends, as kopf's does, which logs in again after a 401."""
    output: list[str] = []
    released, done = threading.Event(), threading.Event()

    async def main(kubeconfig: str) -> None:
        output.append(kubeconfig)
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.to_thread(released.wait)
            try:
                transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, *address)
                transport.close()
            except OSError as error:
                output.append(type(error).__name__)
            done.set()

    host, _, port = sandbox.url.removeprefix("https://").rpartition(":")
    address = host, int(port)
    with sandbox.operator(main) as operator:
        operator.restart()
        released.set()
        assert done.wait(10)
        first, second, *refused = output
        assert first != second == operator.kubeconfig
        assert refused == ["ConnectionRefusedError"]


def test_a_killed_operator_cannot_write_after_a_reset(sandbox: Sandbox) -> None:
    """A thread of it, or what kopf retries after a pause, comes when the next run has begun."""
    output: list[str] = []
    released, done = threading.Event(), threading.Event()

    def main(kubeconfig: str, stop: threading.Event) -> None:
        client = core(kubeconfig)
        client.list_namespaced_config_map("default")
        output.append("listed")
        released.wait()
        try:
            client.create_namespaced_config_map("default", {"metadata": {"name": "late"}})
        except (kubernetes.client.ApiException, urllib3.exceptions.HTTPError) as error:
            output.append(type(error).__name__)
        done.set()

    base = sandbox.snapshot()
    operator = sandbox.operator(main)
    operator.start()
    sandbox.wait(lambda: output == ["listed"])
    operator.kill()
    sandbox.reset(base)
    released.set()
    assert done.wait(10)
    assert output == ["listed", "ProtocolError"]


def test_a_killed_operator_ends_although_it_retries_at_once(sandbox: Sandbox) -> None:
    """Without a pause between its attempts, as kopf's watches with no backoffs, it would see no cancellation."""
    ended = threading.Event()

    async def main(kubeconfig: str) -> None:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            trying = asyncio.ensure_future(tries())
            await asyncio.sleep(0.2)
            trying.cancel()
            await asyncio.wait([trying])
            ended.set()

    async def tries() -> None:
        while True:
            with suppress(OSError):
                await asyncio.get_running_loop().create_connection(asyncio.Protocol, *address)

    host, _, port = sandbox.url.removeprefix("https://").rpartition(":")
    address = host, int(port)
    operator = sandbox.operator(main)
    operator.start()
    operator.kill()
    assert ended.wait(10)


def test_points_round_trip() -> None:
    point = Point("crash", Spot("update", "widgets.example.com/status", "ns/web-*", 2))
    assert point_of(str(point)) == point
    role = Point("crash", Spot("update", "clusterroles.rbac.authorization.k8s.io", "system:node", 1))
    assert point_of(str(role)) == role
    several = Point("lag", Spot("create", "pods", "web:a", 3, "replicaset-controller"))
    assert str(several) == "lag@replicaset-controller:create:pods:web:a#3"
    assert point_of(str(several)) == several
    assert several.describe() == "saw nothing from create 3 of pods web:a by replicaset-controller on for a second"
    assert point.describe() == "crashed after update 2 of widgets.example.com/status ns/web-*"
    for wrong in ("", "crash", "crash@a:b#1", "burn@a:b:c#1", "crash@update:b:c#x", "crash@a:b:c:d#1"):
        with pytest.raises(ValueError, match="is no point"):
            point_of(wrong)
    assert kinds_of("") == ("crash", "unsent", "lost", "conflict", "lag", "stale", "older", "terminating", "missed")
    assert kinds_of("refused,crash") == ("refused", "crash")
    with pytest.raises(ValueError, match="choose from crash"):
        kinds_of("lost,found")


def test_a_long_story_is_shortened_around_the_failure(sandbox: Sandbox) -> None:
    writes = [f"create {number} of pods a: 201" for number in range(100)]
    point = point_of("crash@create:pods:a#60")
    trial = OperatorTrial(sandbox, sandbox.snapshot(), point=point)
    trial.stop()
    story = trial._interceptor.story
    for at, output in ((60, range(40, 80)), (3, range(40)), (99, range(60, 100))):
        story[:] = [line + ", PERTURBED (crash)" if at == number else line for number, line in enumerate(writes)]
        lines = trial.story(["it is wrong"]).splitlines()
        shown = [f"  {line}" for line in (story[number] for number in output)]
        assert [line for line in lines if "create" in line and "pods a: 201" in line] == shown
        assert ("  … 40 before" in lines, "  … and 20 more" in lines) == (at == 60, at == 60)
        assert ("  … 60 before" in lines, "  … and 60 more" in lines) == (at == 99, at == 3)
        assert lines[-2] == f"to mend it: {point.advice()}"


def test_the_wait_for_the_lease_of_a_killed_leader_is_limited(sandbox: Sandbox) -> None:
    base = sandbox.snapshot()
    trial = OperatorTrial(sandbox, base)
    trial.stop()
    waited = []
    for name, spec in (("a", None), ("b", {"leaseDurationSeconds": 15}), ("c", {"leaseDurationSeconds": 2**31 - 1})):
        meta = {"name": name, "namespace": "default"}
        sandbox.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})
        waited.append(sandbox.run(trial._lease_s))
    assert waited == [0.0, 15.0, 180.0]


def test_each_kind_has_its_advice() -> None:
    advice = {Point(kind, Spot("create", "pods", "a", 1)).advice() for kind in ALL_KINDS}
    assert len(advice) == len(ALL_KINDS) - 1  # stale and older have the same


def test_many_points_are_sampled_evenly() -> None:
    spots = [Spot("create", "pods", str(number), 1) for number in range(10)]
    assert [one.spot.name for one in Spots(spots).points(("crash",), 5)] == ["0", "2", "4", "6", "8"]
    assert (
        len(Spots(spots, spots[:1], spots[:3], spots[:2]).points(kinds_of(""), 0))
        == 10 + 10 + 10 + 1 + 10 + 12 + 10 + 3 + 2
    )


def test_of_repeated_requests_the_first_are_taken() -> None:
    spots = [Spot("patch", "pods", "timer", nth) for nth in range(1, 100)]
    spots[50:50] = [Spot("create", "pods", "a", 1), Spot("update", "pods", "a", 1), Spot("update", "pods", "a", 2)]
    chosen = Spots(spots).points(("crash",), 6)
    assert [one.spot.nth for one in chosen] == [1, 2, 3, 1, 1, 2]
    assert [one.spot.name for one in chosen] == ["timer"] * 3 + ["a"] * 3


TWINS: Any = {"l": [{"name": "a", "x": 1, "z": 1}, {"name": "a", "x": 1}]}


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "1"}}, [("data", "b")]),
        ({"data": {"a": "1"}}, {}, [("data",)]),
        ({"data": {"a": "1"}}, {"data": {"b": "1"}}, []),  # it has something else instead
        ({"data": {"a": "x y z"}}, {"data": {"a": "x z"}}, [("data", "a", "y")]),
        ({"data": {"a": "x y"}}, {"data": {"a": "x q"}}, []),
        ({"status": {"a": "1"}}, {}, []),
        ({"status": {"a": "1"}}, {"status": {}}, []),
        ({"subjects": [{"name": "a"}, {"name": "b"}]}, {"subjects": [{"name": "b"}]}, [("subjects", "a")]),
        ({"l": [{"k": 1}, {"k": 2}]}, {"l": [{"k": 2}]}, [("l", '{"k":1}')]),
        ({"l": [1, None, "a"]}, {"l": [1]}, [("l", "a"), ("l", "null")]),
        ({"l": [{"name": "c", "env": [1, 2]}]}, {"l": [{"name": "c", "env": [1]}]}, [("l", "c", "env", "2")]),
        ({"a": 1, "b": None}, {"a": 2, "b": None}, []),
        (TWINS, {"l": TWINS["l"][::-1]}, []),
        ({"l": TWINS["l"][::-1]}, TWINS, []),
    ],
)
def test_removed_objects_and_fields(before: Any, after: Any, lost: Any) -> None:
    assert sorted(moved(before, after)[0]) == lost


def test_only_removals_reverted_by_the_operator_are_temporary() -> None:
    """A replacement drops the annotation of a controller, which puts it back."""
    one = Taken()
    whole: Any = {"metadata": {"annotations": {"revision": "1"}}, "data": {"a": "1", "b": "2"}}
    less: Any = {"metadata": {}, "data": {"a": "1"}}
    assert one.put_back("x", whole, less, 1) == set()
    assert one.put_back("y", less, whole, 2) == set()
    assert one.put_back("x", less, {**less, "data": whole["data"]}, 2) == {(1, "x", ("data", "b"))}
    assert one.put_back("x", less, {**less, "data": whole["data"]}, 2) == set()


def test_a_story_names_only_the_first_few_removals(sandbox: Sandbox) -> None:
    keys = {f"{number}{'k' * 200}" for number in range(9)}
    state: State = {"configmaps all": [{"data": dict.fromkeys(keys, "")}]}
    reference = Record(checkpoints=[state, state])
    point = point_of("crash@create:configmaps:all#1")
    run = trial.OperatorTrial(sandbox, sandbox.snapshot(), "", point, reference)
    run.stop()
    run.record.taken = {(1, "configmaps all", ("data", key)) for key in keys}
    *output, more = run._vanished(reference)
    assert more == "… and 4 entries more"
    assert len(output) == 5
    assert max(map(len, output)) < 300


def test_fields_that_are_in_all_references() -> None:
    first = {"a x": [{"data": {"k": "1", "l": "m n", "o": "p"}}], "a y": [{}, {}]}
    reference = masked(first, {"a x": [{"data": {"k": "2", "l": "m n"}}], "a y": [{}, {}]})
    found = [entry for entry in ("k", "l", "o", "q") if ("data", entry) in entries(reference, "a x")]
    assert found == ["k", "l"]
    assert ("data", "l", "m") in entries(reference, "a x")
    assert ("data", "k", "1") not in entries(reference, "a x")
    assert ("data",) not in entries(reference, "a y")
    assert ("data",) not in entries(reference, "a z")


def test_temporary_removals_by_a_restart_are_reported(sandbox: Sandbox) -> None:
    """Settled states do not show it: everything is restored."""
    found = perturb(sandbox, CASES["forgets-the-rest"].scenario(True), kinds=("crash",), enough=1)
    assert "configmaps default/all: data.web was taken away for a while" in found[0].story
    assert perturb(sandbox, CASES["forgets-the-rest"].scenario(False), only=[found[0].point]) == []


def test_values_that_differ_in_the_references_match_anything() -> None:
    first = {"a x": [{"k": 1, "l": [1], "m": "s"}], "a y": [{}]}
    second = {"a x": [{"k": 2, "l": [1], "m": "s"}]}
    reference = masked(first, second)
    assert list(differences(reference, {"a x": [{"k": 3, "l": [1], "m": "s"}]})) == []
    assert list(differences(reference, {"a x": [{"k": 3, "l": [2], "m": "s"}]})) == ["a x: l.0 is 2, and was 1"]
    assert list(differences(reference, {})) == ["a x is missing"]
    assert list(differences(reference, {**first, "b z": [{}]})) == ["b z was never deleted, or should not be there"]


def test_values_that_differ_in_the_references_must_exist() -> None:
    reference = masked({"a x": [{"k": "1"}], "a y": [1]}, {"a x": [{"k": "2"}], "a y": [1, 2]})
    assert list(differences(reference, {"a x": [{"k": "3"}], "a y": [3]})) == []
    missing = ["a x: k is not set, and was 'anything'", "a y is missing"]
    assert list(differences(reference, {"a x": [{}]})) == missing


def test_an_observed_generation_must_be_the_current_one() -> None:
    def of(generation: int, observed: int) -> State:
        return {"a x": [plain({"status": {"observedGeneration": observed}}, "", generation)]}

    assert list(differences(of(2, 2), of(3, 3))) == []
    assert list(differences(of(2, 1), of(3, 3))) == []
    assert list(differences(of(2, 2), of(3, 2))) == [
        'a x: status.observedGeneration is not set, and was "the object\'s generation"'
    ]
    assert plain({"data": {"uid": "a", "generation": "1"}, "metadata": {"uid": "a"}}, "") == {
        "data": {"uid": "a", "generation": "1"},
        "metadata": {},
    }


def test_words_that_agree_in_the_references_must_agree() -> None:
    """Passwords in two places, and uids of owners; not what is the same in all runs."""
    first = {
        "secrets a data.k": ["hunter22"],
        "b url": ["web-fixed", "hunter22"],
        "c m": ["other-1"],
        "d m": ["same-x"],
    }
    second = {
        "secrets a data.k": ["zebra333"],
        "b url": ["web-fixed", "zebra333"],
        "c m": ["other-2"],
        "d m": ["same-x"],
    }
    ties = ties_of(first, second)
    assert ties == [[("b url", 1), ("secrets a data.k", 0)]]
    assert list(untied(ties, {"secrets a data.k": ["horse444"], "b url": ["web-fixed", "horse444"]})) == []
    assert list(untied(ties, {"secrets a data.k": ["horse444"]})) == []
    assert list(untied(ties, {"secrets a data.k": ["horse444"], "b url": ["web-fixed", "donkey55"]})) == [
        "secrets a data.k has 'horse444' where b url has 'donkey55': they should agree"
    ]


def test_repeated_words_constrain_nothing() -> None:
    """Two generated names stand in the order of their creation here, and sorted there: by chance that is the same."""
    first = {
        "a data.made": ["web-7mhkd", "web-x2c4f"],
        "b data.there": ["web-7mhkd", "web-x2c4f"],
        "c data.k": ["hunter22"],
        "d data.k": ["hunter22"],
        "* a data.made": ["web-7mhkd", "web-x2c4f"],
    }
    second = {
        "a data.made": ["web-5cc9z", "web-r8dtx"],
        "b data.there": ["web-5cc9z", "web-r8dtx"],
        "c data.k": ["zebra333"],
        "d data.k": ["zebra333"],
        "* a data.made": ["web-5cc9z", "web-r8dtx"],
    }
    assert ties_of(first, second) == [[("c data.k", 0), ("d data.k", 0)]]


def test_the_order_of_several_words_is_recorded(sandbox: Sandbox) -> None:
    base = sandbox.snapshot()
    variables = [{"name": "FIRST", "value": "hunter22"}, {"name": "SECOND", "value": "zebra333"}]
    containers = [{"name": "c", "image": "i", "env": variables, "args": ["--one-more", "--two-more"]}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}}
    names = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "web-7mhkd, web-x2c4f"}}
    sandbox.apply(pod, names)
    client = core(sandbox.kubeconfig)
    for _ in range(2):
        client.create_namespaced_config_map("default", {"metadata": {"generateName": "one-of-"}})
    words = sandbox.run(lambda: words_of(sandbox.server.store, base, "default"))
    assert words["configmaps a data.k"] == words["* configmaps a data.k"] == ["web-7mhkd", "web-x2c4f"]
    assert words["pods a spec.containers.0.env.1.value"] == ["zebra333"]
    assert words["* pods a spec.containers.0.args.*"] == ["--one-more", "--two-more"]
    assert len(words["* configmaps one-of-* metadata.name"]) == 2
    assert [place for place in words if place.startswith("* pods a spec.containers")] == [
        "* pods a spec.containers.0.args.*"
    ]


def test_words_are_taken_from_texts_and_secrets(sandbox: Sandbox) -> None:
    base = sandbox.snapshot()
    sandbox.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "db://hunter22@h"}}
    )
    at = "2026-01-01T00:00:00Z at 1767225600123"
    sandbox.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": f"default-x {at}"}}
    )
    words = sandbox.run(lambda: words_of(sandbox.server.store, base, "default"))
    (secret,) = sandbox.run(lambda: sandbox.server.store.list(GVR("", "v1", "secrets"), "default"))
    assert words["secrets a data.k"] == ["hunter22"]
    assert words["configmaps a data.k"] == []
    assert words["secrets a metadata.uid"] == [secret.doc["metadata"]["uid"]]


def test_help_names_all_kinds() -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    texts = [option.attrs()["help"] for group in parser._groups for option in group.options]
    assert any(f"{','.join(KINDS)} (the default), refused" in text for text in texts)


def test_the_argument_of_the_option_can_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").touch()
    for words in (["lost"], ["-x"], ["crash,lost", str(tmp_path)]):
        args = ["--kcm-perturb", *words]
        pytest_load_initial_conftests(args)
        assert args == ["--kcm-perturb", *words]
    for words in ([str(tmp_path)], ["-q", f"{tmp_path}/test_it.py::test_copies"]):
        args = [*words[:-1], "--kcm-perturb", words[-1]]
        pytest_load_initial_conftests(args)
        assert args == [*words[:-1], "--kcm-perturb=", words[-1]]


OPERATOR = """
import threading
import kubernetes
import pytest
from kcm_cli.testing import HostOptions

@pytest.fixture(scope="session")
def kcm_options():
    return HostOptions(nodes=0, controllers=False)

def operator(kubeconfig, stop):
    core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(kubeconfig))
    while not stop.wait(0.02):
        try:
            for found in core.list_namespaced_config_map(NAMESPACE[0], label_selector="copy=yes").items:
                name = "copy-of-" + found.metadata.name
                metadata = {"generateName": name} if BUGGY else {"name": name}
                if not any(one.metadata.name.startswith(name) for one in KNOWN) or not BUGGY:
                    KNOWN.append(core.create_namespaced_config_map(NAMESPACE[0], {"metadata": metadata}))
        except Exception:
            continue

NAMESPACE, KNOWN = [], []

def test_copies(kcm_operator, kcm_sandbox, kcm_namespace):
    NAMESPACE[:], KNOWN[:] = [kcm_namespace], []
    kcm_operator(operator)
    metadata = {"name": "a", "labels": {"copy": "yes"}}
    kcm_sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, namespace=kcm_namespace)
    kcm_operator.settle()
"""


KOPF = """
import os
import kopf
import pytest
from kcm_cli.testing import HostOptions

@pytest.fixture(scope="session")
def kcm_options():
    return HostOptions(nodes=0, controllers=False)

async def operator(kubeconfig):
    os.environ["KUBECONFIG"] = kubeconfig
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**keywords):
        return kopf.login_with_kubeconfig(**keywords)

    @kopf.on.create("configmaps", labels={"watched": "yes"}, registry=registry)
    def create(**keywords):
        pass

    @kopf.on.delete("configmaps", labels={"watched": "yes"}, registry=registry)
    def delete(**keywords):
        pass

    await kopf.operator(registry=registry, standalone=True, clusterwide=True)

def test_handled(kcm_operator, kcm_sandbox, kcm_namespace):
    kcm_operator(operator)
    metadata = {"name": "a", "labels": {"watched": "yes"}}
    kcm_sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, namespace=kcm_namespace)
    kcm_operator.settle()
"""


def run(folder: Path, *words: str, buggy: bool = True, source: str = OPERATOR) -> str:
    (folder / "test_it.py").write_text(source.replace("BUGGY", str(buggy)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "COLUMNS": "200"}  # a narrow summary cuts the names of points
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    ).stdout


def test_a_flaw_of_kopf_is_an_xfail(tmp_path: Path) -> None:
    point = "lost@patch:configmaps:a#1"
    output = run(tmp_path, "--kcm-replay", point, source=KOPF)
    assert f"  {point}: {FINALIZER}" in output, output
    assert "kcm-perturb: 0 points stood, 0 not" in output
    assert "2 passed, 1 xfailed" in output


def test_without_an_operator_nothing_is_perturbed(tmp_path: Path) -> None:
    source = "def test_alone():\n    pass\n"
    assert "no test uses the fixture kcm_operator: nothing was perturbed" in run(
        tmp_path, "--kcm-perturb", source=source
    )


def test_each_point_is_a_reported_test(tmp_path: Path) -> None:
    """The plugin in a separate pytest, on an operator with a lost answer."""
    absent = "crash@create:configmaps:nothing#1"
    output = run(tmp_path, "--kcm-replay", "lost@create:configmaps:copy-of-a*#1", "--kcm-replay", absent, "-rf")
    point = "lost@create:configmaps:copy-of-a*#1"
    assert f"FAILED test_it.py::test_copies[{point}]" in output, output
    assert "configmaps copy-of-a*: there are 2, not 1" in output
    assert f"again: pytest --kcm-perturb --kcm-replay '{point}'" in output
    assert "kcm-perturb: 0 points stood, 1 not" in output
    assert f"test_it.py::test_copies: {absent} did not come up: nothing was perturbed" in output


ASYNC = """
import asyncio
import inspect
import pytest

class Awaited(pytest.Function):
    def runtest(self):
        asyncio.run(self.obj(**{name: self.funcargs[name] for name in self._fixtureinfo.argnames}))

@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, name, obj):
    if inspect.iscoroutinefunction(obj) and name.startswith("test_"):
        return Awaited.from_parent(collector, name=name)

@pytest.fixture(scope="session")
def kcm_options():
    from kcm_cli.testing import HostOptions
    return HostOptions(nodes=0, controllers=False)
"""
AWAITING = """
class TestAwaited:
    async def test_it(self, kcm_operator):
        assert kcm_operator.record
"""


def test_tests_of_other_plugins_run_as_these_make_them(tmp_path: Path) -> None:
    """As pytest-asyncio, which has items of its own for coroutines."""
    (tmp_path / "conftest.py").write_text(ASYNC)
    output = run(tmp_path, "--kcm-perturb", source=AWAITING)
    assert "2 passed" in output, output

"""The log at -v=2, beside that of the Go manager: who created, changed and deleted what, why, for which owner.

The story of tests/logs is played on virtual time. The same was recorded with the Go manager (tests/recorded/log.json).
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from kcm_cli.component import logs
from kcm_cli.component.logs import V2, V4, fields_of, verbosity_of
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.engine.door import Write, write_of
from kcm_cli.machinery.kref import KRef
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked, Proceed
from kcm_cli.sandbox.nodes.agents import NodeOptions
from tests.kit.places import RECORDED
from tests.kit.simulation import MANAGER, World, simulate
from tests.logs.story import DEPLOYMENTS, SPACE, Story, workload, workload_of

FLAGS = ("--terminated-pod-gc-threshold=1", "--node-monitor-grace-period=20s")
RECORDING = json.loads((RECORDED / "log.json").read_text())
CLIENTS = {descriptor.client or descriptor.name: descriptor.name for descriptor in CONTROLLERS}
SHARED = {"node-controller": "taint-eviction-controller"}
"""Clients of several controllers, and the one that is meant."""
QUIET = ("events", "subjectaccessreviews", "serviceaccounts/token")

ELSEWHERE: dict[str | tuple[str, ...], str] = {
    ("Starting", "controller", "numWorkers"): "a controller that is not served here",
    "enqueueing job": "queues are the engine's, and tell nothing about a single key",
    "Failed to update statusUpdateNeeded field in actual state of world": "a race of Go's two caches",
    "Garbage collecting pods": "here the Jobs are gone before the sweep",
    "Insufficient node info for topology hints": "told by the Service's Event where hints are asked for",
    "Done waiting": "informers",
    "Waiting": "informers",
    "QuotaMonitor created object count evaluator": "parts of the Go controller",
    "QuotaMonitor running": "parts of the Go controller",
    "Running": "parts of the Go controller",
    "Sending events to API server": "parts of the Go controller",
    "Sending events to api server": "parts of the Go controller",
    "Sending events to api server.": "parts of the Go controller",
    "Starting service queue worker threads": "parts of the Go controller",
    "Starting topology queue worker threads": "parts of the Go controller",
    "Starting worker threads": "parts of the Go controller",
    "Underlying informers have synced": "informers",
    "Error syncing StatefulSet, requeuing": "a conflict that here does not happen",
    "Error syncing deployment": "a conflict that here does not happen",
    ("Error syncing PodDisruptionBudget, requeuing", "key"): "a conflict that here does not happen",
    "Unable to update status for cronjob": "a conflict that here does not happen",
    "synced quota controller": "discovery does not change here",
    "syncing resource quota controller with updated resources from discovery": "discovery does not change here",
}
"""Recorded messages that the story does not bring about here, and why."""


class Line(NamedTuple):
    level: int
    message: str
    fields: dict[str, Any]


class Heard(logging.Handler):
    """The lines of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(Line(record.levelno, record.getMessage(), dict(fields_of(record))))


class Run(NamedTuple):
    lines: list[Line]
    writes: list[tuple[Write, int]]


def heard(level: int, story: Any, only: tuple[str, ...] = ()) -> Run:
    """What is logged and written while a story goes on."""
    handler, writes = Heard(), list[tuple[Write, int]]()

    async def note(asked: Asked, proceed: Proceed) -> Answer:
        answer = await proceed(asked.request, None)
        if asked.user == MANAGER and asked.request.method != "GET":
            writes.append((write_of(asked.user_agent.rpartition("/")[2], asked.request), answer.status))
        return answer

    async def whole(world: World) -> None:
        world.server.api.interceptors.append(note)
        manager = world.manager(only=only, flags=FLAGS)
        await story(world)
        assert not manager.done()
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager

    ours = logging.getLogger("kcm_cli")
    before = ours.level
    ours.setLevel(level)
    ours.addHandler(handler)
    try:
        simulate(3, whole, NodeOptions(count=0))  # with it, n1 has pods of each workload that Go evicts there
    finally:
        ours.removeHandler(handler)
        ours.setLevel(before)
    return Run(handler.lines, writes)


@pytest.fixture(scope="module")
def told() -> Run:
    return heard(V2, lambda world: Story(world.client, world.clock.sleep).play())


def doors(lines: list[Line]) -> Iterator[Line]:
    return (line for line in lines if line.message in ("Wrote object", "Write was refused"))


def test_each_write_is_one_line_that_says_who_what_and_why(told: Run) -> None:
    loud = [write for write, _ in told.writes if write.resource not in QUIET]
    lines = list(doors(told.lines))
    assert len(lines) == len(loud) > 300
    assert all(line.fields["reason"] for line in lines)
    clients = {one.name: one.client or one.name for one in CONTROLLERS}
    seen = {(clients[line.fields["logger"]], line.fields["verb"], str(line.fields["object"])) for line in lines}
    named = {(write.controller, write.verb, str(KRef(write.name, write.namespace))) for write in loud if write.name}
    assert named <= seen


def test_what_was_made_for_another_object_names_it(told: Run) -> None:
    owners = {
        (line.fields["logger"], line.fields["verb"], line.fields["kind"], line.fields["owner"].split("/")[0])
        for line in doors(told.lines)
        if line.fields.get("owner")
    }
    assert {
        ("deployment-controller", "create", "ReplicaSet", f"Deployment {SPACE}"),
        ("replicaset-controller", "create", "Pod", f"ReplicaSet {SPACE}"),
        ("replicaset-controller", "delete", "Pod", f"ReplicaSet {SPACE}"),
        ("garbage-collector-controller", "delete", "Pod", f"ReplicaSet {SPACE}"),
        ("garbage-collector-controller", "delete", "ReplicaSet", f"Deployment {SPACE}"),
        ("garbage-collector-controller", "delete", "ConfigMap", f"ConfigMap {SPACE}"),
        ("cronjob-controller", "create", "Job", f"CronJob {SPACE}"),
        ("cronjob-controller", "delete", "Job", f"CronJob {SPACE}"),
        ("job-controller", "delete", "Pod", f"Job {SPACE}"),
        ("statefulset-controller", "delete", "Pod", f"StatefulSet {SPACE}"),
        ("daemonset-controller", "delete", "Pod", f"DaemonSet {SPACE}"),
        ("horizontal-pod-autoscaler-controller", "update", "deployments", f"HorizontalPodAutoscaler {SPACE}"),
    } <= owners


@pytest.mark.parametrize("write", [row for row in RECORDING["writes"] if row[1] == "delete"], ids="-".join)
def test_whoever_deletes_with_go_is_told_here_with_the_reason(told: Run, write: list[str]) -> None:
    client, verb, resource, of = write
    if (client, of) == ("pod-garbage-collector", "done"):
        pytest.skip("the Job with these pods is gone before the sweep")
    who = SHARED.get(client) or CLIENTS[client]
    names = {
        (
            line.fields["logger"],
            line.fields["verb"],
            line.fields["kind"].lower() + "s",
            workload_of(line.fields["object"].name),
        )
        for line in doors(told.lines)
    }
    assert (who, verb, resource, of) in names


EVICTED_WEB = ("taint-eviction-controller", "delete", "web")


def test_losses_evictions_and_refusals_say_why(told: Run) -> None:
    seen = {
        (line.fields["logger"], line.fields["verb"], workload_of(line.fields["object"].name), line.fields["reason"])
        for line in doors(told.lines)
    }
    assert {
        ("node-lifecycle-controller", "update", "n3", "kubelet does not report"),
        ("node-lifecycle-controller", "patch", "n3", "node is unreachable"),
        ("taint-eviction-controller", "delete", "frail", "node n3 has a NoExecute taint"),
        ("node-lifecycle-controller", "patch", "n3", "node is healthy again"),
        ("pod-garbage-collector-controller", "delete", "lost", "node n9 is gone"),
    } <= seen
    tainted = {reason for logger, verb, name, reason in seen if (logger, verb, name) == EVICTED_WEB}
    assert tainted and tainted <= {f"node {node} has a NoExecute taint" for node in ("n1", "n2", "n3")}
    refused = {
        (str(line.fields.get("owner")), line.fields["code"]) for line in doors(told.lines) if "code" in line.fields
    }
    assert ("ReplicaSet doomed/refused", 403) in refused


def test_each_pod_that_was_drained_has_a_line_for_its_replacement(told: Run) -> None:
    """Evictions are writes of kubectl. The manager tells of the pods that follow: two of four are on the node."""
    owners = [str(line.fields.get("owner")) for line in doors(told.lines) if line.fields["kind"] == "Pod"]
    assert sum(owner.startswith(f"ReplicaSet {SPACE}/moved-") for owner in owners) > 4


@pytest.mark.parametrize("line", RECORDING["lines"], ids=lambda line: f"{line[0]} {line[1]}"[:60])
def test_recorded_lines_are_logged_with_their_level_and_keys(told: Run, line: tuple[int, str, list[str]]) -> None:
    verbosity, message, keys = line
    found = [
        one.fields.keys()
        for one in told.lines
        if one.message == message and (-1 if one.level >= logging.ERROR else verbosity_of(one.level)) == verbosity
    ]
    excused = message in ELSEWHERE or (message, *keys) in ELSEWHERE
    assert any({*keys} - {"queueKey"} <= fields for fields in found) != excused, (
        "logged, it is no exception any more; not logged, it is one"
    )


@pytest.mark.parametrize(("level", "most"), [(V2, 20), (V4, 100)])
def test_a_deployment_is_told_in_a_few_lines(level: int, most: int) -> None:
    """Created, settled and deleted: Go logs 12 lines at -v=2, 149 at -v=4."""

    async def story(world: World) -> None:
        played = Story(world.client, world.clock.sleep)
        await played.begin()
        marked.append(len(handler.lines))
        await played.make(DEPLOYMENTS, "web", spec=workload("web", 1))
        await world.clock.sleep(20)
        await played.drop(DEPLOYMENTS, "web")
        await world.clock.sleep(20)
        marked.append(len(handler.lines))

    marked: list[int] = []
    handler = Heard()
    logging.getLogger("kcm_cli").addHandler(handler)
    try:
        heard(level, story)
    finally:
        logging.getLogger("kcm_cli").removeHandler(handler)
    lines = [line for line in handler.lines[marked[0] : marked[1]] if "held the event loop" not in line.message]
    gone = [line.fields["kind"] for line in doors(lines) if line.fields["verb"] == "delete"]
    assert sorted(gone) == ["Pod", "ReplicaSet"]
    assert 10 <= len(lines) <= most, "\n".join(f"{line.message} {line.fields}" for line in lines)


@pytest.mark.parametrize("format_", ["text", "json"])
def test_both_formats_have_one_line_for_each_record(
    told: Run, format_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """None has a line end that is not the format's."""
    root, ours = logging.getLogger(), logging.getLogger("kcm_cli")
    before, levels = root.handlers[:], (root.level, ours.level)
    logs.setup(LogsConfig(format=format_, verbosity=2))
    try:
        for line in told.lines:
            ours.log(line.level, line.message, extra={"fields": line.fields})
    finally:
        root.handlers[:] = before
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(told.lines)
    if format_ == "json":
        assert all({"ts", "caller", "msg"} <= json.loads(line).keys() for line in lines)
    else:
        assert all(re.match(r'[IWEF]\d{4} [\d:.]{15} +\d+ test_log\.py:\d+\] "', line) for line in lines)

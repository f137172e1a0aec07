"""The audit log: what it says of a request, what it leaves out, and its file."""

import io
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm_cli.api.protobuf.encoding import to_protobuf
from kcm_cli.rest.transport import ConnectionLost, Request
from kcm_cli.sandbox.apiserver.entry.audit_log import AuditLog, AuditOptions, event_of
from kcm_cli.sandbox.apiserver.entry.audit_policy import DEFAULT, Policy, policy_of
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.trace.audit import AuditLog as ReadLog
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target
from tests.kit.api import CONFIG_MAPS, Api

NOW = "2030-01-01T00:00:09.000000Z"
PODS = "/api/v1/namespaces/default/pods"
ALL = policy_of({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]})
POD = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def level(name: str, **more: Any) -> Policy:
    return policy_of({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": name}], **more})


def kept(api: Api, policy: Policy = ALL) -> list[Any]:
    """The events of what is requested from now on."""
    found: list[Any] = []

    def observe(exchange: Any) -> None:
        line = event_of(exchange, policy, NOW)
        if line is not None:
            assert line.count(b"\n") == 1 and line.endswith(b"\n")
            found.append(json.loads(line))

    api.server.api.observe(observe)
    return found


async def test_an_event_has_what_upstreams_has(api: Api) -> None:
    found = kept(api)
    pod = await api.json("POST", PODS, POD, status=201, query={"fieldManager": "me"}, headers={"audit-id": "7"})
    assert found == [
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": "7",
            "stage": "ResponseComplete",
            "requestURI": f"{PODS}?fieldManager=me",
            "verb": "create",
            "user": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "userAgent": "test/1",
            "objectRef": {"resource": "pods", "namespace": "default", "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "code": 201},
            "requestObject": POD,
            "responseObject": pod,
            "requestReceivedTimestamp": "2030-01-01T00:00:00.000000Z",
            "stageTimestamp": NOW,
            "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
        }
    ]
    assert list(found[0])[-3:] == ["requestReceivedTimestamp", "stageTimestamp", "annotations"]


async def test_a_refusal_has_its_status(api: Api) -> None:
    found = kept(api, level("Metadata"))
    answer = await api.json("PUT", f"{CONFIG_MAPS}/m", {"metadata": {"name": "m", "resourceVersion": "5"}}, status=404)
    (event,) = found
    assert event["responseStatus"] == {key: answer[key] for key in answer if key not in ("kind", "apiVersion")}
    assert event["objectRef"]["resourceVersion"] == "5"
    assert "requestObject" not in event and "responseObject" not in event


async def test_what_a_level_leaves_out(api: Api) -> None:
    found = kept(api, level("Request"))
    await api.config_map("m")
    assert "requestObject" in found[0] and "responseObject" not in found[0]
    none = kept(api, level("None"))
    await api.json("DELETE", f"{CONFIG_MAPS}/m")
    assert none == []


async def test_who_may_not(api: Api) -> None:
    found = kept(api)
    bob = Api(api.server, User("bob", "3", ("devs",)))
    await bob.json("DELETE", f"{CONFIG_MAPS}/m", status=403)
    (event,) = found
    assert event["user"] == {"username": "bob", "uid": "3", "groups": ["devs"]}
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


async def test_an_impersonated_user_is_beside_the_real_one(api: Api) -> None:
    found = kept(api)
    await api.json("GET", CONFIG_MAPS, headers={"impersonate-user": "carol"}, status=403)
    (event,) = found
    assert event["user"]["username"] == "kubernetes-admin"
    assert event["impersonatedUser"]["username"] == "carol"


async def test_credentials_that_are_not_accepted(api: Api) -> None:
    found = kept(api)
    answer = await api.server.api.handle(Request("GET", CONFIG_MAPS, headers={"authorization": "Bearer no"}))
    (event,) = found
    assert (event["user"], event["responseStatus"]["code"]) == ({}, 401)
    assert "annotations" not in event
    assert event["auditID"] == answer.headers["audit-id"]


async def test_protobuf_and_yaml_are_shown_as_json(api: Api) -> None:
    found = kept(api)
    headers = {"content-type": "application/vnd.kubernetes.protobuf", "accept": "application/vnd.kubernetes.protobuf"}
    doc = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}}
    answer = await api.call("POST", CONFIG_MAPS, to_protobuf(doc), headers=headers)
    assert answer.status == 201
    assert found[0]["requestObject"]["data"] == {"k": "v"}
    assert found[0]["responseObject"]["kind"] == "ConfigMap"
    apply = {"content-type": "application/apply-patch+yaml"}
    body = yaml.safe_dump({**doc, "data": {"k": "w"}}).encode()
    await api.json("PATCH", f"{CONFIG_MAPS}/m", body, headers=apply, query={"fieldManager": "f", "force": "true"})
    assert found[1]["responseObject"]["data"] == {"k": "w"}
    assert found[1]["requestObject"]["data"] == {"k": "w"}


@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"a":"\xff"}', b"[" * 20_000, b"- a: 1\n  b", b"a: b: c"])
async def test_a_body_that_cannot_be_read_is_left_out(api: Api, body: bytes, media: str) -> None:
    found = kept(api)
    assert (await api.call("POST", CONFIG_MAPS, body, headers={"content-type": media})).status >= 400
    assert "requestObject" not in found[0] and found[0]["responseObject"]["kind"] == "Status"


async def test_a_deep_body_is_kept(api: Api) -> None:
    lines: list[bytes | None] = []
    api.server.api.observe(lambda exchange: lines.append(event_of(exchange, ALL, NOW)))
    deep = b'{"metadata":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}"
    assert (await api.call("POST", CONFIG_MAPS, deep)).status == 400
    assert deep in (lines[0] or b"")


async def test_half_a_surrogate_is_what_go_reads(api: Api) -> None:
    found = kept(api)
    await api.call("POST", CONFIG_MAPS, b'{"metadata":{"name":"\\ud800"}}')
    assert found[0]["requestObject"] == {"metadata": {"name": "\ufffd"}}


async def test_a_list_of_patches_is_kept(api: Api) -> None:
    await api.config_map("m", data={"k": "v"})
    found = kept(api)
    patch = [{"op": "replace", "path": "/data/k", "value": "w"}]
    headers = {"content-type": "application/json-patch+json"}
    await api.json("PATCH", f"{CONFIG_MAPS}/m", patch, headers=headers)
    assert found[0]["requestObject"] == patch


async def test_managed_fields_can_be_left_out(api: Api) -> None:
    found = kept(api, level("RequestResponse", omitManagedFields=True))
    made = await api.config_map("m", data={"k": "v"})
    await api.json("GET", CONFIG_MAPS)
    assert "managedFields" in made["metadata"]
    assert "managedFields" not in json.dumps(found)
    assert found[0]["responseObject"]["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_watch_is_one_event(api: Api) -> None:
    found = kept(api)
    watching = await api.watch(CONFIG_MAPS)
    await api.config_map("m")
    await watching.end()
    assert [(one["verb"], one["stage"]) for one in found] == [
        ("watch", "ResponseStarted"),
        ("create", "ResponseComplete"),
    ]


async def test_faults_are_recorded_as_the_server_would(api: Api) -> None:
    """A refusal is the server's, a lost answer leaves the effect, and what did not arrive is not there."""
    faults, found = api.server.api.faults, kept(api)
    refuse = faults.add(Fault("refuse", status=503))
    await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, status=503)
    faults.remove(refuse.number)
    lose = faults.add(Fault("lose"))
    with pytest.raises(ConnectionLost):
        await api.config_map("b")
    faults.remove(lose.number)
    faults.add(Fault("away"))
    with pytest.raises(Exception, match="."):
        await api.config_map("c")
    assert [one["responseStatus"]["code"] for one in found] == [503, 201]


async def test_a_long_user_agent_is_cut(api: Api) -> None:
    found = kept(api)
    await api.call("GET", CONFIG_MAPS, headers={"user-agent": "x" * 2000})
    assert found[0]["userAgent"] == "x" * 1024 + "...TRUNCATED"


async def test_the_file_is_written_before_the_answer_and_appended_to(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"{}\n")
    log = AuditLog(AuditOptions(str(path)), api.server.api.core.clock)
    api.server.api.observe(log.observe)
    await api.config_map("m")
    await api.json("GET", CONFIG_MAPS)
    lines = path.read_bytes().splitlines()
    log.close()
    log.close()
    assert len(lines) == 2 and lines[0] == b"{}"
    read = ReadLog(Target("configmap", "default", "m"), History())
    read.read(io.BytesIO(lines[1] + b"\n"))
    assert read.bad == 0 and [step.verb for step in read.history.steps] == ["was created"]


async def test_a_new_file_is_private(tmp_path: Path, api: Api) -> None:
    path = tmp_path / "audit.log"
    AuditLog(AuditOptions(str(path)), api.server.api.core.clock).close()
    assert os.stat(path).st_mode & 0o777 == 0o600


async def test_two_files_are_kept(api: Api, tmp_path: Path) -> None:
    path, most = tmp_path / "audit.log", 5000
    log = AuditLog(AuditOptions(str(path), DEFAULT, most), api.server.api.core.clock)
    api.server.api.observe(log.observe)
    for number in range(30):
        await api.config_map(f"m-{number}")
    log.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["audit.log", "audit.log.1"]
    assert all(0 < one.stat().st_size <= most for one in tmp_path.iterdir())
    names = [
        json.loads(line)["objectRef"]["name"]
        for file in (tmp_path / "audit.log.1", path)
        for line in file.read_bytes().splitlines()
    ]
    assert names == [f"m-{number}" for number in range(30)][-len(names) :]


async def test_links_and_pipes_are_not_renamed(api: Api, tmp_path: Path) -> None:
    """As /dev/stdout and /dev/null."""
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(tmp_path / "file")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    logs = [AuditLog(AuditOptions(str(path), DEFAULT, 10), api.server.api.core.clock) for path in (link, pipe)]
    for log in logs:
        api.server.api.observe(log.observe)
    for name in ("a", "b", "c"):
        await api.config_map(name)
    for log in logs:
        log.close()
    assert len((tmp_path / "file").read_bytes().splitlines()) == len(os.read(reader, 1 << 16).splitlines()) == 3
    os.close(reader)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "link", "pipe"]


async def test_a_full_disk_costs_the_events_and_no_request(
    api: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("builtins.open", lambda *_, **__: Full())
    log = AuditLog(AuditOptions(str(tmp_path / "audit.log")), api.server.api.core.clock)
    monkeypatch.undo()
    api.server.api.observe(log.observe)
    with caplog.at_level(logging.ERROR):
        for name in ("a", "b"):
            await api.config_map(name)
    assert [record.message for record in caplog.records] == ["Cannot write the audit log"]


async def test_a_file_that_cannot_be_renamed_costs_events_until_it_can(
    api: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, kept_before = tmp_path / "audit.log", tmp_path / "audit.log.1"
    kept_before.mkdir()
    (kept_before / "x").touch()
    log = AuditLog(AuditOptions(str(path), DEFAULT, 1), api.server.api.core.clock)
    api.server.api.observe(log.observe)
    for name in ("a", "b", "c"):
        await api.config_map(name)
    assert [record.message for record in caplog.records] == ["Cannot write the audit log"]
    (kept_before / "x").unlink()
    kept_before.rmdir()
    await api.config_map("d")
    log.close()
    assert [json.loads(file.read_bytes())["objectRef"]["name"] for file in (kept_before, path)] == ["a", "d"]

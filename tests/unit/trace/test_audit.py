"""Audit logs: what is read of them, and what cannot be."""

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.errors import FormatError
from kcm_cli.trace import audit, history
from kcm_cli.trace.audit import AuditLog, read_files
from kcm_cli.trace.behind import Linked
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target
from kcm_cli.trace.steps import actor_of
from kcm_cli.trace.text import head, lines

POD = Target("pod", "shop", "web-1")


def event(verb: str = "delete", at: int = 1, **more: Any) -> dict[str, Any]:
    reference = {"resource": "pods", "namespace": "shop", "name": "web-1", "apiVersion": "v1", **more.pop("ref", {})}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": more.pop("user", "alice")},
        "objectRef": reference,
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": f"2026-11-28T03:00:{at:02}.000000Z",
        **more,
    }


def read(*events: Any, target: Target = POD) -> AuditLog:
    log = AuditLog(target, History())
    body = b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in events)
    log.read(io.BytesIO(body))
    return log


def told(log: AuditLog, target: Target = POD) -> str:
    return "\n".join(head(Linked(log.history.steps, log.history.relations).about(target)))


def test_who_deleted_it() -> None:
    assert "Pod shop/web-1 was deleted by alice (known: audit log)" in told(read(event()))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"user": "system:serviceaccount:kube-system:replicaset-controller"}, "by replicaset-controller"),
        ({"user": "system:serviceaccount:kube-system:generic-garbage-collector"}, "by garbage-collector-controller"),
        ({"user": "system:node:n1"}, "by kubelet of n1"),
        ({"impersonatedUser": {"username": "bob"}}, "by bob (as alice said)"),
        ({"verb": "patch", "responseStatus": {"code": 201}}, "was created by alice"),
        ({"verb": "update", "responseStatus": {"code": 201}}, "was created by alice"),
        ({"verb": "create", "ref": {"subresource": "eviction"}}, "was evicted by alice"),
        (
            {"responseStatus": {"code": 403, "reason": "Forbidden"}},
            "alice was refused for Pod shop/web-1: delete Pod: 403",
        ),
    ],
)
def test_what_is_told(more: dict[str, Any], says: str) -> None:
    assert says in told(read(event(**more)))


@pytest.mark.parametrize(
    "more",
    [
        {"stage": "RequestReceived"},
        {"verb": "get"},
        {"ref": {"name": "web-2", "namespace": "other"}},
        {"responseStatus": {"code": 404}},
        {"responseStatus": {"code": 409, "reason": "Conflict"}},
        {"objectRef": None},
        {"stage": None, "verb": None, "user": None},
    ],
)
def test_what_says_nothing(more: dict[str, Any]) -> None:
    log = read(event(**more))
    assert "is unknown" in told(log) and log.bad == 0


@pytest.mark.parametrize(
    "more",
    [
        {"requestURI": "/api/v1/namespaces/shop/pods/web-1?dryRun=All"},
        {
            "verb": "patch",
            "requestURI": "/api/v1/namespaces/shop/pods/web-1?fieldManager=kubectl&dryRun=All&force=true",
        },
        {"verb": "create", "requestURI": "/x?dryRun=All", "responseStatus": {"code": 403, "reason": "Forbidden"}},
        {"requestObject": {"kind": "DeleteOptions", "dryRun": ["All"]}},
        {
            "verb": "create",
            "ref": {"subresource": "eviction"},
            "requestObject": {"kind": "Eviction", "deleteOptions": {"dryRun": ["All"]}},
        },
    ],
)
def test_a_dry_run_is_no_write(more: dict[str, Any]) -> None:
    """As kubectl diff and apply --dry-run=server send it. kubernetes#117988"""
    log = read(event(**more))
    assert "is unknown" in told(log) and log.bad == 0


@pytest.mark.parametrize("more", [{"requestURI": "/pods/web-1?fieldManager=dryRun"}, {"requestObject": {"dryRun": []}}])
def test_no_other_request_is_a_dry_run(more: dict[str, Any]) -> None:
    assert "was deleted by alice" in told(read(event(**more)))


@pytest.mark.parametrize("code", [101, 200, 400, 403])
@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward", "proxy"])
def test_a_connection_to_a_pod_is_no_write(subresource: str, code: int) -> None:
    """Clients open some of them by POST, which is create, and answered with 101."""
    answer = {"code": code, "reason": "Forbidden" if code >= 400 else ""}
    log = read(event("create", ref={"subresource": subresource}, responseStatus=answer))
    assert "is unknown" in told(log) and log.bad == 0


def test_a_token_makes_no_service_account() -> None:
    account = Target("sa", "shop", "robot")
    ref = {"resource": "serviceaccounts", "name": "robot", "subresource": "token"}
    log = read(event("create", ref=ref, responseStatus={"code": 201}), target=account)
    assert "is unknown" in told(log, account)


@pytest.mark.parametrize(
    ("query", "says"),
    [("", "all of Deployment shop/ were deleted by namespace-controller"), ("?labelSelector=a%3Db", "last: ")],
)
def test_what_went_with_all_others_is_gone(query: str, says: str) -> None:
    """A selector may have left it out."""
    web, ref = Target("deploy", "shop", "web"), {"resource": "deployments", "apiGroup": "apps", "name": "web"}
    log = read(
        event("create", responseStatus={"code": 201}, ref=ref),
        event("create", 2, responseStatus={"code": 403}, ref={"name": "web-1"}),
        event(
            "deletecollection",
            3,
            user="system:serviceaccount:kube-system:namespace-controller",
            ref={**ref, "name": ""},
            requestURI=f"/apis/apps/v1/namespaces/shop/deployments{query}",
        ),
        target=web,
    )
    assert says in told(log, web)


def failed(reason: str, message: str, at: int, *, generated: bool = False) -> dict[str, Any]:
    """The request with an Event, which has no uid yet, and no name if that is generated."""
    name = f"web-1.{at}"
    named = {"generateName": "web-1-"} if generated else {"name": name}
    body = {
        "metadata": {"namespace": "shop", **named},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u"},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": f"2026-11-28T03:00:{at:02}Z",
        "lastTimestamp": f"2026-11-28T03:00:{at:02}Z",
        "count": 1,
    }
    ref = {"resource": "events", "name": "" if generated else name}
    return event("create", at, ref=ref, user="system:node:n1", requestObject=body)


@pytest.mark.parametrize("generated", [False, True])
def test_each_event_is_told(generated: bool) -> None:
    first = failed("FailedMount", "no such volume", 1, generated=generated)
    log = read(first, failed("BackOff", "back-off restarting", 2, generated=generated))
    text = "\n".join(lines(Linked(log.history.steps, log.history.relations).about(POD), []))
    assert "FailedMount: no such volume" in text and "BackOff: back-off restarting" in text


def test_an_event_of_the_newer_api_is_told() -> None:
    """As the scheduler writes them."""
    body = {
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "web-1.1", "namespace": "shop"},
        "eventTime": "2026-11-28T03:00:01.5Z",
        "reportingController": "default-scheduler",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u"},
        "note": "0/3 nodes are available",
        "type": "Warning",
    }
    ref = {"resource": "events", "name": "web-1.1", "apiGroup": "events.k8s.io"}
    log = read(event("create", ref=ref, user="system:kube-scheduler", requestObject=body))
    assert "kube-scheduler says of Pod shop/web-1: FailedScheduling: 0/3 nodes are available" in told(log)


def test_all_controllers_have_one_user_without_their_own_accounts() -> None:
    agent = "kube-controller-manager/v1.36.2 (linux/amd64) kubernetes/abcdef1/replicaset-controller"
    assert actor_of("system:kube-controller-manager", agent) == "replicaset-controller"
    assert actor_of("system:kube-controller-manager", "curl/8") == "kube-controller-manager"


def test_bad_lines_are_counted_and_the_others_read() -> None:
    log = read(
        b"\x00\xff\n", b"{}\n", b'{"kind":"Event"}\n', b"[1]\n", b"\n", b"{" * 2000 + b"\n", event(), b'{"kind":"Ev'
    )
    assert (log.lines, log.bad) == (8, 6) and "by alice" in told(log)


def test_a_line_without_an_end_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_LINE", 4096)
    log = read(b"x" * 100_000 + b"\n", event())
    assert (log.lines, log.bad) == (2, 1) and "by alice" in told(log)


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 100)
    log = AuditLog(POD, History())
    line = [event("patch", ref={"name": f"web-{n}", "uid": f"{n}"}) for n in range(2000)]
    body = b"".join(json.dumps(one).encode() + b"\n" for one in line)
    tracemalloc.start()
    log.read(io.BytesIO(body))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(log.history.steps) == 100 and log.history.forgotten == 1900
    assert most < len(body) / 2


def test_files_are_read_in_their_order_and_gzip_is(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(json.dumps(event("create", user="carol")).encode() + b"\n"))
    (tmp_path / "b.log").write_text(json.dumps(event("delete", 5)) + "\n")
    log = AuditLog(POD, History())
    read_files((str(tmp_path / "a.gz"), str(tmp_path / "b.log")), log)
    assert log.lines == 2 and "deleted by alice" in told(log)
    text = "\n".join(lines(Linked(log.history.steps, log.history.relations).about(POD), []))
    assert "created by carol" in text


def test_a_file_of_which_nothing_can_be_read_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 10_000)[:20])
    for name in ("a.gz", "absent"):
        with pytest.raises(FormatError, match="--audit-log: cannot read"):
            read_files((str(tmp_path / name),), AuditLog(POD, History()))


def zipped() -> bytes:
    return gzip.compress(b"".join(json.dumps(event("patch", n, user=f"u{n * n}")).encode() + b"\n" for n in range(60)))


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(zipped()[:-20], id="cut"),
        pytest.param(zipped()[:-8] + b"\0" * 8, id="another checksum"),
        pytest.param(zipped() + b"\0\0garbage", id="something behind it"),
    ],
)
def test_a_file_that_cannot_be_read_to_its_end_costs_no_more_than_that(tmp_path: Path, spoilt: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(spoilt)
    (tmp_path / "b.log").write_text(json.dumps(event("delete", 59)) + "\n")
    log = AuditLog(POD, History())
    read_files((str(tmp_path / "a.gz"), str(tmp_path / "b.log")), log)
    assert log.lines > 40 and "deleted by alice" in told(log)
    ((path, why),) = log.cut.items()
    assert path == str(tmp_path / "a.gz") and why


@pytest.mark.parametrize("body", [b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[]}\n', b"a=b\n" * 9])
def test_what_is_no_audit_log_is_one_error(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "a.log").write_bytes(body)
    with pytest.raises(FormatError, match=r"a\.log has no line with an event of audit\.k8s\.io/v1"):
        read_files((str(tmp_path / "a.log"),), AuditLog(POD, History()))


def test_a_log_without_lines_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\n")
    read_files((str(tmp_path / "a.log"),), AuditLog(POD, History()))


def test_no_part_of_a_body_is_shown() -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "env": [{"name": "P", "value": "sesame"}]}]}
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u"},
        "spec": spec,
    }
    log = read(event("create", responseObject=pod, requestObject=pod), event("update", 2, responseObject=pod))
    refused = {"code": 403, "reason": "Forbidden", "message": 'admission webhook "w" denied the request: sesame'}
    log.read(io.BytesIO(json.dumps(event("update", 3, responseStatus=refused)).encode()))
    assert "sesame" not in "\n".join(lines(Linked(log.history.steps, log.history.relations).about(POD), []))
    assert "admission webhook w" in told(log)


@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=4),
            lambda inner: st.dictionaries(
                st.sampled_from([*event(), "requestObject", "responseObject", "metadata", "name", "uid", "status"]),
                inner,
            ),
            max_leaves=8,
        ),
        max_size=3,
    )
)
def test_whatever_is_in_a_log_is_told(parts: list[Any]) -> None:
    events = [{**event(), **(one if isinstance(one, dict) else {"objectRef": one})} for one in parts]
    log = read(*events)
    assert log.lines == len(events)
    text = "\n".join(lines(Linked(log.history.steps, log.history.relations).about(POD), ["note"]))
    assert text.replace("\n", "").isprintable()


def resized(at: int, version: int, user: str, size: int, generation: int) -> dict[str, Any]:
    """A write of a Deployment, with its answer."""
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": str(version)}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**metadata, "generation": generation}}
    ref = {"resource": "deployments", "apiGroup": "apps", "name": "web"}
    return event("patch", at, user=user, ref=ref, responseObject={**made, "spec": {"replicas": size}})


WEB = Target("deploy", "shop", "web")
WRITES = [
    resized(1, 10, "al", 1, 1),
    resized(2, 11, "bob", 3, 2),
    resized(3, 12, "cy", 5, 3),
    resized(4, 13, "di", 2, 4),
]


def test_the_logs_of_several_servers_are_put_in_the_order_of_time(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 1)):
        (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in WRITES[first::2]))
    log = AuditLog(WEB, History())
    read_files((str(tmp_path / "b"), str(tmp_path / "a")), log)
    text = "\n".join(lines(Linked(log.history.steps, log.history.relations).about(WEB), []))
    for says in ("by bob: from 1 to 3", "by cy: from 3 to 5", "by di: from 5 to 2"):
        assert f"Deployment shop/web was scaled {says} (known: audit log)" in text


def test_an_answer_that_is_logged_late_says_nothing_of_what_was_before() -> None:
    log = read(*(WRITES[index] for index in (0, 2, 1, 3)), target=WEB)
    text = "\n".join(lines(Linked(log.history.steps, log.history.relations).about(WEB), []))
    assert "Deployment shop/web was changed by bob (known: audit log)" in text
    assert "by di: from 5 to 2" in text and "from 5 to 3" not in text


@pytest.mark.parametrize(
    ("word", "resource", "group", "is_it"),
    [
        ("svc", "services", "", True),
        ("svc", "services", "serving.knative.dev", False),
        ("services.serving.knative.dev", "services", "serving.knative.dev", True),
        ("services.serving.knative.dev", "services", "", False),
        ("job", "jobs", "batch.volcano.sh", False),
        ("rollout.argoproj.io", "rollouts", "argoproj.io", True),
    ],
)
def test_another_apis_kind_of_the_same_name_is_another_kind(word: str, resource: str, group: str, is_it: bool) -> None:
    target = Target(word, "shop", "web")
    log = read(event("patch", ref={"resource": resource, "apiGroup": group, "name": "web"}), target=target)
    assert ("shop/web was changed by alice" in told(log, target)) is is_it

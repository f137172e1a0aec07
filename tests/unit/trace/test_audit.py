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


def test_a_file_that_is_cut_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 10_000)[:20])
    for name in ("a.gz", "absent"):
        with pytest.raises(FormatError, match="--audit-log: cannot read"):
            read_files((str(tmp_path / name),), AuditLog(POD, History()))


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

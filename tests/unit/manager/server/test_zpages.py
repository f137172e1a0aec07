import asyncio
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.component.version import EffectiveVersion
from kcm_cli.manager.server.mux import Handler
from kcm_cli.manager.server.zpages import Form, flagz, folders, negotiate, statusz

STRUCTURED = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"
STARTED = datetime(2026, 3, 7, 1, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form("text/plain")),
        ("*/*", Form("text/plain")),
        ("text/plain", Form("text/plain")),
        ("text/plain; charset=utf-8", Form("text/plain")),
        (STRUCTURED, Form("application/json", "v1beta1")),
        (STRUCTURED.replace("beta", "alpha").replace("json", "yaml"), Form("application/yaml", "v1alpha1")),
        (f"text/plain;q=0.5,{STRUCTURED}", Form("application/json", "v1beta1")),
        (f"text/plain,{STRUCTURED};q=0.5", Form("text/plain")),
        ("application/json", None),
        ("application/json;v=v1;g=config.k8s.io;as=Flagz", None),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", None),
        ("application/vnd.kubernetes.protobuf", None),
    ],
)
def test_negotiation(accept: str, form: Form | None) -> None:
    assert negotiate(accept, "Flagz") == form


def ask(handler: Handler, accept: str = "") -> Response:
    headers = [(b"accept", accept.encode())] if accept else []
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    return asyncio.run(handler(Request(scope)))  # type: ignore[arg-type]  # a coroutine in truth


def test_flags_are_sorted_and_the_text_stays_the_same() -> None:
    handler = flagz({"b": "2", "a": "1"}, random.Random(1))
    text = bytes(ask(handler).body).decode()
    assert text.startswith("\nkube-controller-manager flagz\nWarning: ")
    assert text.index("\na") < text.index("\nb")
    assert bytes(ask(handler).body).decode() == text


def test_flags_as_objects() -> None:
    handler = flagz({"b": "2", "a": "1"}, random.Random(1))
    document = json.loads(bytes(ask(handler, STRUCTURED).body))
    assert document == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-controller-manager"},
        "flags": {"a": "1", "b": "2"},
    }
    assert ask(handler, STRUCTURED).headers["content-type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    old = ask(handler, STRUCTURED.replace("beta", "alpha").replace("json", "yaml"))
    assert yaml.safe_load(bytes(old.body))["apiVersion"] == "config.k8s.io/v1alpha1"
    assert old.headers["warning"].startswith("299 - ")
    assert old.headers["content-type"] == "application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz"
    assert ask(handler, "application/json").status_code == 406


def test_status_tells_since_when_it_is_up() -> None:
    now = STARTED + timedelta(hours=2, minutes=3, seconds=4)
    handler = statusz(STARTED, lambda: now, EffectiveVersion(), lambda: ("/healthz", "/metrics"))
    text = bytes(ask(handler).body).decode()
    assert "Sat Mar  7 01:02:03 UTC 2026\n" in text
    assert "2 hr 03 min 04 sec\n" in text
    assert text.endswith("/healthz /metrics\n")
    document = json.loads(bytes(ask(handler, STRUCTURED.replace("Flagz", "Statusz")).body))
    assert document["startTime"] == "2026-03-07T01:02:03Z"
    assert document["uptimeSeconds"] == 2 * 3600 + 3 * 60 + 4
    assert document["paths"] == ["/healthz", "/metrics"]


def test_paths_by_their_first_part() -> None:
    assert folders(("/metrics/slis", "/metrics", "/healthz")) == ("/healthz", "/metrics")

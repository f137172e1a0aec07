import random
from datetime import UTC, datetime, timedelta

import pytest

from kcm_cli.component.version import GIT_VERSION, EffectiveVersion
from kcm_cli.component.zpages import Answer, Form, Page, flagz, folders, negotiate, statusz

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
        ("a," * 500_000 + "text/plain", None),
    ],
)
def test_negotiation(accept: str, form: Form | None) -> None:
    assert negotiate(accept, "Flagz") == form


def ask(page: Page, accept: str = "") -> Answer:
    answer = page.answer(accept)
    assert answer is not None
    return answer


def test_flags_are_sorted_and_the_text_is_stable() -> None:
    handler = flagz("kube-x", {"b": "2", "a": "1"}, random.Random(1))
    text = ask(handler).text
    assert text.startswith("\nkube-x flagz\nWarning: ")
    assert text.index("\na") < text.index("\nb")
    assert ask(handler).text == text


def test_flags_as_objects() -> None:
    handler = flagz("kube-x", {"b": "2", "a": "1"}, random.Random(1))
    document = ask(handler, STRUCTURED).document
    assert document == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-x"},
        "flags": {"a": "1", "b": "2"},
    }
    assert ask(handler, STRUCTURED).headers["content-type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    old = ask(handler, STRUCTURED.replace("beta", "alpha").replace("json", "yaml"))
    assert old.document is not None and old.document["apiVersion"] == "config.k8s.io/v1alpha1"
    assert old.headers["warning"].startswith("299 - ")
    assert old.headers["content-type"] == "application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz"
    assert handler.answer("application/json") is None


def test_status_has_the_uptime() -> None:
    now = STARTED + timedelta(hours=2, minutes=3, seconds=4)
    handler = statusz("kube-x", STARTED, lambda: now, EffectiveVersion(), lambda: ("/healthz", "/metrics"))
    text = ask(handler).text
    assert "Sat Mar  7 01:02:03 UTC 2026\n" in text
    assert "2 hr 03 min 04 sec\n" in text
    assert text.endswith("/healthz /metrics\n")
    document = ask(handler, STRUCTURED.replace("Flagz", "Statusz")).document
    assert document is not None
    assert document["startTime"] == "2026-03-07T01:02:03Z"
    assert document["uptimeSeconds"] == 2 * 3600 + 3 * 60 + 4
    assert document["binaryVersion"] == GIT_VERSION.removeprefix("v")
    assert document["paths"] == ["/healthz", "/metrics"]


def test_paths_by_their_first_part() -> None:
    assert folders(("/metrics/slis", "/metrics", "/healthz")) == ("/healthz", "/metrics")

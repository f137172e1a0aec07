"""kcm bug-report: what it gathers, and what it leaves out."""

import json
from pathlib import Path

import msgspec
import pytest

from kcm_cli.cli import bug_report
from kcm_cli.cli.bug_report import gather, main, redacted, redacted_lines
from kcm_cli.component.clock import RealClock
from kcm_cli.component.virtual import run
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.rest.transport import Request, Response, Unreachable
from kcm_cli.runtime.cause_document import CausesDocument, LaterDocument, SyncDocument, WroteDocument
from tests.kit.faults import Answering

METRICS = """
workqueue_depth{name="replicaset"} 3
workqueue_adds_total{name="replicaset"} 9
kcm_controller_longest_turn_seconds{controller="replicaset-controller"} 0.4
kubernetes_build_info{git_version="v1.36.2"} 1
"""
CAUSES = CausesDocument(
    1.0,
    9.0,
    3,
    0,
    (
        SyncDocument(1, 1.5, "replicaset-controller", "replicaset", "ReplicaSet", "n/web"),
        WroteDocument(
            *(1, 2.0, 0.1, "replicaset-controller", "create", "", "pods", "Pod", "n/web-", 403),
            refusal="Forbidden: exceeded quota small",
            owner="ReplicaSet n/web",
        ),
        LaterDocument(1, 3.0, 5.0, "Forbidden"),
    ),
)
PAGES = {
    "/metrics": METRICS,
    "/healthz": "[+]ping ok\n[-]leaderElection failed\x1b[2J\n",
    "/statusz": "Version: v1\n",
    "/flagz": "----\nkubeconfig=/etc/kcm.conf\nmy-token=abcdef\nconcurrent-serviceaccount-token-syncs=5\nproxy=https://u:p@x/y\n",
    "/configz": json.dumps({"a": {"password": "abcdef", "TokenTTL": "5m0s", "SecretFile": "/etc/x"}}),
    "/debug/causes": msgspec.json.encode(CAUSES).decode(),
}


class Manager(Answering):
    """Answers with pages; 404 for others. None of them: it does not run."""

    def __init__(self, pages: dict[str, str]) -> None:
        self._pages = pages

    async def send(self, request: Request) -> Response:
        if not self._pages:
            raise Unreachable("connection refused")
        body = self._pages.get(request.path)
        return Response(404 if body is None else 200, {}, (body or "no").encode())


def report(pages: dict[str, str]) -> dict[str, object]:
    return run(gather(ManagerPort(Manager(pages), "https://m"), RealClock()))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug_report, "PAUSE_S", 0.0)


def test_it_gathers_all_and_no_secret() -> None:
    found = report(PAGES)
    text = json.dumps(found)
    assert found["problems"] == {} and "abcdef" not in text and "u:p@" not in text
    for part in ("leaderElection failed", "kubeconfig=/etc/kcm.conf", "token-syncs=5", "TokenTTL", "/etc/x", "v1.36.2"):
        assert part in text, part
    assert found["longestTurns"] == {"replicaset-controller": 0.4}
    errors, traces = found["errors"], found["traces"]
    assert isinstance(errors, list) and [one["type"] for one in errors] == ["write", "sync"]
    assert "exceeded quota small" in str(traces)
    assert "\x1b" not in str(found["health"])


def test_the_original_has_no_causes_which_is_told() -> None:
    found = report({key: value for key, value in PAGES.items() if key not in ("/debug/causes", "/configz")})
    problems = found["problems"]
    assert isinstance(problems, dict) and set(problems) == {"/debug/causes", "/configz"}
    assert found["errors"] == [] and found["queues"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("body", ["", "{", "\x00" * 9, "x{" * 99, "null", '{"entries":[{}]}'])
def test_whatever_a_page_has_costs_only_itself(path: str, body: str) -> None:
    found = report({**PAGES, path: body})
    assert found["takenAt"] and isinstance(found["problems"], dict) and set(found["problems"]) <= {path}


def test_a_manager_that_does_not_run_is_one_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        report({})
    assert main(["--server=https://127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "does the manager run?" in line


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["now", "--server=x"]) == 1
    assert "unexpected argument: now" in capsys.readouterr().err
    assert main(["--help"]) == 0


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("bearer-token", "eyJ", "(redacted)"),
        ("token-ttl", "24h0m0s", "24h0m0s"),
        ("client-secret", "true", "true"),
        ("password-file", "/etc/p", "/etc/p"),
        ("anything", "https://u:p@h/", "https://(redacted)@h/"),
        ("proxy", "SOCKS5://u:p@h:1", "SOCKS5://(redacted)@h:1"),
        ("hook", "https://h/x?a=1&access_token=abc", "https://h/x?a=1&access_token=(redacted)"),
        ("api-key", "abc", "(redacted)"),
    ],
)
def test_what_is_left_out(name: str, value: str, shown: str) -> None:
    assert redacted({name: value}) == {name: shown}
    assert redacted_lines(f"{name}={value}") == [f"{name}={shown}"]


def test_what_is_within_a_secret_is_left_out_too() -> None:
    found = redacted({"clientSecret": {"value": "abc", "more": ["def"]}, "name": "n"})
    assert found == {"clientSecret": {"value": "(redacted)", "more": ["(redacted)"]}, "name": "n"}

"""kcm bug-report: what it gathers, and what it leaves out."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kcm_cli.cli import bug_report
from kcm_cli.cli.bug_report import gather, main
from kcm_cli.cli.redaction import redacted, redacted_lines
from kcm_cli.component.clock import RealClock
from kcm_cli.component.virtual import run
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.rest.transport import Request, Response, Unreachable
from kcm_cli.runtime.cause_document import CausesDocument, LaterDocument, SyncDocument, WroteDocument
from tests.kit.faults import Answering
from tests.kit.places import REFERENCE

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


def report(pages: dict[str, str], url: str = "https://m") -> dict[str, object]:
    return run(gather(ManagerPort(Manager(pages), url), RealClock()))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug_report, "PAUSE_S", 0.0)


def test_a_health_page_that_is_too_large_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug_report, "_MOST_BYTES", 1 << 20)
    found = report({**PAGES, "/healthz": "x" * (1 << 20 | 1)})
    assert (found["health"], found["problems"]) == ([], {"/healthz": "https://m/healthz: more than 1 MiB"})
    assert found["longestTurns"]


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
@pytest.mark.parametrize(
    "body", ["", "{", "\x00" * 9, "x{" * 99, "null", '{"entries":[{}]}', '{"a":' * 900 + "1" + "}" * 900]
)
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
        ("client-secret", "/9aGk3x", "(redacted)"),
        ("password", "12345678", "(redacted)"),
        ("passphrase", "a b", "(redacted)"),
        ("db-pwd", "abc", "(redacted)"),
        ("client-key-data", "LS0t", "(redacted)"),
        ("private-key", "-----BEGIN", "(redacted)"),
        ("authorization", "Basic abc.def", "(redacted)"),
        ("service-account-private-key-file", "/etc/sa.key", "/etc/sa.key"),
        ("concurrent-serviceaccount-token-syncs", "5", "5"),
        ("authentication-kubeconfig", "/etc/c", "/etc/c"),
        ("authorization-always-allow-paths", "[/healthz,/readyz]", "[/healthz,/readyz]"),
        ("authorization-webhook-cache-authorized-ttl", "10s", "10s"),
        ("use-service-account-credentials", "false", "false"),
        ("controllers", "[*,-tokencleaner]", "[*,-tokencleaner]"),
        ("leader-elect-renew-deadline", "10s", "10s"),
        ("secret-name", "web", "web"),
        ("password-file", "/etc/p", "/etc/p"),
        ("anything", "https://u:p@h/", "https://(redacted)@h/"),
        ("proxy", "SOCKS5://u:p@h:1", "SOCKS5://(redacted)@h:1"),
        ("hook", "https://h/x?a=1&access_token=abc", "https://h/x?a=1&access_token=(redacted)"),
        ("api-key", "abc", "(redacted)"),
    ],
)
def test_what_is_left_out(name: str, value: str, shown: str) -> None:
    assert redacted({name: value}) == {name: shown}
    assert redacted(redacted_lines(f"{name}={value}\n--{name}={value}")) == [f"{name}={shown}", f"--{name}={shown}"]


PEM = "-----BEGIN RSA PRIVATE KEY-----\nabc\nabc\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@ss@h/", "https://(redacted)@h/"),
        ("https://u:p/ss@h/ x@y", "https://(redacted)@h/ x@y"),
        (f"https://u:{'p' * 9000}@h/", "https://(redacted)@h/"),
        ("a=https://u:p@h,b=https://h/", "a=https://(redacted)@h,b=https://h/"),
        ("https://h/#access_token=abc", "https://h/#access_token=(redacted)"),
        ("https://h/?key=abc&b=2", "https://h/?key=(redacted)&b=2"),
        ('{"token":"abc"}', '{"token":(redacted)}'),
        ('{"accessToken": "a\\"bc", "b": 1}', '{"accessToken": (redacted), "b": 1}'),
        (r'"{\"clientSecret\":\"abc\"}"', r'"{\"clientSecret\":(redacted)}"'),
        (r"{\"token\": \"abc def\"}", r"{\"token\": (redacted)}"),
        ("token:\tabc", "token:\t(redacted)"),
        ("{'secret_key': 'abc def'}", "{'secret_key': (redacted)}"),
        ('"password": 12345678', '"password": (redacted)'),
        ("run --token=abc,--password=def now", "run --token=(redacted) now"),
        ("--token-file=/etc/x,--password=def", "--token-file=/etc/x,--password=(redacted)"),
        ("aws_secret_access_key = abc", "aws_secret_access_key = (redacted)"),
        ("token: abc.def", "token: (redacted)"),
        ("password: hunter was wrong", "password: (redacted) was wrong"),
        ("Authorization: Basic abc", "Authorization: (redacted)"),
        ("authorization=Bearer abc", "authorization=(redacted)"),
        ("sent Bearer abc.def to", "sent Bearer (redacted) to"),
        ("an eyJhbGciOi.eyJpc3Mi.c2ln b", "an (redacted) b"),
        (f"{PEM} x", "(redacted) x"),
        ("x -----BEGIN PRIVATE KEY-----\nabc", "x (redacted)"),
    ],
)
def test_what_is_left_out_of_texts(text: str, shown: str) -> None:
    assert redacted({"note": [{"a": text}]}) == {"note": [{"a": shown}]}


@pytest.mark.parametrize(
    "text",
    [
        "apiserver_storage_token_total 3",
        'authentication_token_cache_active_fetch_count{status="blocked"} 1',
        'workqueue_depth{name="serviceaccount_tokens_secret"} 3',
        'apiserver_request_total{resource="secrets",verb="LIST"} 2',
        "# HELP serviceaccount_valid_tokens_total [ALPHA] Cumulative valid projected service account tokens used",
        '"kube-system/default-token-abc": not found',
        'secrets "default-token-abc" is forbidden: exceeded quota',
        "serviceaccount-token-controller: sync failed",
        "failed to get secret: not found",
        "invalid bearer token",
        "--authentication-kubeconfig=/etc/a --root-ca-file=/etc/b --service-account-private-key-file=/etc/sa.key",
        "--leader-elect-renew-deadline=10s --authorization-kubeconfig=/etc/c --controllers=*,-tokencleaner",
        'Get "https://10.0.0.1:6443/api/v1/secrets?limit=500&resourceVersion=0": dial tcp',
        "[+]serviceaccount-token-controller ok",
        "use-token=true,x secret=<nil> credentials=[]",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    ],
)
def test_what_a_developer_needs_stays(text: str) -> None:
    assert redacted({"note": [text, {"a": text}]}) == {"note": [text, {"a": text}]}


def test_flags_configuration_and_metrics_of_the_original_stay() -> None:
    flags = [flag for section in _reference("flags") for flag in section["flags"]]
    lines = [f"{flag['name']}={flag['default']}" for flag in flags]
    assert redacted(redacted_lines("\n".join(lines))) == lines
    metrics = [f'{one["name"]}{{name="serviceaccount_tokens_secret"}} 3' for one in _reference("metrics")]
    metrics += [f"{one['name']} 3" for one in _reference("metrics")]
    document = {"configz": _reference("configz"), "metrics": metrics}
    assert redacted(document) == document


def _reference(name: str) -> Any:
    return json.loads((REFERENCE / f"{name}.json").read_text())


def test_a_key_over_many_lines_is_left_out() -> None:
    assert redacted(["a", *PEM.splitlines(), "b"]) == ["a", "(redacted)", "b"]
    assert redacted(redacted_lines(f"private-key={PEM}\nb=1")) == ["private-key=(redacted)", "b=1"]
    assert redacted([]) == [] and redacted(["a\nb", "c"]) == ["a\nb", "c"]


@pytest.mark.parametrize("path", [*PAGES, "problems"])
def test_each_part_of_the_report_is_redacted(path: str) -> None:
    body = 'x https://u:hidden@h/ Bearer hidden\n{"token": "hidden"}'
    pages = {**PAGES, path: json.dumps({"a": body}) if path == "/configz" else body}
    if path == "problems":
        pages = {"/healthz": "ok"}
    assert "hidden" not in json.dumps(report(pages, "https://u:hidden@m"))


def test_what_is_within_a_secret_is_left_out_too() -> None:
    found = redacted({"clientSecret": {"value": "abc", "more": ["def"]}, "name": "n"})
    assert found == {"clientSecret": {"value": "(redacted)", "more": ["(redacted)"]}, "name": "n"}


def test_keys_that_are_secrets_are_left_out() -> None:
    assert redacted({"tokens": {"abc": "user"}, "a": {"sent Bearer abc": None}}) == {
        "tokens": "(redacted)",
        "a": {"sent Bearer (redacted)": None},
    }


def test_numbers_of_secrets_and_of_what_is_counted() -> None:
    document = {
        "password": 12345678,
        "TokenSyncs": 5,
        "TokenCleaner": {"CleanUpPeriod": "24h0m0s"},
        "token": True,
    }
    assert redacted(document) == {**document, "password": "(redacted)"}
    assert redacted({"token-cleaner-controller": 0.4}) == {"token-cleaner-controller": 0.4}

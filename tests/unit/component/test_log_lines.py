"""Upstream's log lines at V(0) to V(2) are an interface: operators search for their messages.

tests/recorded/log_lines.json has them by file of pkg/controller: verbosity (-1 for errors), message and keys. Each is
in the code with its verbosity and keys, or has a reason in tests/logs/absent.py.
"""

import ast
import json

import pytest

from kcm_cli.manager.controller_map import CONTROLLERS
from tests.kit.places import RECORDED, ROOT
from tests.logs.absent import ABSENT
from tests.logs.lines import UNKNOWN, constants, lines

UPSTREAM: dict[str, list[tuple[int, str, list[str]]]] = json.loads((RECORDED / "log_lines.json").read_text())
REASONS = {message: reason for reason, messages in ABSENT.items() for message in messages}
OTHER_KEYS = {
    "Deleting legacy service account token": "the account is in the Secret's annotations",
    "Resolving mounted secrets": "pods are listed once for a namespace",
    "Starting": "as controllers announce themselves",
}
"""Messages that have fewer keys, and why."""
DYNAMIC = {
    message
    for descriptor in CONTROLLERS
    if not descriptor.cloud_only
    for each in descriptor.load().announces
    for message in (each.started, each.ended)
}


@pytest.mark.parametrize("file", sorted(UPSTREAM))
def test_upstreams_lines_are_logged_or_have_a_reason(file: str) -> None:
    wrong = []
    for verbosity, message, keys in UPSTREAM[file]:
        if message in REASONS:
            continue
        found = [line for line in lines() if line.message == message]
        if not found:
            known = message in DYNAMIC or message in constants()  # of a table
            wrong += [] if known else [f"{message!r} is not logged"]
            continue
        at = [line for line in found if line.verbosity in (verbosity, UNKNOWN)]
        if not at:
            wrong.append(f"{message!r} has verbosity {[line.verbosity for line in found]}, not {verbosity}")
        elif message not in OTHER_KEYS and not any({*keys} <= line.keys | {"err"} or not line.complete for line in at):
            wrong.append(f"{message!r} has the keys {[sorted(line.keys) for line in at]}, not {keys}")
    assert not wrong, "\n".join(wrong)


def test_a_line_that_is_logged_has_no_reason_for_its_absence() -> None:
    logged = {line.message for line in lines()} | DYNAMIC
    assert not logged & REASONS.keys()


def test_each_reason_is_about_a_line_of_upstreams() -> None:
    messages = {message for rows in UPSTREAM.values() for _, message, _ in rows}
    assert REASONS.keys() <= messages
    assert len(messages - REASONS.keys()) > 300


LOGS = frozenset(("debug", "info", "warning", "error", "exception", "log"))


def test_keys_of_lines_are_fields() -> None:
    """What else is in ``extra`` is not written."""
    wrong = []
    for path in sorted((ROOT / "kcm_cli").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "extra={" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGS:
                extra = next((one.value for one in node.keywords if one.arg == "extra"), None)
                keys = [one for one in extra.keys if one is not None] if isinstance(extra, ast.Dict) else []
                wrong += [f"{path.name}:{one.lineno}" for one in keys if ast.unparse(one) != "'fields'"]
    assert not wrong

"""The requests of schemathesis to a sandbox: existing objects, short watches; and the forbidden responses."""

import zlib
from typing import Any

import schemathesis

from tests.unit.sandbox.fuzz.upstream import FAILURES

NAMESPACE, NAME = "fuzz", "c"


@schemathesis.hook
def map_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any]:
    return {**(query or {}), "timeoutSeconds": "1"}


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any]:
    known = {"namespace": NAMESPACE, "name": NAME}
    parameters = path_parameters or {}
    return {
        name: known[name] if name in known and zlib.crc32(str(value).encode(errors="replace")) % 3 else value
        for name, value in parameters.items()
    }


@schemathesis.check
def answers_as_upstream(ctx: Any, response: Any, case: Any) -> None:
    if response.status_code not in (500, 502):
        return
    message = str(response.json().get("message", ""))
    assert message.startswith(FAILURES), message

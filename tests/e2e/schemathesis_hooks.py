"""How schemathesis asks a sandbox: of objects that are there, without watching for long; and what it may not get."""

import zlib
from typing import Any

import schemathesis

NAMESPACE, NAME = "fuzz", "c"
UPSTREAM_TOO = (
    "failed to create typed patch object",
    "failed to create manager for existing fields",
    "failed to convert new typed object",
    "failed to merge config",
    "Internal error occurred: the spec replicas field",
    "list element types are not identical",
    "unknown patch type",
    "resourceVersion",
    "strconv.ParseUint",
)
"""How the messages begin with which upstream answers 500, too."""


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
    assert message.startswith(UPSTREAM_TOO), message

"""Query parameters and the bodies of deletes: which are accepted, and the errors of others."""

from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.registry.options import (
    delete_options,
    integer,
    list_options,
    timeout_s,
    unsigned,
    write_options,
)
from kcm_cli.sandbox.apiserver.schema.schemas import Schemas
from kcm_cli.sandbox.apiserver.types import ApiError

SCHEMAS = Schemas()


def request(body: object = None, agent: str = "curl/8", **query: str) -> Request:
    data = b"" if body is None else codec.encode(body)
    headers = {"content-type": "application/json", "user-agent": agent}
    return Request("DELETE", "/api/v1/namespaces/a/pods/b", tuple(query.items()), headers, data)


def refused(found: pytest.ExceptionInfo[ApiError], code: int, *parts: str) -> None:
    assert found.value.code == code
    for part in parts:
        assert part in str(found.value)


def test_a_write_without_options_is_managed_by_its_agent() -> None:
    asked = request(agent="kubectl/v1.36 (linux)")
    found = write_options("CreateOptions", asked, {})
    assert (found.manager, found.validation, found.dry_run, found.force) == ("kubectl", "Warn", False, False)


def test_the_options_of_a_write() -> None:
    query = {"fieldManager": "m", "fieldValidation": "Strict", "dryRun": "All"}
    found = write_options("UpdateOptions", request(**query), query)
    assert (found.manager, found.validation, found.dry_run) == ("m", "Strict", True)


@pytest.mark.parametrize(
    ("kind", "query", "apply", "part"),
    [
        ("CreateOptions", {"dryRun": "Some"}, False, "dryRun: Unsupported value"),
        ("CreateOptions", {"fieldValidation": "Odd"}, False, 'fieldValidation: Unsupported value: "Odd"'),
        ("CreateOptions", {"fieldManager": "a" * 129}, False, "fieldManager: Too long"),
        ("CreateOptions", {"fieldManager": "a\nb"}, False, "invalid character U+000A (at position 1)"),
        ("PatchOptions", {}, True, "fieldManager: Required value"),
        ("PatchOptions", {"force": "true"}, False, "may not be specified for non-apply patch"),
    ],
    ids=["dry run", "validation", "long manager", "manager's letters", "apply without manager", "force without apply"],
)
def test_options_that_are_refused(kind: str, query: dict[str, str], apply: bool, part: str) -> None:
    with pytest.raises(ApiError) as found:
        write_options(kind, request(**query), query, apply=apply)
    refused(found, 422, part)


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ({"gracePeriodSeconds": 0}, "grace_period_seconds", 0),
        ({"propagationPolicy": "Orphan"}, "propagation_policy", "Orphan"),
        ({"orphanDependents": False}, "orphan_dependents", False),
        ({"dryRun": ["All"]}, "dry", True),
    ],
    ids=["grace", "policy", "orphans", "dry"],
)
def test_a_deletes_body(body: dict[str, Any], field: str, expected: object) -> None:
    found = delete_options(SCHEMAS, request({"kind": "DeleteOptions", "apiVersion": "v1", **body}), {})
    assert getattr(found, field) == expected


def test_a_deletes_query() -> None:
    query = {"gracePeriodSeconds": "7", "propagationPolicy": "Foreground"}
    found = delete_options(SCHEMAS, request(**query), query)
    assert (found.grace_period_seconds, found.propagation_policy) == (7, "Foreground")


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        ({"propagationPolicy": "Sideways"}, 422, 'propagationPolicy: Unsupported value: "Sideways"'),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
        ({"dryRun": ["Some"]}, 422, "dryRun: Unsupported value"),
        ({"gracePeriodSeconds": "x"}, 400, "gracePeriodSeconds"),
    ],
    ids=["policy", "both", "dry run", "type"],
)
def test_deletes_that_are_refused(body: dict[str, Any], code: int, part: str) -> None:
    with pytest.raises(ApiError) as found:
        delete_options(SCHEMAS, request({"kind": "DeleteOptions", "apiVersion": "v1", **body}), {})
    refused(found, code, part)


def test_list_options() -> None:
    query = {"limit": "5", "labelSelector": "a=b", "resourceVersion": "7", "resourceVersionMatch": "Exact"}
    found = list_options(query)
    assert (found.limit, str(found.labels), found.version, found.match) == (5, "a=b", "7", "Exact")
    assert list_options({}) == list_options({"pretty": "true"})


@pytest.mark.parametrize(
    ("query", "watch", "part"),
    [
        ({"resourceVersionMatch": "Exact"}, False, "forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, False, 'forbidden for resourceVersion "0"'),
        ({"resourceVersionMatch": "Odd", "resourceVersion": "1"}, False, 'Unsupported value: "Odd"'),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"},
            False,
            "forbidden when continue is provided",
        ),
        ({"sendInitialEvents": "true"}, False, "sendInitialEvents is forbidden for list"),
        ({"sendInitialEvents": "true"}, True, "requires setting resourceVersionMatch to NotOlderThan"),
        ({"resourceVersionMatch": "NotOlderThan"}, True, "forbidden for watch unless sendInitialEvents"),
    ],
    ids=["no version", "exact of any", "unknown", "continued", "initial of a list", "initial alone", "match alone"],
)
def test_lists_and_watches_that_are_refused(query: dict[str, str], watch: bool, part: str) -> None:
    with pytest.raises(ApiError) as found:
        list_options(query, watch=watch)
    refused(found, 422, part)


@pytest.mark.parametrize(
    ("text", "part"),
    [("x", "invalid syntax"), ("", "invalid syntax"), ("1.5", "invalid syntax"), (str(2**63), "value out of range")],
    ids=["word", "empty", "fraction", "too large"],
)
def test_integers_that_are_none(text: str, part: str) -> None:
    with pytest.raises(ApiError) as found:
        integer({"limit": text}, "limit")
    refused(found, 400, part)


def test_integers() -> None:
    assert [integer({"n": text}, "n") for text in ("5", "-1", "+2")] == [5, -1, 2]
    assert integer({}, "n") is None


@pytest.mark.parametrize("text", ["x", "5"], ids=["word", "no unit"])
def test_timeouts_that_are_none(text: str) -> None:
    with pytest.raises(ApiError) as found:
        timeout_s(text)
    refused(found, 400, "invalid timeout specified in the request URL")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), ("0", None), ("32s", 32), ("1m30s", 60), ("-1s", None), ("5ms", 0.005)],
    ids=["empty", "zero", "seconds", "more than the server's", "negative", "milliseconds"],
)
def test_timeouts(text: str, seconds: float | None) -> None:
    assert timeout_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [("²", "invalid syntax"), ("-1", "invalid syntax"), ("1_0", "invalid syntax"), ("", "invalid syntax")]
    + [(str(2**64), "value out of range"), ("1" * 5000, "value out of range")],
    ids=["superscript", "sign", "underscore", "nothing", "large", "long"],
)
def test_versions_that_are_none(text: str, problem: str) -> None:
    with pytest.raises(FormatError) as found:
        unsigned(text)
    assert str(found.value) == f'strconv.ParseUint: parsing "{text}": {problem}'


def test_versions() -> None:
    assert [unsigned(text) for text in ("0", "007", str(2**64 - 1))] == [0, 7, 2**64 - 1]

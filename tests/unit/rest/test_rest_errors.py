"""Classes of errors."""

import json

import pytest

from kcm_cli.machinery import codec
from kcm_cli.rest import errors
from kcm_cli.rest.transport import Request, Response

STATUS_CLASSES = [
    (400, "BadRequest", errors.BadRequest),
    (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (405, "MethodNotAllowed", errors.MethodNotSupported),
    (406, "NotAcceptable", errors.NotAcceptable),
    (409, "AlreadyExists", errors.AlreadyExists),
    (409, "Conflict", errors.Conflict),
    (410, "Gone", errors.Gone),
    (410, "Expired", errors.Expired),
    (413, "RequestEntityTooLarge", errors.TooLarge),
    (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
    (422, "Invalid", errors.Invalid),
    (429, "TooManyRequests", errors.TooManyRequests),
    (500, "InternalError", errors.InternalError),
    (500, "ServerTimeout", errors.ServerTimeout),
    (503, "ServiceUnavailable", errors.ServiceUnavailable),
    (504, "Timeout", errors.Timeout),
]


@pytest.mark.parametrize(("code", "reason", "kind"), STATUS_CLASSES, ids=[case[1] for case in STATUS_CLASSES])
def test_the_reason_determines_the_class(failure, code, reason, kind):
    error = errors.from_response(failure(code, reason))
    assert type(error) is kind
    assert (error.status, error.reason, str(error)) == (code, reason, f"because {reason}")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(404, errors.NotFound), (409, errors.Conflict), (502, errors.InternalError), (418, errors.ApiError)],
)
def test_the_code_determines_the_class_without_a_known_reason(failure, code, kind):
    assert type(errors.from_response(failure(code, "SomethingNew"))) is kind


def test_causes_and_delay_are_kept():
    doc = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Forbidden",
        "message": "no",
        "code": 403,
        "details": {
            "name": "web",
            "kind": "pods",
            "causes": [
                {"reason": "NamespaceTerminating", "message": "being terminated", "field": "metadata.namespace"}
            ],
            "retryAfterSeconds": 7,
        },
    }
    error = errors.from_status(codec.encode(doc))
    assert error.has_cause(errors.NAMESPACE_TERMINATING)
    assert error.namespace_terminating
    assert errors.namespace_terminating(error)
    assert error.retry_after_s == 7.0
    assert error.details.name == "web"


def test_retry_after_counts_if_the_status_has_no_delay(failure):
    assert errors.from_response(failure(429, "TooManyRequests", retry_after="3")).retry_after_s == 3.0


@pytest.mark.parametrize("value", ["", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "１"])
def test_an_invalid_retry_after_is_ignored(value):
    assert errors.retry_after({"retry-after": value}) is None


def test_text_of_a_proxy_is_bounded_and_named():
    response = Response(502, {"content-type": "text/html"}, b"<html>" + b"x" * 5000)
    error = errors.from_response(response, Request("GET", "/api/v1/pods"))
    assert isinstance(error, errors.InternalError)
    assert len(str(error)) < 500
    assert "(get /api/v1/pods)" in str(error)
    assert error.has_cause(errors.UNEXPECTED_RESPONSE)


def test_a_409_without_status_on_create_means_already_exists():
    response = Response(409, {}, b"")
    assert isinstance(errors.from_response(response, Request("POST", "/x")), errors.AlreadyExists)
    assert isinstance(errors.from_response(response, Request("PUT", "/x")), errors.Conflict)


def test_a_long_status_message_is_kept_up_to_a_limit():
    doc = {"kind": "Status", "status": "Failure", "message": "m" * 100_000, "code": 422, "reason": "Invalid"}
    error = errors.from_status(json.dumps(doc).encode())
    assert len(error.message) == errors.MESSAGE_LIMIT
    assert error.message.endswith("…")


def test_every_class_of_errors_is_used():
    reached = {kind for _, _, kind in STATUS_CLASSES}
    assert reached == set(errors.ApiError.__subclasses__())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3.0), ("31536000", 60.0), ("9" * 400, 60.0), ("-1", None), ("1.5", None), ("", None), ("\u0663", None),
     ("Fri, 01 Jan 2027 00:00:00 GMT", None)],
)  # fmt: skip
def test_retry_after_is_limited_to_a_minute(text: str, expected: float | None) -> None:
    assert errors.retry_after({"retry-after": text}) == expected
    body = b'{"kind":"Status","status":"Failure","code":429,"details":{"retryAfterSeconds":31536000}}'
    assert errors.from_response(Response(429, {}, body)).retry_after_s == 60.0

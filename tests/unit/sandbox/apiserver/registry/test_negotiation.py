"""The media types of responses and of bodies."""

import pytest

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.registry.negotiation import (
    Wanted,
    check_route,
    clauses,
    for_status,
    negotiate,
    readable,
    wanted,
)
from kcm_cli.sandbox.apiserver.types import ApiError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", Wanted()),
        ("*/*", Wanted()),
        ("application/*", Wanted()),
        ("application/json", Wanted()),
        ("application/yaml", Wanted(yaml=True)),
        ("application/json;q=0.5, application/yaml", Wanted(yaml=True)),
        ("application/json;q=0.5, application/yaml;q=0.4", Wanted()),
        (f"{PROTOBUF}, application/json", Wanted()),
        (f"{PROTOBUF},*/*", Wanted()),
        (f"{TABLE},application/json", Wanted(False, "Table", "v1")),
        (f"{PARTIAL},{TABLE}", Wanted(False, "PartialObjectMetadata", "v1")),
        ("application/json;as=Odd;v=v1;g=meta.k8s.io,application/json", Wanted()),
        ("application/json;as=Table;v=v9;g=meta.k8s.io, application/yaml", Wanted(yaml=True)),
        (PROTOBUF, Wanted(protobuf=True)),
        ("text/html", None),
        ("application/json;stream=watch", Wanted()),
        ("application/yaml;stream=watch", None),
        ("application/json;stream=other", None),
    ],
    ids=lambda value: value.replace("/", "-") if isinstance(value, str) else "",
)
def test_media_types_of_responses(header: str, expected: Wanted | None) -> None:
    assert negotiate(header) == expected


@pytest.mark.parametrize("header", ["application/yaml", "application/yaml, application/json;q=0.1"])
def test_no_stream_of_yaml(header: str) -> None:
    with pytest.raises(ApiError, match="application/json;stream=watch"):
        wanted(header, stream=True)


@pytest.mark.parametrize(
    ("header", "listing", "message"),
    [
        ("", False, None),
        ("application/json;as=Table", False, None),
        ("text/html, */*;q=0.1", False, None),
        ("text/html", False, "application/vnd.kubernetes.protobuf"),
        ("application/*", True, "application/vnd.kubernetes.protobuf;stream=watch"),
    ],
    ids=["none", "parameters", "anything", "object", "list"],
)
def test_the_router_ignores_parameters_of_media_types(header: str, listing: bool, message: str | None) -> None:
    if message is None:
        check_route(header, listing=listing)
        return
    with pytest.raises(ApiError) as found:
        check_route(header, listing=listing)
    assert found.value.code == 406
    assert str(found.value).endswith(message)


def test_a_refusal_is_never_transformed() -> None:
    assert for_status("application/yaml;as=Table;v=v1;g=meta.k8s.io") is None
    assert for_status("application/yaml") == Wanted(yaml=True)


@pytest.mark.parametrize("custom", [False, True], ids=["built in", "custom"])
def test_nothing_acceptable_is_a_406(custom: bool) -> None:
    with pytest.raises(ApiError) as found:
        wanted("text/html", custom=custom)
    assert found.value.code == 406
    assert PROTOBUF in str(found.value)


def sent(media: str, body: bytes = b"{}") -> Request:
    return Request("POST", "/api/v1/namespaces", headers={"content-type": media, "x": "y"}, body=body)


@pytest.mark.parametrize("media", ["", "application/json", "application/json; charset=utf-8", "application/yaml"])
def test_text_media_types_are_not_converted(media: str) -> None:
    request = sent(media)
    assert readable(request, custom=True) is request


def test_protobuf_becomes_json() -> None:
    body = b"k8s\x00" + b"\x0a\x0f\x0a\x02v1\x12\x09Namespace" + b"\x12\x05\x0a\x03\x0a\x01n"
    found = readable(sent(PROTOBUF, body), custom=False)
    assert found.headers == {"content-type": "application/json", "x": "y"}
    assert found.body == b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"}}'


@pytest.mark.parametrize(
    ("media", "body", "custom", "code"),
    [
        ("text/plain", b"", False, 415),
        (PROTOBUF, b"", True, 415),
        (PROTOBUF, b"k8s\x00\x0a\x07\x0a\x02v1\x12\x01X", False, 415),
        (PROTOBUF, b"rubbish", False, 400),
        (PROTOBUF, b"k8s\x00\x0a\xff", False, 400),
    ],
    ids=["text", "custom", "unknown kind", "no prefix", "cut"],
)
def test_media_types_of_bodies_that_are_not_supported(media: str, body: bytes, custom: bool, code: int) -> None:
    with pytest.raises(ApiError) as found:
        readable(sent(media, body), custom=custom)
    assert found.value.code == code


@pytest.mark.parametrize(
    "media",
    [
        'application/json; charset="utf-8"',
        "application/json;",
        "application/json; a=b; A=b ;",
        "Application/JSON ; charset = utf-8",
        r'application/json; a="b\"; c"',
    ],
)
def test_parameters_of_media_types_are_ignored(media: str) -> None:
    assert readable(sent(media), custom=False).body == b"{}"


@pytest.mark.parametrize(
    "media",
    [
        "application/json;foo",
        "application/json;;",
        "application/json; =b",
        "application/json; a=",
        'application/json; a="b',
        "application/json; a=b; a=c",
        "application/json, application/yaml",
        "application /json",
    ],
)
def test_media_types_whose_parameters_cannot_be_read_are_not_supported(media: str) -> None:
    with pytest.raises(ApiError) as found:
        readable(sent(media), custom=True)
    assert found.value.code == 415


def test_a_header_is_not_read_without_end() -> None:
    """Results are cached: half a million alternatives would be 75 MB."""
    header = "application/json," + "a," * 500_000
    assert negotiate(header) == Wanted()
    assert len(clauses(header)) < 3000

"""Protobuf bodies are decoded to the equal JSON documents."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.protobuf.decoding import UnknownForm, to_json
from kcm_cli.api.protobuf.messages import _message, message
from kcm_cli.machinery.envelope import MAGIC
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protofields import fields, signed, varint


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(at: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return number(at << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(at << 3 | 2) + number(len(data)) + data


def body(api_version: str, kind: str, *parts: bytes) -> bytes:
    meta = field(1, api_version) + field(2, kind)
    return MAGIC + field(1, meta) + field(2, b"".join(parts)) + field(3, "") + field(4, "")


def read(api_version: str, kind: str, *parts: bytes) -> dict[str, object]:
    found: dict[str, object] = json.loads(to_json(body(api_version, kind, *parts)))
    assert found.pop("kind") == kind
    assert found.pop("apiVersion") == api_version
    return found


def pair(key: str, value: str | bytes) -> bytes:
    return field(1, key) + field(2, value)


NAME = field(1, field(1, "n"))
META = {"metadata": {"name": "n"}}


@pytest.mark.parametrize(
    ("kind", "parts", "expected"),
    [
        pytest.param(
            "ConfigMap", (field(2, pair("a", "b")), field(2, pair("c", ""))), {"data": {"a": "b", "c": ""}}, id="map"
        ),
        pytest.param("ConfigMap", (field(3, pair("a", b"\xff\x00")),), {"binaryData": {"a": "/wA="}}, id="bytes"),
        pytest.param("ConfigMap", (field(4, 0),), {"immutable": False}, id="false"),
        pytest.param(
            "Secret", (field(2, field(1, "only-key")),), {"data": {"only-key": ""}}, id="a map's value may be left out"
        ),
        pytest.param(
            "PersistentVolumeClaim",
            (field(2, field(2, field(2, pair("storage", field(1, "1Gi"))))),),
            {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
            id="quantity",
        ),
        pytest.param(
            "Service",
            (field(2, field(1, field(3, 80) + field(4, field(1, 1) + field(3, "web")))),),
            {"spec": {"ports": [{"port": 80, "targetPort": "web"}]}},
            id="a port's name",
        ),
        pytest.param(
            "Service",
            (field(2, field(1, field(3, 80) + field(4, field(1, 0) + field(2, 8080) + field(3, "")))),),
            {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}},
            id="a port's number",
        ),
        pytest.param(
            "Pod",
            (field(2, field(1, field(1, "v") + field(2, field(2, b"")))),),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            id="embedded struct",
        ),
        pytest.param(
            "Pod",
            (field(2, field(14, field(4, 1) + field(4, 5000))),),
            {"spec": {"securityContext": {"supplementalGroups": [1, 5000]}}},
            id="repeated numbers",
        ),
        pytest.param("Event", (field(8, -1),), {"count": -1}, id="negative"),
        pytest.param(
            "Event",
            (field(6, b""), field(7, field(1, 1_700_000_000)), field(10, field(1, 1_700_000_000) + field(2, 5_000))),
            {
                "firstTimestamp": None,
                "lastTimestamp": "2023-11-14T22:13:20Z",
                "eventTime": "2023-11-14T22:13:20.000005Z",
            },
            id="times",
        ),
    ],
)
def test_a_body_is_read(kind: str, parts: tuple[bytes, ...], expected: dict[str, object]) -> None:
    assert read("v1", kind, NAME, *parts) == META | expected


def test_raw_documents_and_named_lists_are_opened() -> None:
    revision = read("apps/v1", "ControllerRevision", field(2, field(1, '{"a": [1]}')), field(3, 4))
    assert revision == {"data": {"a": [1]}, "revision": 4}
    review = read(
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        field(2, field(3, "u") + field(5, pair("k", field(1, "x") + field(1, "y")))),
    )
    assert review == {"spec": {"user": "u", "extra": {"k": ["x", "y"]}}}


def test_options_of_a_delete_are_the_same_in_every_group() -> None:
    parts = (field(1, 0), field(2, field(1, "u")), field(4, "Orphan"), field(5, "All"))
    expected = {
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Orphan",
        "dryRun": ["All"],
    }
    assert read("v1", "DeleteOptions", *parts) == expected
    assert read("policy/v1", "DeleteOptions", *parts) == expected


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        pytest.param("Nothing", (), id="kind"),
        pytest.param("ConfigMap", (field(99, "x"),), id="field"),
        pytest.param("Pod", (field(2, field(2, field(1234, 1))),), id="field far inside"),
    ],
)
def test_nothing_is_dropped_silently(kind: str, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(UnknownForm):
        to_json(body("v1", kind, *parts))


@given(st.binary(max_size=60))
def test_invalid_bytes_are_a_format_error(data: bytes) -> None:
    for rubbish in (data, MAGIC + data, body("v1", "Pod", data)):
        try:
            to_json(rubbish)
        except FormatError:
            continue
        assert rubbish.startswith(MAGIC)


def _value(type_: str) -> st.SearchStrategy[tuple[bytes | int, object]]:
    """A raw value and its expected document."""
    if type_ == "int":
        return st.integers(-(2**63), 2**63 - 1).map(lambda v: (v & (2**64 - 1), v))
    if type_ == "bool":
        return st.booleans().map(lambda v: (int(v), v))
    if type_ == "bytes":
        return st.binary(max_size=6).map(lambda v: (v, base64.b64encode(v).decode()))
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(lambda v: (v.encode(), v))


@st.composite
def flat(draw: st.DrawFn) -> tuple[str, bytes, dict[str, object]]:
    """The scalar fields of a message with any values, in any order."""
    name = draw(st.sampled_from(["PodSpec", "Container", "ServiceSpec", "Probe", "ContainerStatus", "NodeSystemInfo"]))
    known = message(f"core.v1.{name}")
    assert known is not None
    plain = {at: one for at, one in known.items() if one.type in ("int", "bool", "bytes", "string")}
    data, doc = b"", dict[str, object]()
    for at in draw(st.permutations(sorted(plain)))[: draw(st.integers(0, 8))]:
        one = plain[at]
        if one.keyed:
            continue
        raw, value = draw(_value(one.type))
        data += field(at, raw)
        doc[one.name] = [value] if one.repeated else value
    return name, data, doc


@given(flat())
def test_any_scalars_are_decoded(drawn: tuple[str, bytes, dict[str, object]]) -> None:
    name, data, doc = drawn
    assert json.loads(to_json(body("v1", name, data))) == {"kind": name, "apiVersion": "v1", **doc}


def test_deep_nesting_is_refused() -> None:
    schema = b""
    for _ in range(2000):
        schema = field(28, schema)
    definition = field(2, field(7, field(4, field(1, schema))))
    with pytest.raises(FormatError, match="exceeded max depth"):
        to_json(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition))


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_decoded(value: int) -> None:
    found, end = varint(number(value), 0)
    assert (signed(found), end) == (value, len(number(value)))


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\x05ab", b"\x0b", b"\x00\x01", b"\x08" + b"\xff" * 11], ids=repr)
def test_cut_and_unknown_fields_are_errors(data: bytes) -> None:
    with pytest.raises(FormatError):
        list(fields(data))


def test_names_of_unknown_kinds_are_not_kept() -> None:
    before = _message.cache_info().currsize
    for at in range(3):
        with pytest.raises(UnknownForm):
            read("v1", f"Nothing{at}")
    assert _message.cache_info().currsize == before

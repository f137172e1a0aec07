"""Bytes from an object's protobuf form in place of those of its JSON form."""

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS
from kcm_cli.api.devices import RESOURCE_CLAIMS
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protowire import numbered, packed
from kcm_cli.machinery.raw_fields import restored


def nested(numbers: tuple[int, ...], value: bytes) -> bytes:
    for number in reversed(numbers):
        value = packed(number, value)
    return value


def stored(*parts: bytes) -> bytes:
    """The protobuf form of an object."""
    return b"k8s\x00" + packed(1, packed(1, b"v1")) + packed(2, packed(1, packed(1, b"name")) + b"".join(parts))


def test_the_data_of_a_revision() -> None:
    doc = codec.decode_doc(b'{"data":{"a":"\\u003c"},"revision":2}')
    found = restored(doc, stored(nested((2, 1), b'{"a": "<"}'), numbered(3, 1)), CONTROLLER_REVISIONS.raw_fields)
    assert codec.encode(found) == b'{"data":{"a": "<"},"revision":2}'


def test_the_parameters_and_data_of_a_claim() -> None:
    configs = [{"opaque": {"driver": "d", "parameters": {}}}, {"requests": ["r"]}, {"opaque": {"parameters": {}}}]
    allocation = {"devices": {"config": [{"opaque": {"parameters": {}}}]}}
    devices = [{"driver": "d"}, {"driver": "e", "data": {}}]
    doc = {"spec": {"devices": {"config": configs}}, "status": {"allocation": allocation, "devices": devices}}
    of_spec = [nested((2, 1, 2, 1), b"[1, 2]"), packed(1, b"r"), nested((2, 1, 2, 1), b"[3, 4]")]
    spec = nested((2, 1), b"".join(packed(3, config) for config in of_spec))
    allocated = nested((1, 1, 2, 3, 1, 2, 1), b"[5, 6]")
    status = packed(3, allocated + packed(4, packed(1, b"d")) + packed(4, packed(1, b"e") + nested((5, 1), b"[7, 8]")))
    text = codec.encode(restored(doc, stored(spec, status), RESOURCE_CLAIMS.raw_fields))
    assert [text.count(part) for part in (b"[1, 2]", b"[3, 4]", b"[5, 6]", b"[7, 8]")] == [1, 1, 1, 1]
    assert text.index(b"[1, 2]") < text.index(b"[3, 4]")


def test_a_field_with_another_number_of_values_is_left() -> None:
    doc = restored({"data": {"a": 1}}, stored(), CONTROLLER_REVISIONS.raw_fields)
    assert doc == {"data": {"a": 1}}


@pytest.mark.parametrize("form", [b"{}", b"", b"k8s\x00\x12\x05abc"])
def test_another_form_is_an_error(form: bytes) -> None:
    with pytest.raises(FormatError):
        restored({}, form, CONTROLLER_REVISIONS.raw_fields)

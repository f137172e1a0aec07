"""Protocol Buffers' wire format, written."""

import pytest

from kcm_cli.machinery.protowire import numbered, packed, varint


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**63, "80808080808080808001")],
)
def test_numbers(value: int, written: str) -> None:
    assert varint(value).hex() == written


@pytest.mark.parametrize(
    ("field", "written"),
    [
        (numbered(1, 150), "089601"),
        (numbered(2, -1), "10ffffffffffffffffff01"),
        (packed(2, b"testing"), "120774657374696e67"),
        (packed(300, b""), "e21200"),
    ],
    ids=["number", "below zero", "text", "a large number of a field"],
)
def test_fields(field: bytes, written: str) -> None:
    assert field.hex() == written

import gzip
from collections import Counter

from kcm_cli.manager.server.profile_proto import Frame, as_text, encode_profile

INNER, OUTER = Frame("m.inner", "m.py", 300), Frame("m.outer", "m.py", 7)


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """A protocol buffer message as its fields."""
    found: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        else:
            length = varint()
            found.append((key >> 3, data[at : at + length]))
            at += length
    return found


def test_a_profile_has_locations_and_counts() -> None:
    samples = Counter({(INNER, OUTER): 5, (OUTER,): 2})
    message = fields(gzip.decompress(encode_profile(samples, ("samples", "count"), period_ns=10, duration_ns=20)))
    strings = [value.decode() for number, value in message if number == 6 and isinstance(value, bytes)]
    assert strings[0] == ""
    counts = [dict(fields(value)) for number, value in message if number == 2 and isinstance(value, bytes)]
    assert [count[2] for count in counts] == [b"\x05", b"\x02"]
    assert [count[1] for count in counts] == [b"\x01\x02", b"\x02"]
    functions = [dict(fields(value)) for number, value in message if number == 5 and isinstance(value, bytes)]
    assert [strings[one[2]] for one in functions] == ["m.inner", "m.outer"]
    lines = [dict(fields(dict(fields(value))[4])) for number, value in message if number == 4]
    assert [line[2] for line in lines] == [300, 7]
    assert dict(message)[12] == 10


def test_text_has_the_most_frequent_first() -> None:
    text = as_text(Counter({(OUTER,): 2, (INNER, OUTER): 5}), "profile")
    assert text == ("profile: total 7\n\n5 @\n#\tm.inner\tm.py:300\n#\tm.outer\tm.py:7\n\n2 @\n#\tm.outer\tm.py:7\n")

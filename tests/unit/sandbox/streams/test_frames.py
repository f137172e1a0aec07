"""WebSocket messages and SPDY frames, in any chunks."""

import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.sandbox.streams import spdy, websocket
from tests.streams import masked, syn_stream


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 400))
def test_messages_in_any_chunks(messages: list[bytes], size: int) -> None:
    reader = websocket.Reader()
    sent = b"".join(masked(2, each) for each in messages)
    assert [found for part in pieces(sent, size) for found in reader.receive(part)] == messages


def test_parts_of_a_message_with_a_ping_between_them() -> None:
    reader = websocket.Reader()
    sent = (
        masked(2, b"ab", final=False) + masked(9, b"!") + masked(0, b"c") + masked(8, b"\x03\xe8") + masked(2, b"late")
    )
    assert list(reader.receive(sent)) == [b"abc"]
    assert reader.closed
    assert bytes(reader.replies) == b"\x8a\x01!"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x82\x01a",
        masked(3, b""),
        b"\x82\xff" + struct.pack(">Q", 1 << 40),
        masked(2, b"x" * (1 << 20), final=False) * 2,
    ],
)
def test_violations_of_the_websocket_protocol(sent: bytes) -> None:
    with pytest.raises(websocket.WebSocketError):
        list(websocket.Reader().receive(sent))


@pytest.mark.parametrize("size", [1, 125, 126, 65535, 65536])
def test_lengths_of_messages(size: int) -> None:
    data = websocket.message(b"x" * size)
    head = {1: 2, 125: 2, 126: 4, 65535: 4, 65536: 10}[size]
    assert (data[0], len(data)) == (0x82, head + size)


def test_the_first_protocol_of_the_client_that_is_known() -> None:
    headers = {"sec-websocket-protocol": "a, v4, b"}
    assert websocket.chosen(headers, ("b", "v4", "")) == "v4"
    assert websocket.chosen({}, ("v4", "")) == ""
    assert websocket.chosen(headers, ("z",)) is None


@given(st.integers(1, 40))
def test_streams_in_any_chunks(size: int) -> None:
    writer = zlib.compressobj(zdict=spdy._DICTIONARY)
    sent = syn_stream(writer, 1, {"streamtype": "stdin"}) + syn_stream(writer, 3, {"streamType": "error", "port": "80"})
    sent += spdy.Session.data(1, b"hello", end=True) + struct.pack(">HHII", 0x8003, 6, 4, 7)
    session = spdy.Session()
    assert [found for part in pieces(sent, size) for found in session.receive(part)] == [
        spdy.Opened(1, {"streamtype": "stdin"}),
        spdy.Opened(3, {"streamtype": "error", "port": "80"}),
        spdy.Data(1, b"hello", True),
    ]
    assert bytes(session.replies) == struct.pack(">HHII", 0x8003, 6, 4, 7)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", 0x8003, 1, 2) + b"ab",
        struct.pack(">HHI", 0x8003, 1, 14) + bytes(10) + b"junk",
        struct.pack(">II", 1, 0xFFFFFF),
    ],
)
def test_violations_of_spdy(sent: bytes) -> None:
    with pytest.raises(spdy.SpdyError):
        list(spdy.Session().receive(sent))

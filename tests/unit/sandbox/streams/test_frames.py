"""WebSocket messages and SPDY frames, in any chunks."""

import struct
import zlib
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.sandbox.streams import spdy, websocket
from tests.kit.streams import masked, syn_stream


def messages_of(parts: Iterable[websocket.Part]) -> list[bytes]:
    found: list[bytes] = []
    for part in parts:
        found[len(found) if part.first else len(found) - 1 :] = [(b"" if part.first else found[-1]) + part.data]
    return found


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 400))
def test_messages_in_any_chunks(messages: list[bytes], size: int) -> None:
    reader = websocket.Reader()
    sent = b"".join(masked(2, each) for each in messages)
    assert messages_of(found for part in pieces(sent, size) for found in reader.receive(part)) == messages


def test_parts_of_a_message_with_a_ping_between_them() -> None:
    reader = websocket.Reader()
    sent = (
        masked(2, b"ab", final=False) + masked(9, b"!") + masked(0, b"c") + masked(8, b"\x03\xe8") + masked(2, b"late")
    )
    assert messages_of(reader.receive(sent)) == [b"abc"]
    assert reader.closed
    assert bytes(reader.replies) == b"\x8a\x01!"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x82\x01a",
        masked(3, b""),
        b"\x82\xff" + struct.pack(">Q", 1 << 40),
        b"\x02\xff"
        + struct.pack(">Q", 20 << 20)
        + b"mask"
        + bytes(20 << 20)
        + b"\x80\xff"
        + struct.pack(">Q", 13 << 20),
        b"\x89\xfe\x00\x80mask",
    ],
)
def test_violations_of_the_websocket_protocol(sent: bytes) -> None:
    with pytest.raises(websocket.WebSocketError):
        list(websocket.Reader().receive(sent))


def test_a_long_message_is_passed_on_as_it_comes() -> None:
    size = 32 << 20
    reader = websocket.ChannelReader()
    (begun,) = reader.channels(b"\x82\xff" + struct.pack(">Q", size) + b"\0\0\0\0\0a")
    assert begun == (0, b"a")
    part, got, kept = b"b" * 65536, 1, 0
    while got < size - 1:
        got += sum(len(data) for channel, data in reader.channels(part[: size - 1 - got]) if channel == 0)
        kept = max(kept, len(reader._rest))
    assert (got, kept) == (size - 1, 0)
    assert list(reader.channels(masked(2, b"\xff\0"))) == [(255, b"\0")]


def test_messages_in_text_are_a_digit_and_base64() -> None:
    reader = websocket.ChannelReader(text=True)
    sent = masked(1, b"0Zm9v") + masked(1, b"0!!!!") + masked(1, b"0YQ==") + masked(1, b"") + masked(1, b"4e30=")
    found = [part for at in range(len(sent)) for part in reader.channels(sent[at : at + 1])]
    assert b"".join(data for channel, data in found if channel == 0) == b"fooa"
    assert b"".join(data for channel, data in found if channel == 4) == b"{}"
    assert websocket.of_channel("v4.base64.channel.k8s.io", 1, b"foo") == websocket.text(b"1Zm9v")
    assert websocket.of_channel("v4.channel.k8s.io", 1, b"foo") == websocket.message(b"\x01foo")


@pytest.mark.parametrize("text", [False, True])
def test_a_channel_is_never_negative(text: bool) -> None:
    reader = websocket.ChannelReader(text=text)
    sent = b"".join(masked(1, bytes([first]) + b"Zm9v") for first in range(256))
    found = [channel for channel, _ in reader.channels(sent)]
    assert sorted(found) == list(range(256))
    assert found[ord(".")] == (254 if text else ord("."))


def test_the_channel_of_a_message_whose_first_frame_is_empty() -> None:
    for reader, data in ((websocket.ChannelReader(), b"\1foo"), (websocket.ChannelReader(text=True), b"1Zm9v")):
        assert list(reader.channels(b"\x02\x80mask" + masked(0, data))) == [(1, b"foo")]


def test_line_breaks_in_base64_are_skipped() -> None:
    sent = masked(1, b"0Zm\r\n9v\nYg=\n=\n")
    for reader in (websocket.ChannelReader(text=True), websocket.ChannelReader(text=True)):
        assert b"".join(data for _, data in reader.channels(sent)) == b"foob"
        assert b"".join(data for at in range(len(sent)) for _, data in reader.channels(sent[at : at + 1])) == b"foob"


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"])
def test_the_last_channel_of_a_protocol(protocol: str) -> None:
    channel = websocket.most_channels(protocol) - 1
    (byte,) = websocket.of_channel(protocol, channel, b"")[2:]
    assert byte == channel + (ord("0") if websocket.is_text(protocol) else 0)
    assert byte < (128 if websocket.is_text(protocol) else 256)


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
    found = [event for part in pieces(sent, size) for event in session.receive(part)]
    assert found[:2] == [spdy.Opened(1, {"streamtype": "stdin"}), spdy.Opened(3, {"streamtype": "error", "port": "80"})]
    data = [event for event in found if isinstance(event, spdy.Data)]
    assert len(found) == len(data) + 2 and {event.stream for event in data} == {1}
    assert b"".join(event.data for event in data) == b"hello"
    assert [event.end for event in data] == [False] * (len(data) - 1) + [True]
    assert bytes(session.replies) == struct.pack(">HHII", 0x8003, 6, 4, 7)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", 0x8003, 1, 2) + b"ab",
        struct.pack(">HHI", 0x8003, 1, 14) + bytes(10) + b"junk",
        struct.pack(">HHI", 0x8003, 1, 0xFFFFFF),
    ],
)
def test_violations_of_spdy(sent: bytes) -> None:
    with pytest.raises(spdy.SpdyError):
        list(spdy.Session().receive(sent))

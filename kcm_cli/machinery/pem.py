"""PEM as Go's encoding/pem reads it: the only reader of PEM text here.

Other readers find other blocks in the same text, so that an approval could be for one request and the signature for
another. A block begins at the start of the text or of a line, and its last line has nothing but spaces after the type.
Text that is no block is skipped, and so are blocks with invalid base64. A text is read in linear time.

upstream: encoding/pem/pem.go, crypto/x509/cert_pool.go#AppendCertsFromPEM, crypto/tls/tls.go#X509KeyPair
"""

import base64
from collections.abc import Iterator

import msgspec

from kcm_cli.machinery.formats import SPACES, from_base64

CERTIFICATE = "CERTIFICATE"
_BEGIN, _END, _DASHES = b"-----BEGIN ", b"\n-----END ", b"-----"
_LINE = 64


class Block(msgspec.Struct, frozen=True):
    """A block. type: bytes that are not UTF-8 are escaped as surrogates. end: offset after the block's last line."""

    type: str
    headers: dict[str, str]
    content: bytes
    end: int = 0


def blocks(data: bytes) -> Iterator[Block]:
    """All blocks, in order."""
    block = first(data)
    while block is not None:
        yield block
        block = first(data, block.end)


def first(data: bytes, start: int = 0) -> Block | None:
    """The first block from an offset, which counts as the start of a line."""
    while (end := data.find(_END, start)) >= 0:
        after = end + len(_END)
        # Of several lines BEGIN before an END, the last one counts.
        begin = data.rfind(_BEGIN, start, end)
        if begin == start or (begin > start and data[begin - 1 : begin] == b"\n"):
            kind, at = _line(data, begin + len(_BEGIN))
            if kind.endswith(_DASHES):
                headers, at = _headers(data, at)
                if at >= len(data) or at > after:
                    return None  # the headers include the END: Go gives up here
                block = _block(data, kind.removesuffix(_DASHES), headers, (at, end))
                if block is not None:
                    return block
        start = after
    return None


def _block(data: bytes, kind: bytes, headers: dict[str, str], body: tuple[int, int]) -> Block | None:
    """The block with these first lines, if its last line fits them and its body is base64."""
    at, end = body
    if headers and end < at:
        return None
    last, after = _line(data, end + len(_END))
    if last != kind + _DASHES:
        return None
    try:
        content = from_base64(data[at:end].translate(None, b" \t"))
    except ValueError:
        return None
    return Block(_text(kind), headers, content, after)


def certificates(data: bytes) -> Iterator[bytes]:
    """The blocks of certificates (DER, not parsed). Those with headers are skipped, as where CAs are read."""
    return (block.content for block in blocks(data) if block.type == CERTIFICATE and not block.headers)


def chain(data: bytes) -> list[bytes]:
    """The certificates (DER, not parsed) of a server or a client, the own one first. Headers are allowed."""
    return [block.content for block in blocks(data) if block.type == CERTIFICATE]


def private_key(data: bytes) -> bytes | None:
    """The first private key of a server or a client (DER, of any form, not parsed)."""
    return next((one.content for one in blocks(data) if f" {one.type}".endswith(" PRIVATE KEY")), None)


def encode(kind: str, content: bytes) -> bytes:
    """A block without headers."""
    text = base64.b64encode(content)
    lines = b"".join(text[at : at + _LINE] + b"\n" for at in range(0, len(text), _LINE))
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (kind.encode(), lines, kind.encode())


def _headers(data: bytes, at: int) -> tuple[dict[str, str], int]:
    """The lines with a colon from an offset, and the offset after them."""
    headers: dict[str, str] = {}
    while at < len(data):
        line, after = _line(data, at)
        key, colon, value = line.partition(b":")
        if not colon:
            break
        headers[_text(key).strip(SPACES)] = _text(value).strip(SPACES)
        at = after
    return headers, at


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    """The line from an offset without spaces at its end, and the offset of the next one."""
    newline = data.find(b"\n", at)
    if newline < 0:
        return data[at:].rstrip(b" \t"), len(data)
    return data[at:newline].removesuffix(b"\r").rstrip(b" \t"), newline + 1


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")

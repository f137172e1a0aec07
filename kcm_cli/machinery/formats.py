"""Text formats that several parts of the API use."""

import base64
import binascii
import re
from datetime import date

SPACES = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""What Go's ``strings.TrimSpace`` takes for space. ``str.strip`` takes four more (0x1c to 0x1f)."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def from_base64(text: str | bytes) -> bytes:
    """The bytes in padded base64 of the standard alphabet, as Go decodes it: line breaks are skipped, nothing else is.

    Raises ValueError. upstream: encoding/base64 StdEncoding
    """
    # A character beyond ASCII becomes a question mark, which is not in the alphabet.
    data = (text.encode("ascii", "replace") if isinstance(text, str) else text).translate(None, b"\r\n")
    plain = data.rstrip(b"=")
    if len(data) % 4 or len(data) - len(plain) > 2 or plain.translate(None, _ALPHABET):
        raise ValueError("not base64")
    return binascii.a2b_base64(data)


def is_base64(text: str) -> bool:
    """Whether the text is padded base64 in the standard alphabet, without line breaks."""
    if "\r" in text or "\n" in text:
        return False
    try:
        from_base64(text)
    except ValueError:
        return False
    return True


def decoded_base64(text: str) -> bytes:
    """The decoded bytes of ``from_base64``; empty if the text is not base64."""
    try:
        return from_base64(text)
    except ValueError:
        return b""


def base64_text(data: bytes) -> str:
    """Padded base64 in the standard alphabet."""
    return base64.b64encode(data).decode()


def base64url_text(data: bytes) -> str:
    """base64 for URLs, without padding, as in JSON web tokens."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def is_date(text: str) -> bool:
    """Whether the text is an existing day in the form ``2030-01-31``."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

"""Small forms of text that several languages of the API know."""

import base64
import binascii
import re
from datetime import date

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_base64(text: str) -> bool:
    """Whether this is padded base64 of the standard alphabet."""
    try:
        base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return True


def decoded_base64(text: str) -> bytes:
    """The bytes; none where this is no base64."""
    return base64.b64decode(text) if is_base64(text) else b""


def is_date(text: str) -> bool:
    """Whether this is a day as ``2030-01-31``, and one that exists."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

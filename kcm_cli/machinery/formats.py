"""Text formats that several parts of the API use."""

import base64
import binascii
import re
from datetime import date

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_base64(text: str) -> bool:
    """Whether the text is padded base64 in the standard alphabet."""
    try:
        base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return True


def decoded_base64(text: str) -> bytes:
    """The decoded bytes; empty if the text is not base64."""
    return base64.b64decode(text) if is_base64(text) else b""


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

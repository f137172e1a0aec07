"""Booleans as Go's strconv.ParseBool reads them."""

_READ = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def parse_bool(text: str) -> bool | None:
    """None if the text is no boolean."""
    return _READ.get(text)

"""Encodes JSON byte for byte as Go's encoding/json encodes a map: sorted keys, no whitespace, ``<``, ``>`` and ``&``
escaped.

The revisions of DaemonSets and StatefulSets are compared and hashed in this form. Not guaranteed: floats with an
exponent, which no pod template has.
"""

from kcm_cli.machinery import codec

_ESCAPES = (
    (b"&", b"\\u0026"),
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def encode(value: object) -> bytes:
    """The encoded value. The escaped characters occur in strings only, so they can be replaced in the text."""
    data = codec.encode_sorted(value)
    for plain, escaped in _ESCAPES:
        if plain in data:
            data = data.replace(plain, escaped)
    return data

"""JSON byte for byte as Go's encoding/json writes a map: sorted keys, no blanks, ``<``, ``>`` and ``&`` escaped.

Revisions of DaemonSets and StatefulSets are compared and hashed in this form.
Not guaranteed: floats with an exponent, which no pod template has.
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
    """The bytes of a JSON value. The escaped characters stand only inside of strings, so a replacement does."""
    data = codec.encode_sorted(value)
    for plain, escaped in _ESCAPES:
        if plain in data:
            data = data.replace(plain, escaped)
    return data

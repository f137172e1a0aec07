"""Puts a JSON document into a page that shows it. Pure.

The page has the data, one style and one script, whose hashes its Content-Security-Policy allows: whatever the data
says, nothing else runs, and nothing is requested. The script makes elements and their text, never HTML from a text.

upstream: none
"""

import base64
import hashlib
import html
from collections.abc import Mapping
from importlib import resources

from kcm_cli.machinery import codec
from kcm_cli.machinery.quoting import json_escaped

TRACE, PLAN, COMPARISON = "trace", "plan", "comparison"
_MARKUP = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}
"""What could end the element of the data."""


def page(kind: str, title: str, document: Mapping[str, object] | bytes) -> str:
    """The whole file. kind: which view shows it. document: as ``-o json`` prints it."""
    data = document if isinstance(document, bytes) else codec.encode(document)
    text = json_escaped(data.decode("utf-8", "replace").translate(_MARKUP))
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    name = html.escape("".join(char for char in title if char.isprintable()))
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{name}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>{style}</style></head>\n"
        f'<body data-kind="{html.escape(kind)}"><main id="main"><noscript>This report needs JavaScript; all of its '
        "data is in this file.</noscript></main>\n"
        f'<script type="application/json" id="data">{text}</script>\n'
        f"<script>{script}</script></body></html>\n"
    )


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

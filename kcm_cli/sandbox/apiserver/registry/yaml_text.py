"""Writes documents as YAML: a string that a reader would take for another type is in quotes."""

import re
from typing import Any

import yaml

_OTHER = re.compile(
    r"\A(?:[yYnN]|[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+))\Z|"
    r"\A[-+]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"
)
"""What YAML 1.2 and Go read as numbers and booleans, besides what YAML 1.1 does."""
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _OTHER, None)


def dump(document: object) -> str:
    """A document, with a line break at its end."""
    return yaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)

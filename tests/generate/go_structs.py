"""Makes go_types.json.gz and go_structs.json.gz: the fields of upstream's types, from the texts of these names.

python -m tests.generate.go_structs
"""

import gzip
from pathlib import Path

from kcm_cli.machinery import codec, go_types
from tests.generate.data import write

TYPES, STRUCTS = (Path(__file__).with_name(name) for name in ("go_types.txt", "go_structs.txt"))


def main() -> None:
    """Write both files."""
    go_types.DATA.write_bytes(gzip.compress(codec.encode(types()), 9, mtime=0))
    write("go_structs", codec.encode(structs()).decode())


def structs() -> dict[str, str]:
    """The internal types: their fields by the name of the type."""
    return dict(_lines(STRUCTS))


def types() -> dict[str, dict[str, str]]:
    """The types of pod templates, their aliases, and the required fields."""
    found: dict[str, dict[str, str]] = {"structs": {}, "alias": {}, "required": {}}
    for name, rest in _lines(TYPES):
        if name in found:
            type_, rest = rest.split(" ", 1)
            found[name][type_] = rest
        else:
            found["structs"][name] = rest
    return found


def _lines(source: Path) -> list[tuple[str, str]]:
    """The first word and the rest of each line with its continuations."""
    lines = source.read_text().replace("\n  ", " ").split("\n")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines if line and not line.startswith("#")]


if __name__ == "__main__":
    main()

"""The inputs that are kept: a file for each parser, with a JSON string of bytes (as Latin-1) on each line."""

import json
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
_FAILURES = FOLDER / "failures.jsonl"
LONGEST, MOST = 700, 40
"""What is kept of a parser: inputs of so many bytes, and so many of them."""


def _file(name: str) -> Path:
    return FOLDER / f"{name.replace('/', '-').replace(' ', '-').lower()}.txt"


def read(name: str) -> list[bytes]:
    """The inputs of a parser."""
    path = _file(name)
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [json.loads(line).encode("latin-1") for line in lines]


def failures(name: str) -> list[bytes]:
    """Inputs with which a parser failed, smallest first. They are kept for ever."""
    lines = _FAILURES.read_text(encoding="ascii").splitlines() if _FAILURES.exists() else []
    return [text.encode("latin-1") for of, text in map(json.loads, lines) if of == name]


def add_failure(name: str, data: bytes) -> None:
    """Keep an input with which a parser failed."""
    with _FAILURES.open("a", encoding="ascii") as file:
        file.write(json.dumps([name, data.decode("latin-1")]) + "\n")


def write(name: str, inputs: Iterable[bytes]) -> None:
    """Replace the inputs of a parser."""
    lines = [json.dumps(data.decode("latin-1")) + "\n" for data in inputs]
    _file(name).write_text("".join(lines), encoding="ascii")

"""Are the lowest versions that pyproject.toml permits those that were resolved, and so tested?

    python -m tests.release.floors PINS

PINS: lines ``name==version``. Of what users install: kcm itself, and its extras but ``dev``. A floor below the version
that other packages permit is one that nobody has tried. Needs no package.
"""

import re
import sys
import tomllib
from pathlib import Path

from tests.kit.places import ROOT

_FLOOR = re.compile(r"([\w.-]+)>=([\w.]+)")
_PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version: str) -> tuple[int, ...]:
    """Numbers without zeros at the end: 1.0 is 1."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def untested(requirements: list[str], pins: str) -> list[str]:
    """The requirements whose floor is another version than the pinned one."""
    pinned = {normal(name): version for name, version in _PIN.findall(pins)}
    floors = [match for one in requirements if (match := _FLOOR.match(one))]
    return [
        f"{name}>={floor}: resolved to {pinned[normal(name)]}"
        for name, floor in (match.groups() for match in floors)
        if release(floor) != release(pinned[normal(name)])
    ]


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = [*project["dependencies"], *(one for name in extras if name != "dev" for one in extras[name])]
    if wrong := untested(users, Path(sys.argv[1]).read_text()):
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

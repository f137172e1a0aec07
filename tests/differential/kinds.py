"""Objects of another release of the API: does kcm read them, and the same from protobuf as from JSON?

    python -m tests.differential.kinds FOLDER

FOLDER is ``testdata/HEAD`` of a checkout of kubernetes/api at the release, which has an object of each kind with all
fields set, in JSON and in protobuf. What cannot be read, or is read differently, is printed; so are kinds that kcm
knows and the release does not have.
"""

import sys
from pathlib import Path
from typing import Any

from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.machinery.envelope import opened
from tests.unit.api.schemas import elsewhere, resources

TYPE = {"api_version", "kind"}
"""Fields of an object that are not in the message of its protobuf form."""


def file_of(resource: Resource[Any], folder: Path, suffix: str) -> Path:
    group, _, version = resource.api_version.rpartition("/")
    return folder / f"{group or 'core'}.{version}.{resource.kind}.{suffix}"


def trouble(resource: Resource[Any], folder: Path) -> str:
    """What is wrong with how the object of a kind is read, or nothing."""
    obj = resource.decode_or_explain(file_of(resource, folder, "json").read_bytes())
    if isinstance(obj, Undecodable):
        return obj.why
    if resource.reader() is None:
        return ""
    same = resource.read_message(opened(file_of(resource, folder, "pb").read_bytes()).data)
    if isinstance(same, Undecodable):
        return f"in protobuf: {same.why}"
    names = [name for name in obj.__struct_fields__ if name not in TYPE and getattr(obj, name) != getattr(same, name)]
    return f"protobuf differs from JSON in {', '.join(names)}" if names else ""


def main() -> int:
    folder = Path(sys.argv[1])
    known = {id(one): (name, one) for name, one in (elsewhere() | resources()).items()}.values()
    here = [(name, one) for name, one in known if file_of(one, folder, "json").exists()]
    wrong = {name: why for name, one in here if (why := trouble(one, folder))}
    for name, why in wrong.items():
        print(f"{name}: {why}")
    missing = sorted({f"{one.api_version} {one.kind}" for name, one in known if (name, one) not in here})
    kinds = {(one.api_version, one.kind) for _, one in here}
    both = sum(one.reader() is not None for _, one in here)
    print(f"{len(here)} views of {len(kinds)} kinds were read, {both} in protobuf, too; {len(wrong)} wrong")
    print(f"not there: {', '.join(missing) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes bootstrap.json.gz, from bootstrap.json and rbac.txt: the objects of a new cluster that depend on no settings.

python -m tests.generate.bootstrap
"""

from pathlib import Path

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from tests.generate.data import write
from tests.generate.rbac import rbac_objects

SOURCE = Path(__file__).with_name("bootstrap.json")


def main() -> None:
    """Write bootstrap.json.gz."""
    write("bootstrap", codec.encode(objects()).decode())


def objects() -> list[Doc]:
    """The objects, in the order in which they are created."""
    return [*codec.decode(SOURCE.read_bytes(), list[dict[str, object]]), *rbac_objects()]


if __name__ == "__main__":
    main()

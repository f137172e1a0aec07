"""Makes go_structs.json.gz from go_structs.txt: the fields of upstream's internal types.

python -m tests.generate.go_structs
"""

from pathlib import Path

from kcm_cli.machinery import codec
from tests.generate.data import write

SOURCE = Path(__file__).with_name("go_structs.txt")


def main() -> None:
    """Write go_structs.json.gz."""
    write("go_structs", codec.encode(structs()).decode())


def structs() -> dict[str, str]:
    """The fields by the name of the type."""
    lines = SOURCE.read_text().replace("\n  ", " ").split("\n")
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


if __name__ == "__main__":
    main()

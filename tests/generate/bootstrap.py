"""Makes bootstrap.json.gz: the objects of a new cluster that do not depend on settings, from bootstrap.json.

python -m tests.generate.bootstrap
"""

from pathlib import Path

from kcm_cli.machinery import codec
from tests.generate.data import write

SOURCE = Path(__file__).with_name("bootstrap.json")


def main() -> None:
    """Write bootstrap.json.gz."""
    write("bootstrap", codec.encode(codec.decode(SOURCE.read_bytes(), list[dict[str, object]])).decode())


if __name__ == "__main__":
    main()

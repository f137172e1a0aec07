"""Generated data of the sandbox's API server is current."""

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.data import read_data
from tests.generate.bootstrap import objects
from tests.generate.go_structs import structs


def test_bootstrap_objects_are_current() -> None:
    found = codec.decode(read_data("bootstrap"), list[dict[str, object]])
    assert found == objects(), "run python -m tests.generate.bootstrap"


def test_internal_types_are_current() -> None:
    assert codec.decode(read_data("go_structs"), dict[str, str]) == structs(), "run python -m tests.generate.go_structs"

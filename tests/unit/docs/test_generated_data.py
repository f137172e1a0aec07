"""Generated data of the sandbox's API server is current."""

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.data import read_data
from tests.generate.bootstrap import objects


def test_bootstrap_objects_are_current() -> None:
    found = codec.decode(read_data("bootstrap"), list[dict[str, object]])
    assert found == objects(), "run python -m tests.generate.bootstrap"

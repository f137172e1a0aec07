"""Generated data is current."""

import gzip

from kcm_cli.component.featuregates_table import read_table
from kcm_cli.machinery import codec, go_types
from kcm_cli.sandbox.apiserver.data import read_data
from tests.generate.bootstrap import objects
from tests.generate.featuregates import table
from tests.generate.go_structs import structs, types


def test_bootstrap_objects_are_current() -> None:
    found = codec.decode(read_data("bootstrap"), list[dict[str, object]])
    assert found == objects(), "run python -m tests.generate.bootstrap"


def test_go_types_are_current() -> None:
    again = "run python -m tests.generate.go_structs"
    assert codec.decode(read_data("go_structs"), dict[str, str]) == structs(), again
    assert codec.decode_doc(gzip.decompress(go_types.DATA.read_bytes())) == types(), again


def test_feature_gates_are_current() -> None:
    assert table() == read_table(), "run python -m tests.generate.featuregates"

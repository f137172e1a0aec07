import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.metrics import Registry, Stability
from kcm_cli.component.metrics.exposition import go_float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-3.0, "-3"),
        (0.005, "0.005"),
        (1e-8, "1e-08"),
        (1e-7, "1e-07"),
        (9.999999999999999e-06, "9.999999999999999e-06"),
        (0.0001, "0.0001"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (31104000.0, "3.1104e+07"),
        (1763600000.5, "1.7636000005e+09"),
        (1e21, "1e+21"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_formatted_as_in_go(value: float, text: str) -> None:
    assert go_float(value) == text


def test_families_are_formatted_as_by_the_go_library() -> None:
    registry = Registry()
    registry.counter("z_changes", "Changes.", labels=("op",)).labels('a"b\n').inc(2)
    registry.histogram("a_seconds", "Time.", (0.5, 1.0), stability=Stability.STABLE).labels().observe(0.7)
    text = registry.expose().decode()
    assert text.startswith(
        "# HELP a_seconds [STABLE] Time.\n# TYPE a_seconds histogram\n"
        'a_seconds_bucket{le="0.5"} 0\na_seconds_bucket{le="1"} 1\na_seconds_bucket{le="+Inf"} 1\n'
        "a_seconds_sum 0.7\na_seconds_count 1\n"
    )
    assert text.endswith('# HELP z_changes [ALPHA] Changes.\n# TYPE z_changes counter\nz_changes{op="a\\"b\\n"} 2\n')


def test_a_family_without_series_is_not_exposed() -> None:
    registry = Registry()
    registry.counter("unused_total", "Never.", labels=("x",))
    assert b"unused_total" not in registry.expose()


@given(st.floats(allow_nan=False))
def test_numbers_round_trip(value: float) -> None:
    assert float(go_float(value)) == value

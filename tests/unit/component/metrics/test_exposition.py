from kcm_cli.component.metrics import Registry, Stability


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

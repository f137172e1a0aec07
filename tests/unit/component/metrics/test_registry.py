from typing import Any

import pytest

from kcm_cli.component.metrics import Counter, MetricsOptions, Registry, Stability
from kcm_cli.component.metrics.instruments import MOST, Description


def test_registering_twice_returns_the_same_family() -> None:
    registry = Registry()
    assert registry.counter("a_total", "A.", labels=("x",)) is registry.counter("a_total", "A.", labels=("x",))


def test_a_name_cannot_be_registered_differently() -> None:
    registry = Registry()
    registry.counter("a_total", "A.")
    with pytest.raises(ValueError, match="a_total"):
        registry.gauge("a_total", "A.")


def test_a_disabled_metric_is_counted_and_not_exposed() -> None:
    registry = Registry(MetricsOptions(disabled=frozenset({"a_total"})))
    registry.counter("a_total", "A.").labels().inc()
    text = registry.expose().decode()
    assert "\na_total" not in text
    assert "disabled_metrics_total 1\n" in text


@pytest.mark.parametrize(
    ("stability", "since", "shown"),
    [
        (Stability.ALPHA, "1.36.0", False),
        (Stability.ALPHA, "1.37.0", True),
        (Stability.BETA, "1.36.0", True),
        (Stability.BETA, "1.35.0", False),
        (Stability.STABLE, "1.34.0", True),
        (Stability.STABLE, "1.33.0", False),
    ],
)
def test_a_deprecated_metric_is_hidden_after_some_releases(stability: Stability, since: str, shown: bool) -> None:
    for asked_for in (False, True):
        registry = Registry(MetricsOptions(show_hidden=asked_for))
        registry.register(Description("a_total", "counter", "A.", (), stability, since), Counter).labels().inc()
        text = registry.expose().decode()
        assert ("\na_total 1\n" in text) is (shown or asked_for)
        assert f"hidden_metrics_total {int(not (shown or asked_for))}\n" in text


def test_values_outside_the_allowed_set_are_unexpected() -> None:
    options = MetricsOptions(allowed_labels={"a_total": {"x": frozenset({"ok"})}})
    registry = Registry(options)
    family = registry.counter("a_total", "A.", labels=("x",))
    for value in ("ok", "odd", "odder"):
        family.labels(value).inc()
    text = registry.expose().decode()
    assert 'a_total{x="ok"} 1\na_total{x="unexpected"} 2\n' in text
    assert "cardinality_enforcement_unexpected_categorizations_total 2\n" in text


@pytest.mark.parametrize("kind", ["counter", "histogram"])
def test_the_number_of_series_is_limited(kind: str) -> None:
    """Anyone who creates Jobs can name another controller in each, which is a label."""
    registry = Registry()
    family: Any = registry.counter("a", "A.", labels=("x", "y")) if kind == "counter" else None
    family = family or registry.histogram("a", "A.", (1.0,), labels=("x", "y"))
    for number in range(3 * MOST):
        child = family.labels(f"{number}", "z")
        child.inc() if kind == "counter" else child.observe(2.0)
    text = registry.expose().decode()
    name = "a" if kind == "counter" else "a_count"
    assert f'{name}{{x="unexpected",y="unexpected"}} {2 * MOST}\n' in text
    assert f'{name}{{x="0",y="z"}} 1\n' in text
    assert text.count(f"\n{name}{{") == MOST + 1


def test_all_labels_are_required() -> None:
    with pytest.raises(ValueError, match="a_total"):
        Registry().counter("a_total", "A.", labels=("x", "y")).labels("one")


def test_a_registry_can_hide_its_own_metrics() -> None:
    registry = Registry(about_itself=False)
    assert registry.expose() == b""
    registry.counter("a_total", "A.").labels().inc()
    assert [line for line in registry.expose().decode().splitlines() if line[0] != "#"] == ["a_total 1"]


def test_a_series_is_exposed_once_requested() -> None:
    registry = Registry()
    family = registry.gauge("a", "A.")
    assert "\na " not in registry.expose().decode()
    family.labels()
    assert "\na 0\n" in registry.expose().decode()

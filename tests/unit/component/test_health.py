import pytest

from kcm_cli.component.health import HealthChecks, SliMetrics
from kcm_cli.component.metrics import Registry


def checks(**why: str | None) -> HealthChecks:
    result = HealthChecks()
    for name, reason in why.items():
        result.add(name, lambda reason=reason: reason)
    return result


def test_healthy_is_ok() -> None:
    assert checks(a=None).evaluate().text(verbose=False) == "ok"


def test_verbose_names_every_check_in_order() -> None:
    text = checks(b=None, a=None).evaluate().text(verbose=True)
    assert text == "[+]b ok\n[+]a ok\nhealthz check passed\n"


def test_a_failure_is_verbose_without_the_reason() -> None:
    report = checks(a=None, b="disk full").evaluate()
    assert not report.healthy
    assert report.text(verbose=False) == "[+]a ok\n[-]b failed: reason withheld\nhealthz check failed\n"


def test_excluded_checks_are_not_run() -> None:
    report = checks(a=None, b="down").evaluate(("b", "zz", "y"))
    assert report.healthy
    assert report.lines == (
        "[+]a ok\n",
        "[+]b excluded: ok\n",
        'warn: some health checks cannot be excluded: no matches for "y", "zz"\n',
    )


def test_without_checks_there_is_ping() -> None:
    assert HealthChecks().evaluate().text(verbose=True) == "[+]ping ok\nhealthz check passed\n"


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="a exists"):
        checks(a=None).add("a", lambda: None)


def test_outcomes_are_counted_at_each_evaluation() -> None:
    registry = Registry()
    health = HealthChecks(metrics=SliMetrics(registry))
    wrong: list[str | None] = [None, "down"]
    health.add("a", lambda: wrong.pop(0))
    health.evaluate()
    health.evaluate()
    text = registry.expose().decode()
    assert 'kubernetes_healthcheck{name="a",type="healthz"} 0\n' in text
    assert 'kubernetes_healthchecks_total{name="a",status="success",type="healthz"} 1\n' in text
    assert 'kubernetes_healthchecks_total{name="a",status="error",type="healthz"} 1\n' in text


def test_warnings_do_not_fail() -> None:
    health = checks(a=None)
    health.warn(lambda: ["1 objects of v1/pods cannot be decoded: ns/a"])
    report = health.evaluate()
    assert report.healthy
    assert report.text(verbose=False) == "ok"
    shown = "warn: 1 objects of v1/pods cannot be decoded: ns/a\n"
    assert report.text(verbose=True) == f"[+]a ok\n{shown}healthz check passed\n"

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics_config import MetricsConfig
from kcm_cli.machinery.go_floats import go_float
from kcm_cli.manager.config import Config, complete
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.observability import Observability, metrics_options
from kcm_cli.manager.options import flag_set
from kcm_cli.manager.pages import pages
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.runtime.leader import ElectionConfig, Elector

pytestmark = pytest.mark.real_time

OWNERS = {
    "workqueue",
    "rest-client",
    "serving-auth",
    "metrics-registry",
    "leader-election",
    "component-version",
    "feature-gates",
    "controller-manager",
    "health-slis",
}


def config(*flags: str) -> Config:
    return complete(flag_set().parse(flags))


@dataclass
class Shown:
    """A family as a scrape shows it."""

    kind: str
    stability: str
    labels: set[str]
    buckets: list[str]


def shown(text: str) -> dict[str, Shown]:
    found: dict[str, Shown] = {}
    for line in text.splitlines():
        if match := re.match(r"# HELP (\S+) \[(\w+)\]", line):
            found[match[1]] = Shown("", match[2], set(), [])
        elif match := re.match(r"# TYPE (\S+) (\w+)", line):
            found.setdefault(match[1], Shown("", "", set(), [])).kind = match[2]
        elif match := re.match(r"(\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? ", line):
            name = match[1] if match[1] in found else match[1] + (match[2] or "")
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[3] or ""))
            if (bound := labels.pop("le", "+Inf")) != "+Inf" and bound not in found[name].buckets:
                found[name].buckets.append(bound)
            found[name].labels |= labels.keys()
    return found


def touch(registry: Registry) -> None:
    """Make a series of every family, so that it is shown."""
    for family in registry.families():
        family.labels(*("x" for _ in family.description.labels))


async def test_metrics_have_names_types_and_labels_of_upstream(
    reference: Callable[[str], list[dict[str, object]]],
) -> None:
    everything = Observability(config(), LoopClock())
    AuthMetrics.register(everything.registry)
    Elector(ElectionConfig(identity="x"), object(), LoopClock(), object(), everything.registry)
    everything.workqueues.queue("x", lambda: 0.0)
    touch(everything.registry)
    touch(everything.slis)
    main, slis = everything.registry.expose().decode(), everything.slis.expose().decode()
    pages = {"/metrics": shown(main), "/metrics/slis": shown(slis)}
    facts = [fact for fact in reference("metrics.json") if fact["owner"] in OWNERS]
    assert len(facts) > 40
    for fact in facts:
        family = pages[str(fact.get("path", "/metrics"))][str(fact["name"])]
        assert family.kind == fact["type"], fact["name"]
        assert family.stability == fact["stability"], fact["name"]
        assert family.labels == set(fact["labels"]), fact["name"]
        if fact["type"] == "histogram":
            wanted = [go_float(float(bound)) for bound in fact["buckets"]]
            assert family.buckets == wanted, fact["name"]


def test_metrics_flags_become_the_registrys_options() -> None:
    options = metrics_options(
        MetricsConfig(disabled=("c_total",), allow_labels=(("a_total,x", "one,two"), ("b_total,y", "three")))
    )
    assert options.allowed_labels == {
        "a_total": {"x": frozenset({"one", "two"})},
        "b_total": {"y": frozenset({"three"})},
    }
    assert options.disabled == frozenset({"c_total"})


@pytest.mark.parametrize("head", ["", "allowListMapping:\n"])
def test_a_manifest_is_the_mapping_or_has_it_under_its_name(tmp_path: Path, head: str) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text(f"{head}  a_total,x: one,two\n  a_total,code: 200\n")
    options = metrics_options(MetricsConfig(allow_labels_manifest=str(manifest)))
    assert options.allowed_labels == {"a_total": {"x": frozenset({"one", "two"}), "code": frozenset({"200"})}}


@pytest.mark.parametrize("text", ["", "---\n", "allowListMapping:\n", "{}"])
def test_an_empty_manifest_allows_every_label(tmp_path: Path, text: str) -> None:
    manifest = tmp_path / "m.yaml"
    manifest.write_text(text)
    assert not metrics_options(MetricsConfig(allow_labels_manifest=str(manifest))).allowed_labels


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot read"),
        ("{", "is not YAML"),
        ("a: 1", '"a" is none'),
        ("a,b: [1]", "must map metric,label to values"),
        ("[a]", "must map metric,label to values"),
    ],
    ids=["no", "bad", "key", "value", "list"],
)
def test_an_invalid_manifest_is_one_clear_line(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "m.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RunError, match=words):
        metrics_options(replace(MetricsConfig(), allow_labels_manifest=str(path)))


def test_pages_follow_the_flags() -> None:
    async def work(*flags: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        return pages(Observability(config(*flags), LoopClock()), loop, lambda: loop).listed

    assert asyncio.run(work()) == ("/configz", "/flagz", "/healthz", "/metrics", "/metrics/slis")
    assert "/flagz" not in asyncio.run(work("--feature-gates=ComponentFlagz=false"))

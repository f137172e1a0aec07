"""The kinds of lives, and their steps, as ``kinds.yaml`` has them."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.differential.cluster_lives.pictures import face, shown
from tests.differential.cluster_lives.site import OF_CLUSTER, Site
from tests.differential.living import Doc

NO = object()
SELDOM = 3
"""So many times of one more is what is rare left out."""


@dataclass(frozen=True)
class One:
    """One of these values, by chance."""

    values: list[Any]


def drawn(rng: random.Random, value: Any) -> Any:
    """A document without choices."""
    while isinstance(value, One):
        value = rng.choice(value.values)
    if isinstance(value, dict):
        pairs = [(key, drawn(rng, inner)) for key, inner in value.items()]
        return {key: inner for key, inner in pairs if inner is not NO}
    if isinstance(value, list):
        return [inner for inner in (drawn(rng, each) for each in value) if inner is not NO]
    return value


@dataclass(frozen=True)
class Step:
    """``names``: it is done to one of these, or else to any object; ``s``: seconds until its consequences."""

    verb: str
    plural: str
    sub: str
    names: list[str]
    body: Any
    where: Any
    s: float

    async def act(self, site: Site, rng: random.Random) -> bool:
        """Whether anything was done."""
        body, where = drawn(rng, self.body), drawn(rng, self.where)
        if self.verb == "MEASURE":
            await self._measure(site, body)
        elif self.verb == "QUEUE":
            site.done.append(f"QUEUE {body}")
            metric = {"kind": "ExternalMetricValue", "metadata": {"name": "q"}, "metricName": "queues", "value": body}
            await site.publish("external.metrics.k8s.io", "queues", metric)
        elif name := self._one(rng) if self.names else self._any(site, rng):
            if self.verb == "LOSE":
                site.lose(name)
            elif self.verb == "FIND":
                await site.find(name)
            else:
                return await site.send(self.verb, self.plural, name, body, self.sub, where)
        else:
            return False
        return True

    def _one(self, rng: random.Random) -> str:
        return "$-" * (self.plural in OF_CLUSTER) + rng.choice(self.names)

    def _any(self, site: Site, rng: random.Random) -> str:
        """Of those that look alike one is as good as another: their names are random."""
        objects = [one for one in site.items(self.plural) if "deletionTimestamp" not in one["metadata"]]
        looks = {shown(self.plural, face(self.plural, one)): one["metadata"]["name"] for one in objects}
        return looks[rng.choice(sorted(looks))] if looks else ""

    async def _measure(self, site: Site, usage: Doc) -> None:
        site.done.append(f"MEASURE {usage}")
        for pod in site.items("pods"):
            meta = {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]}
            metric = {"kind": "PodMetrics", "metadata": meta, "window": "30s"}
            await site.publish("metrics.k8s.io", "pods", {**metric, "containers": [{"name": "c", "usage": usage}]})


@dataclass(frozen=True)
class Kind:
    first: list[Step]
    steps: list[Step]
    last: list[Step]
    alone: bool
    ends_s: float
    nudge: str
    alpha: bool


class _Loader(yaml.SafeLoader):
    pass


def _one(loader: Any, node: Any) -> One:
    return One(loader.construct_sequence(node, deep=True))


_Loader.add_constructor("!no", lambda loader, node: NO)
_Loader.add_constructor("!one", _one)
_Loader.add_constructor("!rare", lambda loader, node: One([NO] * SELDOM + [_one(loader, node)]))


def _steps(docs: list[Any]) -> list[Step]:
    found: list[Step] = []
    for doc in docs:
        if isinstance(doc, list):
            found += _steps(doc)
            continue
        verb, target, names = (*doc["do"].split(maxsplit=2), "", "")[:3]
        plural, _, sub = target.partition("/")
        body, where, s = doc.get("with"), doc.get("in", ""), doc.get("s", 0)
        found += [Step(verb, plural, f"/{sub}" * bool(sub), names.split(), body, where, s)] * doc.get("times", 1)
    return found


def _kinds() -> dict[str, Kind]:
    text = Path(__file__).with_name("kinds.yaml").read_text()
    docs = yaml.load(text, _Loader)["kinds"]
    return {
        name: Kind(
            _steps(doc.get("first", [])), _steps(doc.get("steps", [])), _steps(doc.get("last", [])),
            doc.get("alone", False), doc.get("ends_s", 3), doc.get("nudge", ""), doc.get("alpha", False),
        )
        for name, doc in docs.items()
    }  # fmt: skip


KINDS = _kinds()

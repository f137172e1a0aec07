"""From pods to Services and back."""

import random
from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import PODS, SERVICES
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.shared.pod_services import PodServices
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.runtime.informer import Informer
from tests.unit.planning.endpoints.making import pod, service


class Fixture:
    def __init__(self, **selectors: Any) -> None:
        self.called: list[str] = []
        client = Client(None, limiter=Unlimited(), user_agent="t", clock=LoopClock())  # type: ignore[arg-type]
        services = Informer(SERVICES, client, LoopClock(), random.Random(1))
        self.pods = Informer(PODS, client, LoopClock(), random.Random(1))
        self.selected = selected = PodServices(services, self.pods)
        self.pods.listen(
            on_add=lambda pod: self.called.extend(selected.services_of(pod)),
            on_update=lambda old, new: self.called.extend(selected.services_of_changed(old, new)),
            on_delete=lambda pod: self.called.extend(selected.services_of(pod)),
        )
        for name, selector in selectors.items():
            services._put(service(name, selector=selector))


SELECTORS = {"web": {"app": "web"}, "front": {"app": "web", "tier": "front"}, "db": {"app": "db"}, "none": None}


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        pytest.param({"app": "web"}, {"ns/web"}, id="one term"),
        pytest.param({"app": "web", "tier": "front"}, {"ns/web", "ns/front"}, id="two terms"),
        pytest.param({"tier": "front"}, set(), id="part of the terms"),
        pytest.param({"app": "other"}, set(), id="other value"),
    ],
)
def test_services_of_a_pod(labels, wanted):
    fixture = Fixture(**SELECTORS)
    found = list(fixture.selected.services_of(pod("a", labels=labels)))
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_an_empty_selector_selects_everything():
    fixture = Fixture(all={})
    subject = pod("a")
    fixture.pods._put(subject)
    assert fixture.called == ["ns/all"]
    assert fixture.selected.pods_of(service("all", selector={})) == [subject]


def test_changes_of_pods_queue_their_services():
    fixture = Fixture(**SELECTORS)
    first = pod("a")
    fixture.pods._put(first)
    fixture.pods._put(pod("b", labels={"app": "db"}))
    assert fixture.called == ["ns/web", "ns/db"]
    fixture.called.clear()
    moved = pod("a", labels={"app": "db"})
    newer = msgspec.structs.replace(moved.metadata, resource_version="2")
    fixture.pods._put(msgspec.structs.replace(moved, metadata=newer))
    assert sorted(fixture.called) == ["ns/db", "ns/web"]
    assert [found.name for found in fixture.selected.pods_of(service("db", selector={"app": "db"}))] == ["a", "b"]
    fixture.called.clear()
    fixture.pods._remove("ns/a")
    assert fixture.called == ["ns/db"]

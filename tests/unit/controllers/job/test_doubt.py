"""Creations whose answer was lost."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kcm_cli.api.batch import Job
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.job.doubt import Doubt
from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import LabelSelector, from_label_selector
from kcm_cli.planning.actions import Create, Delete, Failed, Outcome
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Forbidden
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import ConnectionLost, Request, Response, TimedOut, Unreachable
from kcm_cli.runtime.store import Store

SELECTOR = from_label_selector(LabelSelector(match_labels={"app": "a"}))
CREATE = Create(PODS, "ns", {})


class Lister:
    """A transport that answers every request with these pods."""

    def __init__(self, *names: str) -> None:
        items = [{"metadata": {"name": name, "namespace": "ns"}} for name in names]
        self._body = codec.encode({"kind": "PodList", "metadata": {}, "items": items})
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(200, {}, self._body)

    def stream(self, request: Request) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...


def after(error: Exception, job: Job, lister: Lister, *cached: Pod, action: Any = CREATE) -> tuple[Doubt, bool]:
    """The doubt that a failure raises, and whether it is resolved with these pods in the cache."""

    async def main() -> tuple[Doubt, bool]:
        store: Store[Pod] = Store()
        for pod in cached:
            store.put(pod)
        client = Client(lister, limiter=Unlimited(), user_agent="test", clock=LoopClock())
        doubt = Doubt(client, store)
        doubt.note(job, Outcome(failed=(Failed(action, error),)))
        return doubt, await doubt.resolved(job, SELECTOR)

    return asyncio.run(main())


@pytest.mark.parametrize("error", [ConnectionLost("broken"), TimedOut("late")])
def test_a_pod_that_the_cache_does_not_show_holds_planning_up(
    error: Exception, make_job: Callable[..., Job], make_pod: Callable[..., Pod]
) -> None:
    job, lister = make_job(), Lister("a", "b")
    doubt, resolved = after(error, job, lister, make_pod("a"))
    assert not resolved and doubt.pending(job)
    assert ("labelSelector", "app=a") in lister.asked[0].query
    doubt.forget(job.key)
    assert not doubt.pending(job)


def test_a_cache_that_shows_all_pods_ends_the_doubt(make_job: Callable[..., Job], make_pod: Callable[..., Pod]) -> None:
    job = make_job()
    doubt, resolved = after(ConnectionLost("broken"), job, Lister("a"), make_pod("a"), make_pod("b"))
    assert resolved and not doubt.pending(job)


@pytest.mark.parametrize(
    ("error", "action"),
    [
        pytest.param(Unreachable("refused"), CREATE, id="the server saw nothing"),
        pytest.param(Forbidden(403, "Forbidden", "no"), CREATE, id="the server refused"),
        pytest.param(ConnectionLost("broken"), Delete(PODS, "ns", "a"), id="a deletion may be repeated"),
    ],
)
def test_nothing_is_asked_when_there_is_no_doubt(error: Exception, action: Any, make_job: Callable[..., Job]) -> None:
    lister = Lister("a")
    doubt, resolved = after(error, make_job(), lister, action=action)
    assert resolved and not lister.asked and not doubt.pending(make_job())

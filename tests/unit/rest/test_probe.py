"""Waiting for the API server, and lists in pages."""

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.errors import Expired
from kcm_cli.rest.listing import PAGE, list_all, list_readable
from kcm_cli.rest.probe import NotHealthy, wait_until_healthy
from kcm_cli.rest.transport import Unreachable, Unreadable, Untrusted


async def test_waits_until_healthy(script, answer, failure):
    transport = script(Unreachable("refused"), failure(500, "InternalError"), answer(200, "ok"))
    await wait_until_healthy(transport.client(), LoopClock())
    assert transport.times == [0, 1, 2]


def pods(*names, token="", version="7"):
    items = [{"metadata": {"name": name, "namespace": "ns"}} for name in names]
    return {"kind": "PodList", "metadata": {"resourceVersion": version, "continue": token}, "items": items}


async def test_a_list_is_read_page_by_page(script, answer):
    transport = script(answer(200, pods("a", token="t")), answer(200, pods("b")))
    listed = await list_readable(transport.client(), PODS, "ns", label_selector="x")
    assert [pod.name for pod in listed.items] == ["a", "b"]
    assert listed.resource_version == "7"
    assert [dict(request.query) for request in transport.asked] == [
        {"limit": str(PAGE), "labelSelector": "x"},
        {"limit": str(PAGE), "labelSelector": "x", "continue": "t"},
    ]


async def test_an_expired_continue_token_falls_back_to_one_list(script, answer, failure):
    transport = script(
        answer(200, pods("a", token="t")), failure(410, "Expired"), answer(200, pods("a", "b", version="9"))
    )
    listed = await list_all(transport.client(), PODS)
    assert ([pod.name for pod in listed.items], listed.resource_version) == (["a", "b"], "9")
    assert transport.asked[2].query == ()


async def test_an_expired_first_page_is_an_error(script, failure):
    with pytest.raises(Expired):
        await list_all(script(failure(410, "Expired")).client(), PODS)


async def test_a_list_with_repeated_continue_tokens_is_unreadable(script, answer):
    pages = [answer(200, pods(name, token=token)) for name, token in (("a", "x"), ("b", "y"), ("a", "x"))]
    with pytest.raises(Unreadable, match="goes round in circles"):
        await list_all(script(*pages).client(), PODS)


async def test_an_empty_list_can_have_null_items(script, answer):
    listed = await list_all(script(answer(200, {"kind": "PodList", "metadata": {}, "items": None})).client(), PODS)

    assert listed.items == []


GIVING_UP = {
    "refused": (lambda failure: Unreachable("GET https://x: connection refused"), 10, "connection refused"),
    "500": (lambda failure: failure(500, "InternalError"), 10, "not healthy (500): because InternalError"),
    "expired token": (lambda failure: failure(401, "Unauthorized"), 10, "expired"),
    "wrong CA": (lambda failure: Untrusted("certificate"), 10, "certificate-authority"),
    "no rights": (lambda failure: failure(403, "Forbidden"), 10, "403"),
}


@pytest.mark.parametrize(("make", "limit_s", "text"), GIVING_UP.values(), ids=GIVING_UP.keys())
async def test_gives_up_with_one_line(script, failure, make, limit_s, text):
    transport = script(make(failure))
    with pytest.raises(NotHealthy) as raised:
        await wait_until_healthy(transport.client(), LoopClock())
    message, waited = str(raised.value), LoopClock().monotonic()
    assert text in message
    assert "\n" not in message
    assert limit_s - 1 <= waited <= limit_s

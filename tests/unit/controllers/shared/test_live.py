"""Objects read from the API server before something is destroyed because of them."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from kcm_cli.api.core import NODES, Node
from kcm_cli.controllers.shared import live
from kcm_cli.controllers.shared.live import Live, LiveUsers
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.rest.listing import Listed
from kcm_cli.runtime.store import Store


def node(name: str, version: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, uid="u", resource_version=version))


class Server:
    """Its nodes, the time, and what was asked for."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.now_s = 0.0
        self.asked: list[str] = []
        self.cached: Store[Node] = Store()
        client: Any = self
        self.live = Live(client, client, NODES, self.cached)

    def monotonic(self) -> float:
        return self.now_s

    async def find(self, resource: object, namespace: str, name: str) -> Node | None:
        self.asked.append(name)
        return self.nodes.get(name)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_an_answer_is_shared_for_a_moment(server: Server) -> None:
    server.nodes["n"] = node("n", "3")
    server.cached.put(node("n", "2"))
    assert [(await server.live.find(name)) for name in ("n", "gone", "n", "gone")] == [server.nodes["n"], None] * 2
    assert server.asked == ["n", "gone"]
    server.now_s = 1.1
    server.nodes["n"] = node("n", "4")
    assert await server.live.find("n") == server.nodes["n"]


async def test_an_answer_that_is_older_than_the_cache_is_asked_for_again(server: Server) -> None:
    server.nodes["n"] = node("n", "3")
    assert [await server.live.find("n"), await server.live.find("new")] == [server.nodes["n"], None]
    server.nodes = {name: node(name, "4") for name in ("n", "new")}
    for one in server.nodes.values():
        server.cached.put(replace(one))
    assert [await server.live.find("n"), await server.live.find("new")] == [*server.nodes.values()]


async def test_few_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of objects that are gone: no event says that these can be forgotten."""
    monkeypatch.setattr(live, "MOST_READ", 2)
    server = Server()
    for number in range(5):
        assert await server.live.find(f"gone-{number}") is None
    assert len(vars(server.live)["_read"]) == 2


@pytest.mark.parametrize(("version", "lists"), [("5", 1), ("7", 2), ("opaque", 3)])
async def test_a_list_counts_for_what_was_changed_before_it(
    monkeypatch: pytest.MonkeyPatch, version: str, lists: int
) -> None:
    """Versions that are no numbers cannot be compared."""
    listed: list[str] = []

    async def list_all(client: object, resource: object, namespace: str) -> Listed[Node]:
        listed.append(namespace)
        return Listed([node("user", "1")], "opaque" if version == "opaque" else str(5 + len(listed)))

    monkeypatch.setattr(live, "list_all", list_all)
    users = LiveUsers(cast(Any, None), NODES, lambda user: [user.name])
    used = node("used", version)
    assert await users.find("free", used, "ns") is None
    for _ in range(2):
        assert await users.find("free", used, "ns") is None
    assert listed == ["ns"] * lists
    assert await users.find("user", used, "ns") is not None
    users.clear()
    before = len(listed)
    assert await users.find("free", used, "ns") is None
    assert len(listed) == before + 1

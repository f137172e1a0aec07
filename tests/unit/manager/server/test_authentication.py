import asyncio

import pytest
from starlette.datastructures import Headers

from kcm_cli.component.auth_config import AuthenticationConfig
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.manager.server.authentication import user_in_headers
from kcm_cli.manager.server.metrics import TokenCacheMetrics, compressed
from kcm_cli.manager.server.tokens import TokenCache, bearer
from kcm_cli.manager.server.trust import TrustState, from_config_map
from kcm_cli.manager.server.user import User
from tests.trust.cases import ROOT, sign

NAMES = ProxyHeaders(("x-remote-user",), ("x-remote-uid",), ("x-remote-group",), ("x-remote-extra-",))


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("Bearer  abc", ""),
        ("Bearer abc def", "abc"),
        ("Basic abc", ""),
        ("Bearer", ""),
        ("", ""),
    ],
)
def test_tokens_in_headers(header: str, token: str) -> None:
    assert bearer(header) == token


def test_the_request_header_names_the_user() -> None:
    headers = Headers(
        raw=[
            (b"x-remote-user", b"jane"),
            (b"x-remote-uid", b"7"),
            (b"x-remote-group", b"a"),
            (b"x-remote-group", b"b"),
            (b"x-remote-group", b""),
            (b"x-remote-extra-acme.com%2fscope", b"x"),
            (b"x-remote-extra-acme.com%2fscope", b"y"),
        ]
    )
    assert user_in_headers(headers, NAMES) == User("jane", "7", ("a", "b"), {"acme.com/scope": ("x", "y")})
    assert user_in_headers(Headers(), NAMES) is None


def test_the_request_header_is_utf8() -> None:
    headers = Headers(
        raw=[
            (b"x-remote-user", "zoë".encode()),
            (b"x-remote-uid", "ü\N{SNOWMAN}".encode()),
            (b"x-remote-group", "käse".encode()),
            (b"x-remote-group", b"\xff"),
            (b"x-remote-extra-sch%c3%b6n", "größe".encode()),
        ]
    )
    assert user_in_headers(headers, NAMES) == User(
        "zoë", "ü\N{SNOWMAN}", ("käse", "\N{REPLACEMENT CHARACTER}"), {"schön": ("größe",)}
    )


def test_an_extra_key_with_a_wrong_escape_is_read_as_it_is() -> None:
    headers = Headers(raw=[(b"x-remote-user", b"jane"), (b"x-remote-extra-a%2fb%zz", b"x")])
    assert user_in_headers(headers, NAMES) == User("jane", "", (), {"a%2fb%zz": ("x",)})


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("admin", "admin"),
        ("system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"),
        ("a@b", "email_id"),
        ("system:anonymous", "other"),
    ],
)
def test_user_names_in_metrics_are_limited(name: str, label: str) -> None:
    assert compressed(name) == label


async def test_concurrent_requests_share_one_review() -> None:
    asked: list[str] = []

    async def review(token: str) -> User | None:
        asked.append(token)
        await asyncio.sleep(1)
        return User("jane") if token == "good" else None

    cache = TokenCache(review, 10.0, b"s", LoopClock(), TokenCacheMetrics.register(Registry()))
    users = await asyncio.gather(*(cache.user("good") for _ in range(5)))
    assert users == [User("jane")] * 5
    assert await cache.user("bad") is None
    assert await cache.user("bad") is None
    assert await cache.user("x" * 70_000) is None
    assert asked == ["good", "bad"]
    await asyncio.sleep(10.1)
    await cache.user("good")
    assert asked == ["good", "bad", "good"]


async def test_a_review_ends_when_nobody_waits_for_it() -> None:
    """So that a client which goes away leaves no token of a megabyte behind."""
    asked, ended = list[str](), 0

    async def review(token: str) -> User | None:
        nonlocal ended
        asked.append(token)
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            ended += 1
            raise
        return User("jane")

    cache = TokenCache(review, 10.0, b"s", LoopClock(), TokenCacheMetrics.register(Registry()))
    first, second = (asyncio.ensure_future(cache.user("t")) for _ in range(2))
    await asyncio.sleep(0.5)
    first.cancel()
    await asyncio.sleep(0)
    assert ended == 0
    second.cancel()
    await asyncio.sleep(0.1)
    assert ended == 1
    assert await cache.user("t") == User("jane")
    assert asked == ["t", "t"]


async def test_a_failed_review_is_not_cached() -> None:
    asked: list[str] = []

    async def review(token: str) -> User | None:
        asked.append(token)
        raise OSError("down")

    cache = TokenCache(review, 10.0, b"s", LoopClock(), TokenCacheMetrics.register(Registry()))
    for _ in range(2):
        with pytest.raises(OSError, match="down"):
            await cache.user("t")
    assert len(asked) == 2


def test_invalid_settings_of_the_cluster_are_ignored() -> None:
    state, problems = from_config_map(
        AuthenticationConfig(),
        {"client-ca-file": "rubbish", "requestheader-username-headers": "x"},
        TrustState(),
    )
    assert state == TrustState()
    assert [problem.split(":")[0] for problem in problems] == ["client-ca-file", "requestheader headers"]


def test_lists_of_the_cluster_may_be_null() -> None:
    """Go writes a list that is not set as null, and reads that as empty."""
    data = {
        "requestheader-client-ca-file": sign(ROOT).pem.decode(),
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group",null]',
        "requestheader-allowed-names": "null",
    }
    state, problems = from_config_map(AuthenticationConfig(), data, TrustState())
    assert (state.headers, problems) == (ProxyHeaders(names=("X-Remote-User",), groups=("X-Remote-Group", "")), [])
    assert state.proxies is not None

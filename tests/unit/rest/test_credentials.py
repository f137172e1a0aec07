"""Headers that are renewed, and transports that use them."""

import asyncio

import pytest
from msgspec.structs import replace

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.credentials import FILE_PERIOD_S, Credential, Fixed, Renewing, from_file
from kcm_cli.rest.errors import CredentialsError
from kcm_cli.rest.transport import Request, Unreachable

GET = Request("GET", "/x")


class Tokens:
    """Returns t1, t2, … that are valid for a while; fails on request."""

    def __init__(self, lifetime_s=10.0, delay_s=0.0):
        self.given = 0
        self.failing = False
        self.lifetime_s = lifetime_s
        self.delay_s = delay_s

    async def __call__(self):
        await LoopClock().sleep(self.delay_s)
        if self.failing:
            raise CredentialsError("no token today")
        self.given += 1
        return Credential(f"t{self.given}", self.lifetime_s)


async def test_credentials_are_used_until_they_expire():
    renewing = Renewing(Tokens(), LoopClock())
    assert renewing.current() is None
    assert (await renewing.renew()).header == "t1"
    await asyncio.sleep(9.9)
    assert renewing.current().header == "t1"
    await asyncio.sleep(0.2)
    assert renewing.current() is None
    assert (await renewing.renew()).header == "t2"


async def test_concurrent_requests_cause_one_renewal():
    tokens = Tokens(delay_s=1.0)
    renewing = Renewing(tokens, LoopClock())
    assert set(await asyncio.gather(*(renewing.renew() for _ in range(20)))) == {Credential("t1")}


async def test_concurrent_requests_share_a_value_that_has_ended_already():
    """As of a plugin that returns what it keeps, or where this machine's clock is ahead."""
    tokens = Tokens(lifetime_s=-5.0, delay_s=1.0)
    renewing = Renewing(tokens, LoopClock())
    credentials = await asyncio.gather(*(renewing.renew() for _ in range(20)))
    assert {credential.header for credential in credentials} == {"t1"}
    assert (await renewing.renew()).header == "t2"


async def test_a_shared_value_that_was_rejected_meanwhile_is_renewed():
    tokens = Tokens(lifetime_s=-5.0, delay_s=1.0)

    async def source():
        credential = await tokens()
        asyncio.get_running_loop().call_soon(renewing.reject, credential)
        return credential

    renewing = Renewing(source, LoopClock())
    credentials = await asyncio.gather(renewing.renew(), renewing.renew())
    assert [credential.header for credential in credentials] == ["t1", "t2"]


async def test_concurrent_requests_share_a_failed_renewal():
    tokens = Tokens(delay_s=3.0)
    tokens.failing = True
    renewing = Renewing(tokens, LoopClock())
    outcomes = await asyncio.gather(*(renewing.renew() for _ in range(20)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {CredentialsError}
    assert LoopClock().monotonic() == 3.0
    tokens.failing = False
    assert (await renewing.renew()).header == "t1"


async def test_an_old_value_stays_in_use_when_renewing_fails():
    tokens = Tokens()
    renewing = Renewing(tokens, LoopClock())
    await renewing.renew()
    tokens.failing = True
    await asyncio.sleep(11)
    assert (await renewing.renew()).header == "t1"


async def test_concurrent_requests_share_a_failed_renewal_of_an_old_value():
    tokens = Tokens(delay_s=3.0)
    renewing = Renewing(tokens, LoopClock())
    await renewing.renew()
    tokens.failing = True
    await asyncio.sleep(11)
    started = LoopClock().monotonic()
    outcomes = await asyncio.gather(*(renewing.renew() for _ in range(20)))
    assert {outcome.header for outcome in outcomes} == {"t1"}
    assert LoopClock().monotonic() == started + 3.0
    tokens.failing = False
    assert (await renewing.renew()).header == "t2"


def test_a_header_is_not_shown():
    assert "secret" not in repr(Credential("Bearer secret"))


async def test_a_rejected_value_is_not_used_again():
    tokens = Tokens(lifetime_s=None)
    renewing = Renewing(tokens, LoopClock())
    await renewing.renew()
    renewing.reject(Credential("t1"))
    assert renewing.current().header == "t1"
    renewing.reject(renewing.current())
    assert renewing.current() is None
    tokens.failing = True
    with pytest.raises(CredentialsError):
        await renewing.renew()


async def test_a_token_file_is_read_again(tmp_path):
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = from_file(path, LoopClock())
    assert (await credentials.renew()).header == "Bearer one"
    path.write_text("two\n")
    assert credentials.current().header == "Bearer one"
    await asyncio.sleep(FILE_PERIOD_S)
    assert credentials.current() is None
    assert (await credentials.renew()).header == "Bearer two"


async def test_a_fixed_token_is_used_until_the_file_has_been_read(tmp_path):
    """The last token of the file takes precedence."""
    path = tmp_path / "token"
    credentials = from_file(path, LoopClock(), before="fixed")
    assert (await credentials.renew()).header == "Bearer fixed"
    path.write_text("one\n")
    await asyncio.sleep(FILE_PERIOD_S)
    assert (await credentials.renew()).header == "Bearer one"
    path.unlink()
    await asyncio.sleep(FILE_PERIOD_S)
    assert (await credentials.renew()).header == "Bearer one"


@pytest.mark.parametrize(("content", "text"), [(None, "No such file"), (b" \n", "is empty"), (b"\xff", "is not text")])
async def test_a_token_file_without_token_is_named(tmp_path, content, text):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CredentialsError, match=text) as raised:
        await from_file(path, LoopClock()).renew()
    assert str(path) in str(raised.value)


def only(token, answer, failure):
    """A server that accepts one token."""
    return lambda request: (
        answer(200, {}) if request.headers.get("authorization") == token else failure(401, "Unauthorized")
    )


async def test_a_request_carries_the_header(script, answer):
    transport = script(answer(200, {}))
    await Authorized(transport, Fixed("Bearer x")).send(GET)
    assert transport.asked[0].headers["authorization"] == "Bearer x"


async def test_a_request_with_a_credential_is_otherwise_the_same(script, answer):
    """Its last check before it is sent, too: a manager that was stopped for long must not write."""
    transport = script(answer(200, {}))
    whole = Request(
        "PUT",
        "/x",
        (("a", "b"),),
        {"x-y": "z"},
        b"{}",
        3.0,
        lambda: True,
        "Pod",
        "reason",
        "Job a/b",
        "a=b",
        "10.0.0.1",
    )
    await Authorized(transport, Fixed("Bearer x")).send(whole)
    assert transport.asked == [replace(whole, headers={"x-y": "z", "authorization": "Bearer x"})]
    assert all(getattr(whole, name) != getattr(Request("", ""), name) for name in Request.__struct_fields__)


async def test_no_credentials_no_header(script, answer):
    transport = script(answer(200, {}))
    await Authorized(transport, Fixed()).send(GET)
    assert transport.asked == [GET]


async def test_rejected_credentials_are_renewed_and_the_request_retried_once(script, answer, failure):
    transport = script(only("t2", answer, failure))
    authorized = Authorized(transport, Renewing(Tokens(lifetime_s=None), LoopClock()))
    response = await authorized.send(GET)
    assert response.status == 200
    assert len(transport.asked) == 2


@pytest.mark.parametrize("credentials", [Fixed("t1"), None], ids=["fixed", "renewing"])
async def test_the_response_is_final_without_other_credentials(script, answer, failure, credentials):
    transport = script(only("never", answer, failure))
    used = credentials or Renewing(Tokens(lifetime_s=None), LoopClock())
    assert (await Authorized(transport, used).send(GET)).status == 401
    assert len(transport.asked) == (1 if credentials else 2)


async def test_a_stream_is_reopened_with_renewed_credentials(script, answer, failure):
    transport = script(only("t2", answer, failure))
    async with Authorized(transport, Renewing(Tokens(lifetime_s=None), LoopClock())).stream(GET) as stream:
        assert stream.status == 200


async def test_a_failed_first_renewal_sends_no_request(script, answer):
    tokens = Tokens()
    tokens.failing = True
    transport = script(answer(200, {}))
    with pytest.raises(Unreachable, match="no token today"):
        await Authorized(transport, Renewing(tokens, LoopClock())).send(GET)
    assert transport.asked == []

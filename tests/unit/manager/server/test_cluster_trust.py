import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.auth_config import AuthenticationConfig
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.manager.server.cluster_trust import NAME, ClusterTrust
from kcm_cli.manager.server.trust import Trust, TrustState, from_files
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.runtime.loads import Loads
from tests.kit.faults import Answering, chunks, refusal
from tests.trust.cases import ROOT, sign

OLD = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


@dataclass
class ApiServer(Answering):
    """Has one ConfigMap, and forgot long ago what was when that was written. Its watches end after 5 minutes."""

    version: int = 4
    silent: bool = False
    refuses: str = ""
    data: dict[str, str] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def change(self) -> None:
        self.version += 1
        self.changed.set()

    async def send(self, request: Request) -> Response:
        self.asked["get"] += 1
        if self.refuses == "get":
            return refusal(403, "Forbidden")
        if self.refuses == "proxy":
            return Response(404, {}, b"404 page not found")
        if self.refuses == "gone":
            doc = {"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": NAME, "kind": "configmaps"}}
            return Response(404, {}, json.dumps(doc).encode())
        return Response(200, {}, json.dumps(self._doc()).encode())

    def _doc(self) -> dict[str, Any]:
        metadata = {"name": NAME, "namespace": "kube-system", "resourceVersion": str(self.version)}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.data}

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self.asked["watch"] += 1
        assert request.headers["user-agent"] == "t"
        if self.refuses == "watch":
            yield Stream(403, {}, chunks(refusal(403, "Forbidden").body))
            return
        yield Stream(200, {}, self._events(dict(request.query)))

    async def _events(self, query: dict[str, str]) -> AsyncIterator[bytes]:
        if "resourceVersion" in query:
            yield json.dumps(OLD).encode() + b"\n"
            return
        if self.refuses != "gone":
            line = json.dumps({"type": "ADDED", "object": self._doc()}).encode() + b"\n"
            yield line[:40]
            yield line[40:]
        if self.silent:
            await asyncio.Event().wait()
        try:
            async with asyncio.timeout(int(query["timeoutSeconds"])):
                await self.changed.wait()
        except TimeoutError:
            return
        self.changed.clear()
        change = "DELETED" if self.refuses == "gone" else "MODIFIED"
        yield json.dumps({"type": change, "object": self._doc()}).encode() + b"\n"


def following(change: Callable[[ApiServer], None], seconds: float, *, silent: bool = False) -> ApiServer:
    """What the server was asked, so many seconds after the change, which is after a minute."""

    async def main() -> ApiServer:
        api, clock = ApiServer(silent=silent), LoopClock()
        client = api.client(clock)
        trust = Trust(TrustState())
        follow = ClusterTrust(AuthenticationConfig(), client, trust, clock, random.Random(1), Loads(clock)).follow()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(follow)
            await clock.sleep(60)
            change(api)
            await clock.sleep(seconds)
            task.cancel()
        return api

    return virtual.run(main())


def test_unchanged_settings_are_requested_only_with_each_watch() -> None:
    api = following(lambda api: None, 3600)
    assert api.asked["watch"] in range(12, 15)
    assert api.asked["get"] <= api.asked["watch"]


def test_a_change_is_read_within_seconds_and_once() -> None:
    assert following(lambda api: None, 5).asked["get"] == 1
    assert following(ApiServer.change, 5).asked["get"] == 2


def test_a_watch_that_does_not_end_is_left() -> None:
    """As behind a proxy that lost the server."""
    api = following(ApiServer.change, 15 * 60, silent=True)
    assert (api.asked["watch"], api.asked["get"]) == (3, 3)


@pytest.mark.parametrize("what", ["get", "watch"])
def test_a_server_that_refuses_is_asked_once_in_a_while(what: str) -> None:
    def refuse(api: ApiServer) -> None:
        api.refuses = what
        api.change()

    assert following(refuse, 3600).asked["get"] in range(60, 130)


def test_settings_are_read_within_a_minute_after_an_outage() -> None:
    async def main() -> None:
        api, clock = ApiServer(refuses="get"), LoopClock()
        config, loads = AuthenticationConfig(tolerate_lookup_failure=True), Loads(clock)
        trust = ClusterTrust(config, api.client(clock), Trust(TrustState()), clock, random.Random(1), loads)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(trust.follow())
            await clock.sleep(3600)
            api.refuses = ""
            await clock.sleep(65)
            assert api.asked["watch"] == 1
            task.cancel()

    virtual.run(main())


@pytest.mark.parametrize("proxies_by_file", [False, True])
def test_what_a_deleted_configmap_vouched_for_is_trusted_until_then(proxies_by_file: bool, tmp_path: Path) -> None:
    """kubernetes#140130. A CA from a file stays; the ConfigMap counts again within seconds when it is there again."""
    file = tmp_path / "ca.crt"
    file.write_bytes(pem := sign(ROOT).pem)
    config = AuthenticationConfig(requestheader_client_ca_file=str(file) if proxies_by_file else "")
    data = {
        "client-ca-file": pem.decode(),
        "requestheader-client-ca-file": pem.decode(),
        "requestheader-username-headers": '["X-Remote-User"]',
    }

    async def main() -> None:
        api, clock = ApiServer(data=data), LoopClock()
        trust = Trust(from_files(config)[0])
        follow = ClusterTrust(config, api.client(clock), trust, clock, random.Random(1), Loads(clock)).follow()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(follow)
            await clock.sleep(60)
            whole = trust.state
            assert whole.clients is not None and whole.proxies is not None and whole.headers.names
            for unknown in ("get", "proxy"):
                api.refuses = unknown
                api.change()
                await clock.sleep(600)
                assert trust.state == whole  # it may be there
            api.refuses = "gone"
            await clock.sleep(120)
            assert trust.state.clients is None
            assert (trust.state.proxies is None, trust.state.headers == ProxyHeaders()) == (not proxies_by_file,) * 2
            asked = api.asked["get"]
            await clock.sleep(600)
            assert api.asked["get"] - asked in range(1, 5)
            api.refuses = ""
            api.change()
            await clock.sleep(5)
            assert trust.state == whole
            task.cancel()

    virtual.run(main())

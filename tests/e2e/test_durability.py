"""kill -9 in the middle of writes loses nothing acknowledged. KCM_KILLS says how often (``make kills``: 200 times)."""

import http.client
import json
import os
import random
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_sandbox_process import PLAIN, Sandbox
from tests.kit.processes import END_S, Processes, insecure, until

pytestmark = pytest.mark.e2e
KILLS = int(os.environ.get("KCM_KILLS", "5"))
WRITERS, NAMES, LEAST = 8, 6, 2
COLLECTION = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True)
class Kept:
    """What is stored of an object."""

    version: int
    value: str


@dataclass
class Writer:
    """Writes objects of its own until the server is gone, and remembers what was acknowledged.

    ``trying``: the write without an answer: (name, value), the value is empty for a deletion.
    """

    number: int
    rng: random.Random
    kept: dict[str, Kept] = field(default_factory=dict)
    newest: int = 0
    tried: int = 0
    writes: int = 0
    trying: tuple[str, str] | None = None

    def run(self, port: int) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=insecure(), timeout=30)
        try:
            while True:
                self._write(connection)
        except (OSError, http.client.HTTPException):
            connection.close()

    def _write(self, connection: http.client.HTTPSConnection) -> None:
        name = f"w{self.number}-{self.rng.randrange(NAMES)}"
        self.tried += 1
        known, value = self.kept.get(name), f"{self.number}.{self.tried}"
        body: Any = {"metadata": {"name": name}, "data": {"v": value}}
        if known is None:
            method, path = "POST", COLLECTION
        elif self.rng.random() < 0.3:
            method, path, value, body = "DELETE", f"{COLLECTION}/{name}", "", None
        else:
            method, path = self.rng.choice(["PUT", "PATCH"]), f"{COLLECTION}/{name}"
            body["metadata"]["resourceVersion"] = str(known.version)
        self.trying = (name, value)
        self._acknowledged(name, value, self._ask(connection, method, path, body))
        self.trying = None
        self.writes += 1

    def _ask(self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any) -> Any:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"authorization": "Bearer T", "content-type": kind}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), text
        return json.loads(text)

    def _acknowledged(self, name: str, value: str, answer: Any) -> None:
        if not value:
            del self.kept[name]
            return
        version = int(answer["metadata"]["resourceVersion"])
        assert version > self.newest, "a version that went back"
        self.newest = version
        self.kept[name] = Kept(version, value)

    def compare(self, found: dict[str, Kept]) -> None:
        """What is stored is what was acknowledged; the write without an answer happened, or it did not."""
        before = dict(self.kept)
        if self.trying is not None:
            name, value = self.trying
            now = found.get(name)
            happened = now is None if not value else now is not None and now.value == value
            if happened:
                assert now is None or now.version > self.newest
                before.pop(name, None)
                before |= {name: now} if now is not None else {}
        assert found == before
        self.kept, self.trying = before, None
        self.newest = max([self.newest, *(kept.version for kept in before.values())])


def test_a_kill_loses_no_acknowledged_write(tmp_path: Path) -> None:
    rng = random.Random(7)
    writers = [Writer(number, random.Random(number)) for number in range(WRITERS)]
    with Processes() as processes:
        for _ in range(KILLS):
            sandbox = Sandbox(processes, *PLAIN, "--data-dir", str(tmp_path / "data"))
            compare(sandbox, writers)
            write_until_killed(sandbox, writers, rng.uniform(0.05, 0.5))
        compare(Sandbox(processes, *PLAIN, "--data-dir", str(tmp_path / "data")), writers)
    total = sum(writer.writes for writer in writers)
    print(f"{KILLS} kills, {total} acknowledged writes")
    assert all(writer.writes for writer in writers)
    assert total > 20 * KILLS


def write_until_killed(sandbox: Sandbox, writers: list[Writer], after_s: float) -> None:
    """Kill it so long after each writer has had an answer: a busy machine takes a while to get there."""
    port = int(sandbox.url.rpartition(":")[2])
    before = {writer.number: writer.writes for writer in writers}
    with ThreadPoolExecutor(len(writers)) as pool:
        threads = [pool.submit(writer.run, port) for writer in writers]
        try:
            until(lambda: all(writer.writes > before[writer.number] + LEAST for writer in writers))
            wait(threads, after_s, return_when=FIRST_EXCEPTION)
        finally:
            sandbox.child.kill()
        for thread in threads:
            thread.result(END_S)
    sandbox.child.wait(END_S)


def compare(sandbox: Sandbox, writers: list[Writer]) -> None:
    listed = sandbox.ask("GET", COLLECTION)
    found = {
        item["metadata"]["name"]: Kept(int(item["metadata"]["resourceVersion"]), item["data"]["v"])
        for item in listed["items"]
    }
    for writer in writers:
        writer.compare({name: kept for name, kept in found.items() if name.startswith(f"w{writer.number}-")})
    assert int(listed["metadata"]["resourceVersion"]) >= max(writer.newest for writer in writers)

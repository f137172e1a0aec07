"""Requests that schemathesis makes of the sandbox's own OpenAPI documents, right and wrong ones.

KCM_FUZZ_EXAMPLES: so many for each operation of every document (``make fuzz``), not of a few.
"""

import json
import os
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.e2e import schemathesis_hooks
from tests.kit.places import ROOT
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.unit.sandbox.fuzz.objects import valid

pytestmark = pytest.mark.e2e
CUSTOM = "apis/example.com/v1"
EXAMPLES = os.environ.get("KCM_FUZZ_EXAMPLES", "")
FEW = ("apis/apps/v1", "apis/policy/v1", CUSTOM)
TOKEN = "T"
RUNS = """
import json, sys
from schemathesis.cli import schemathesis
for words in json.loads(sys.argv[1]):
    try:
        schemathesis(words)
    except SystemExit as ended:
        if ended.code:
            raise
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A sandbox with an object of every kind."""
    with Processes() as processes:
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        words = ("--port", str(port), "--token", TOKEN, "--nodes", "0", "--no-manager")
        processes.start(*KCM, "sandbox", *words)
        until(lambda: ask(f"{url}/readyz").status == 200)
        make = {"metadata": {"name": schemathesis_hooks.NAMESPACE}}
        assert ask(f"{url}/api/v1/namespaces", token=TOKEN, method="POST", body=make).status == 201
        for collection, doc in valid().items():
            create(url, collection, doc)
        until(lambda: ask(f"{url}/openapi/v3/{CUSTOM}", token=TOKEN).status == 200)
        create(url, f"{CUSTOM}/namespaces/{{namespace}}/fuzzed", {"apiVersion": "example.com/v1", "kind": "Fuzz"})
        yield url


def create(url: str, collection: str, doc: Any) -> None:
    """What is asked of others, and not kept, may be refused."""
    doc = json.loads(json.dumps(doc).replace("{namespace}", schemathesis_hooks.NAMESPACE))
    doc["metadata"] = {"name": schemathesis_hooks.NAME, **doc.get("metadata", {})}
    path = urllib.parse.quote(collection.replace("{namespace}", schemathesis_hooks.NAMESPACE))
    answer = ask(f"{url}/{path}", token=TOKEN, method="POST", body=doc)
    assert answer.status < 500, answer.text


def test_schemathesis_finds_no_failure(url: str) -> None:
    paths: dict[str, Any] = ask(f"{url}/openapi/v3", token=TOKEN).doc["paths"]
    documents = [path for path in paths if path.startswith("api")] if EXAMPLES else FEW
    run(url, sorted(documents, key=lambda path: CUSTOM.rpartition("/")[0] not in path))  # before it is deleted


def run(url: str, documents: Sequence[str]) -> None:
    """One document after the other, in one process: its start costs as much as a document."""
    words = ["--tls-verify=false", f"--header=Authorization: Bearer {TOKEN}"]
    words += [
        "--checks=answers_as_upstream",
        "--exclude-path-regex=/watch/",
        "--request-timeout=20",
        "--phases=fuzzing",
        "--suppress-health-check=too_slow",  # a busy machine is no failure
    ]
    words += [f"--max-examples={EXAMPLES or 2}", "--mode=all", "--seed=1", "--no-shrink", "--generation-database=none"]
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.e2e.schemathesis_hooks"}
    runs = [["run", f"{url}/openapi/v3/{document}", *words] for document in documents]
    command = [sys.executable, "-c", RUNS, json.dumps(runs)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    assert done.stdout.count("API Operations:") == len(documents), done.stdout[-8000:]
    print(done.stdout[-400:])

"""A server on virtual time that gets unusual requests, and records its failures."""

import asyncio
import json
import logging
import random
from typing import Any

import yaml

from kcm_cli.api.protobuf.decoding import to_json
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.virtual import VirtualLoop
from kcm_cli.machinery.envelope import MAGIC
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.embedded import ADMIN, EmbeddedServer
from tests.unit.sandbox.fuzz.objects import Tree, filled, valid
from tests.unit.sandbox.fuzz.upstream import FAILURES

JSON = "application/json"
Pairs = tuple[tuple[str, str], ...]
_DEFINITIONS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Failed(Exception):
    """An invalid response."""


class Cluster(logging.Handler):
    """See the module. Requests are numbered, so that no name is used twice."""

    def __init__(self, certificates: Certificates) -> None:
        super().__init__(logging.ERROR)
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.server = EmbeddedServer(LoopClock(), random.Random(7), certificates)
        self.valid = valid()
        self.options = {"gracePeriodSeconds": 0, "dryRun": ["All"], "preconditions": {"uid": "u"}}
        self.errors: list[logging.LogRecord] = []
        self._count = 0
        self._runner.run(self.server.start())
        logging.getLogger("kcm_cli").addHandler(self)
        self.namespace = "fuzz"
        self.make("api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.make(self.place("api/v1/namespaces/{namespace}/serviceaccounts"), {"metadata": {"name": "default"}})
        definition = json.dumps(self.valid[_DEFINITIONS]).replace("example.com", "base.example.com")
        self.make(_DEFINITIONS, json.loads(definition))
        self._runner.run(asyncio.sleep(10))
        self.filled = self._fill()

    def close(self) -> None:
        logging.getLogger("kcm_cli").removeHandler(self)
        self._runner.close()
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record)

    def place(self, collection: str) -> str:
        return collection.replace("{namespace}", self.namespace)

    def name(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def send(
        self, method: str, path: str, body: bytes = b"", query: Pairs = (), *, authorized: bool = True, **headers: str
    ) -> Response:
        """The response, after checks. Raises Failed."""
        named = {"content-type": JSON} | {key.replace("_", "-"): value for key, value in headers.items()}
        request = Request(method, f"/{path}", query, named, body)
        transport = InProcessTransport(self.server.api, ADMIN if authorized else None)
        answer = self._runner.run(transport.send(request))
        self._look_at(request, answer)
        return answer

    def make(self, collection: str, doc: Tree) -> str:
        """Create an object; returns its name. Raises Failed if that fails."""
        doc = self.named(doc)
        answer = self.send("POST", self.place(collection), json.dumps(doc).encode())
        assert answer.status == 201, answer.body
        return str(doc["metadata"]["name"])

    def named(self, doc: Tree) -> Tree:
        """The same with a unique name, if it has none."""
        doc = json.loads(json.dumps(doc).replace("{namespace}", self.namespace))
        doc["metadata"] = {"name": self.name(), **doc.get("metadata", {})}
        return doc

    def _look_at(self, request: Request, answer: Response) -> None:
        sent = f"{request.method} {request.path} {request.query} {request.headers} {request.body[:4000]!r}"
        if self.errors:
            record = self.errors.pop()
            self.errors.clear()
            raise Failed(f"{record.getMessage()}: {sent}") from (record.exc_info or (None, None, None))[1]
        if answer.status == 500 and not _message(answer).startswith(FAILURES):
            raise Failed(f"{answer.body[:400]!r} to {sent}")
        if answer.body and answer.headers.get("content-type", "").startswith(JSON):
            events = answer.body.startswith(b'{"type":')
            for document in answer.body.splitlines() if events else [answer.body]:
                _parse(document, sent)

    def _fill(self) -> dict[str, Tree]:
        paths = json.loads(self.send("GET", "openapi/v3").body)["paths"]
        found: dict[str, Tree] = {}
        for path in paths:
            document = json.loads(self.send("GET", f"openapi/v3/{path}").body)
            schemas = document.get("components", {}).get("schemas", {})
            for collection in self.valid:
                body = document["paths"].get(f"/{collection}", {}).get("post", {}).get("requestBody")
                if body is not None:
                    schema: dict[str, Any] = next(iter(body["content"].values()))["schema"]
                    found[collection] = filled(schemas, schema["$ref"].rpartition("/")[2])
        return found


def _message(answer: Response) -> str:
    if answer.headers.get("content-type", "").startswith("text/plain"):  # the path cannot be read
        return answer.body.decode()
    body = to_json(answer.body) if answer.body.startswith(MAGIC) else answer.body
    return str(yaml.safe_load(body)["message"])  # JSON is YAML


def _parse(document: bytes, sent: str) -> None:
    try:
        json.loads(document)
    except ValueError as error:
        raise Failed(f"an answer that is no JSON: {document[:400]!r} to {sent}") from error

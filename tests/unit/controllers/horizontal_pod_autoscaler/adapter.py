"""A metrics adapter in front of the sandbox's API server: custom and external metrics."""

import json
from typing import Any
from urllib.parse import unquote

from kcm_cli.rest.transport import Around, Request, Response, Transport

_JSON = {"content-type": "application/json"}
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"


class Adapter(Around):
    """A transport that serves the groups named in ``versions``. ``values`` are by the path below the version."""

    def __init__(self, inner: Transport, **versions: list[str]) -> None:
        super().__init__(inner)
        self.versions = {f"{group}.metrics.k8s.io": names for group, names in versions.items()}
        self.values: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    def pods(self, metric: str, **values: str) -> None:
        """The value of each pod."""
        items = [{"describedObject": {"kind": "Pod", "name": name}, "value": value} for name, value in values.items()]
        self.values[f"namespaces/default/pods/*/{metric}"] = items

    def value(self, path: str, *values: str) -> None:
        self.values[path] = [{"value": value} for value in values]

    async def send(self, request: Request) -> Response:
        if request.path == "/apis":
            return self._with_groups(await self._inner.send(request))
        group, _, rest = request.path.removeprefix("/apis/").partition("/")
        if group not in self.versions:
            return await self._inner.send(request)
        version, _, path = rest.partition("/")
        assert version in self.versions[group], request.path
        self.asked.append((f"{version}/{unquote(path)}", dict(request.query)))
        items = self.values.get(unquote(path))
        if items is None:
            status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "no such metric"}
            return Response(404, _JSON, json.dumps({**status, "code": 404}).encode())
        return Response(200, _JSON, json.dumps({"kind": "MetricValueList", "items": items}).encode())

    def _with_groups(self, answer: Response) -> Response:
        doc = json.loads(answer.body)
        assert doc["kind"] == "APIGroupDiscoveryList"
        doc["items"] += [
            {"metadata": {"name": group}, "versions": [{"version": name, "resources": []} for name in names]}
            for group, names in self.versions.items()
        ]
        return Response(answer.status, answer.headers, json.dumps(doc).encode())

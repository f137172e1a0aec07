"""Serves nonResourceURLs: discovery, version, health, flags, the list of paths.

Documents are encoded once and cached until the catalog changes.
"""

import hashlib
import random
from collections.abc import Callable, Mapping

from kcm_cli.component import zpages
from kcm_cli.component.clock import Clock
from kcm_cli.component.version import BINARY, GIT_VERSION, EffectiveVersion
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.discovery import documents, health
from kcm_cli.sandbox.apiserver.errors import NotAcceptable, method_not_allowed, no_such_path
from kcm_cli.sandbox.apiserver.registry import negotiation
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.registry.media import as_yaml
from kcm_cli.sandbox.apiserver.registry.responses import JSON_HEADERS, indented, text_response
from kcm_cli.sandbox.apiserver.routing.routes import PLAIN_404, UNAVAILABLE

_AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_OWN_GROUP = "apiregistration.k8s.io"
"""The group of kube-aggregator, which has a router for it. Its handler serves the other groups without a router."""
_COMPONENT = "apiserver"
_FOLDERS = ("/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
"""The debugging paths in /statusz."""
_PREVIOUS = BINARY.previous()

VERSION: Doc = {
    "major": str(BINARY.major),
    "minor": str(BINARY.minor),
    "emulationMajor": str(BINARY.major),
    "emulationMinor": str(BINARY.minor),
    "minCompatibilityMajor": str(_PREVIOUS.major),
    "minCompatibilityMinor": str(_PREVIOUS.minor),
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}


class Discovery:
    """See the module."""

    def __init__(self, catalog: Catalog, clock: Clock, flags: Mapping[str, str], version: str) -> None:
        self._catalog = catalog
        self._version: Doc = {**VERSION, "gitVersion": version}
        self._pages = {
            "/flagz": zpages.flagz(_COMPONENT, flags, random.Random(0)),
            "/statusz": zpages.statusz(_COMPONENT, clock.now(), clock.now, EffectiveVersion(), lambda: _FOLDERS),
        }
        self._kept: dict[str, bytes] = {}
        self._tags: dict[str, str] = {}
        """The etags of some of them."""
        catalog.changed += [self._kept.clear, self._tags.clear]

    def answer(self, request: Request) -> Response:
        """The response to a request. Raises ApiError 404, 405, 406."""
        page = self._pages.get(request.path)
        return self._other(request) if page is None else self._page(request, page)

    def _other(self, request: Request) -> Response:
        parts = request.path.strip("/").split("/")
        if request.path.startswith("//"):
            return text_response(404, PLAIN_404)
        match parts:
            case [probe, *check] if probe in health.CHECKS:
                return health.answer(request, probe, "/".join(check))
            case [""] | ["index.html"]:
                return indented(self._kept_json("/", lambda: {"paths": documents.root_paths(self._catalog)}))
            case ["apis"]:
                aggregated = self._aggregated(request) if request.path == "/apis" else None
                return aggregated or self._document(request, lambda: documents.group_list(self._catalog))
            case ["apis", group]:
                if group == _OWN_GROUP:
                    check_route(request)
                return self._found(request, lambda: documents.group(self._catalog, group))
            case ["version"]:
                check_route(request, negotiation.JSON)
                return indented(self._kept_json("/version", lambda: self._version))
            case ["api"] if request.path in ("/api", "/api/"):
                check_route(request)
                return self._aggregated(request) or self._document(request, lambda: _core_versions(request))
            case ["api", version] if "//" not in request.path:
                return self._listed(request, "", version)
            case ["apis", group, version] if group and self._catalog.knows(group, version):
                return self._listed(request, group, version)
        if parts[0] == "api":
            raise no_such_path()
        return text_response(404, PLAIN_404)

    def _page(self, request: Request, page: zpages.Page) -> Response:
        answer = page.answer(request.headers.get("accept", ""))
        if answer is None:
            raise NotAcceptable(zpages.ACCEPTED)
        if answer.document is None:
            return Response(200, answer.headers, answer.text.encode())
        response = Response(200, JSON_HEADERS, codec.encode(answer.document) + b"\n")
        if answer.media_type == negotiation.YAML:
            response = as_yaml(response)
        elif negotiation.wants_indented(request.headers, dict(request.query).get("pretty", "")):
            response = indented(response)
        return Response(200, answer.headers, response.body)

    def _listed(self, request: Request, group: str, version: str) -> Response:
        if self._catalog.is_remote(group, version):
            return text_response(503, UNAVAILABLE)
        custom = self._catalog.is_custom(group)
        if not self._catalog.has_version(group, version):
            if custom:
                return text_response(404, PLAIN_404)
            raise no_such_path()
        if not custom:  # custom groups have no router
            check_route(request)
        return self._found(request, lambda: documents.resource_list(self._catalog, group, version))

    def _found(self, request: Request, make: Callable[[], Doc | None]) -> Response:
        document = make() if request.path not in self._kept else {}
        if document is None:
            return text_response(404, PLAIN_404)
        return self._document(request, lambda: document or {})

    def _document(self, request: Request, make: Callable[[], Doc]) -> Response:
        form = negotiation.negotiate(request.headers.get("accept", ""), transforms=frozenset())
        if form is None:
            raise negotiation.refused()
        return negotiation.shaped(self._kept_json(request.path, make), form)

    def _kept_json(self, key: str, make: Callable[[], Doc]) -> Response:
        body = self._kept.get(key)
        if body is None:
            body = self._kept[key] = codec.encode(make()) + b"\n"
        return Response(200, JSON_HEADERS, body)

    def _aggregated(self, request: Request) -> Response | None:
        """Aggregated discovery; None if the client does not accept it."""
        media = _aggregated_media(request.headers.get("accept", ""))
        if not media:
            return None
        core = request.path.startswith("/api/") or request.path == "/api"
        key = f"aggregated {core}"
        body = self._kept_json(key, lambda: documents.aggregated(self._catalog, core=core)).body
        tag = self._tags.get(key)
        if tag is None:
            tag = self._tags[key] = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        wanted = f"{media};{_AGGREGATED}"
        headers = {"content-type": wanted, "etag": tag, "vary": "Accept", "cache-control": "public"}
        if request.headers.get("if-none-match") == tag:
            return Response(304, headers, b"")
        response = Response(200, headers, body)
        if media == negotiation.YAML:
            return Response(200, headers, as_yaml(response).body)
        return response if media == negotiation.JSON else negotiation.as_protobuf(response, wanted)


def check_route(request: Request, produced: str = negotiation.BUILTIN_TYPES) -> None:
    """Check a request for a read-only path as the router does. Raises ApiError 405, 406."""
    if request.method != "GET":
        raise method_not_allowed()
    negotiation.check_produced(request.headers.get("accept", ""), produced)


def _aggregated_media(header: str) -> str:
    """The media type for aggregated discovery, preferably not protobuf; empty if the client does not accept it."""
    found = ""
    for clause in negotiation.clauses(header):
        asked = (clause.param("g"), clause.param("v"), clause.param("as"))
        if asked != ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
            continue
        for media in (negotiation.JSON, negotiation.YAML):
            if clause.accepts(media):
                return media
        if clause.media == negotiation.PROTOBUF:
            found = negotiation.PROTOBUF
    return found


def _core_versions(request: Request) -> Doc:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}

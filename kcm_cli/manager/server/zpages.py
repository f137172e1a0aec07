"""/flagz and /statusz: text for people, and structured forms by content negotiation.

upstream: staging/src/k8s.io/apiserver/pkg/server/flagz, statusz
"""

import platform
import random
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.component.version import BINARY, EffectiveVersion
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.manager.server import responses
from kcm_cli.manager.server.mux import Handler

COMPONENT = "kube-controller-manager"
GROUP = "config.k8s.io"
_STRUCTURED = ("application/json", "application/yaml")
_TEXT = "text/plain"
_VERSIONS = ("v1beta1", "v1alpha1")
_DELIMITERS = (":", ": ", "=", " ")
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


class Form(msgspec.Struct, frozen=True):
    """What a client wants: text (no version), or the structured kind in a version."""

    media_type: str
    version: str = ""


def negotiate(accept: str, kind: str) -> Form | None:
    """The first form that the client accepts and that exists, by its order of preference."""
    if not accept.strip():
        return Form(_TEXT)
    clauses = [_clause(clause) for clause in accept.split(",") if clause.strip()]
    for media_type, parameters, _ in sorted(clauses, key=lambda clause: -clause[2]):
        asked = {name: parameters[name] for name in ("g", "v", "as") if name in parameters}
        if not asked and media_type in (_TEXT, "text/*", "*/*"):
            return Form(_TEXT)
        known = asked.get("g") == GROUP and asked.get("as") == kind and asked.get("v") in _VERSIONS
        chosen = next((one for one in _STRUCTURED if media_type in (one, "application/*", "*/*")), None)
        if known and chosen is not None:
            return Form(chosen, asked["v"])
    return None


def flagz(flags: Mapping[str, str], rng: random.Random) -> Handler:
    """The handler of /flagz. The text is made once, with one delimiter, so that no client parses it."""
    delimiter = rng.choice(_DELIMITERS)
    lines = "".join(f"{name}{delimiter}{flags[name]}\n" for name in sorted(flags))
    text = f"\n{COMPONENT} flagz\n{_WARNING}\n{lines}"

    async def handle(request: Request) -> Response:
        return _answer(request, "Flagz", lambda: text, lambda: {"flags": dict(sorted(flags.items()))})

    return handle


def statusz(
    started: datetime, now: Callable[[], datetime], version: EffectiveVersion, paths: Callable[[], tuple[str, ...]]
) -> Handler:
    """The handler of /statusz. The delimiter changes with each answer, so that no client parses it."""
    rng = random.Random(started.timestamp())

    def facts() -> Doc:
        return {
            "startTime": format_time(started),
            "uptimeSeconds": max(0, int((now() - started).total_seconds())),
            "goVersion": f"python{platform.python_version()}",
            "binaryVersion": f"{BINARY}.0",
            "emulationVersion": str(version.emulation),
            "paths": list(paths()),
        }

    def text() -> str:
        delimiter, values = rng.choice(_DELIMITERS), facts()
        up = max(0, int((now() - started).total_seconds()))
        rows = (
            ("Started", f"{started:%a %b} {started.day:2d} {started:%H:%M:%S} UTC {started:%Y}"),
            ("Up", f"{up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec"),
            ("Go version", values["goVersion"]),
            ("Binary version", values["binaryVersion"]),
            ("Emulation version", values["emulationVersion"]),
            ("Paths", " ".join(paths())),
        )
        lines = "".join(f"{name}{delimiter} {value}\n" for name, value in rows)
        return f"\n{COMPONENT} statusz\n{_WARNING}\n\n{lines}"

    async def handle(request: Request) -> Response:
        return _answer(request, "Statusz", text, facts)

    return handle


def _answer(request: Request, kind: str, text: Callable[[], str], fields: Callable[[], Doc]) -> Response:
    form = negotiate(request.headers.get("accept", ""), kind)
    if form is None:
        accepted = ", ".join((*_STRUCTURED, _TEXT))
        message = f"only the following media types are accepted: {accepted}"
        return responses.document(request, responses.status_doc(406, "NotAcceptable", message), 406)
    if not form.version:
        return responses.text(text())
    head: Doc = {"kind": kind, "apiVersion": f"{GROUP}/{form.version}", "metadata": {"name": COMPONENT}}
    response = responses.document(request, {**head, **fields()}, media_type=form.media_type)
    response.headers["content-type"] = f"{form.media_type};g={GROUP};v={form.version};as={kind}"
    if form.version == "v1alpha1":
        page = kind.lower()
        response.headers["warning"] = (
            f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
        )
    return response


def folders(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The first parts of the paths, each once, sorted."""
    return tuple(sorted({f"/{path.split('/')[1]}" for path in paths if path.count("/") and path != "/"}))


def _clause(clause: str) -> tuple[str, dict[str, str], float]:
    media_type, *rest = (part.strip() for part in clause.split(";"))
    pairs = (part.partition("=") for part in rest)
    parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return media_type.lower(), parameters, quality

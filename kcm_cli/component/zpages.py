"""/flagz and /statusz: text for people, and structured forms by content negotiation.

upstream: staging/src/k8s.io/apiserver/pkg/server/flagz, statusz
"""

import platform
import random
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from kcm_cli.component.version import RELEASE, EffectiveVersion
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time

MAX_ACCEPT = 4096
"""The characters of an Accept header that are read."""
GROUP = "config.k8s.io"
_STRUCTURED = ("application/json", "application/yaml")
_TEXT = "text/plain"
_VERSIONS = ("v1beta1", "v1alpha1")
ACCEPTED = ", ".join((*_STRUCTURED, _TEXT))
REFUSED = f"only the following media types are accepted: {ACCEPTED}"
"""The message of a 406: the client accepts none of the media types that a page has."""
_DELIMITERS = (":", ": ", "=", " ")
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


class Form(msgspec.Struct, frozen=True):
    """A form of a page: text (no version), or the structured kind in a version."""

    media_type: str
    version: str = ""


def negotiate(accept: str, kind: str) -> Form | None:
    """The first form that the client accepts and that exists, by its order of preference."""
    if not accept.strip():
        return Form(_TEXT)
    clauses = [_clause(clause) for clause in accept[:MAX_ACCEPT].split(",") if clause.strip()]
    for media_type, parameters, _ in sorted(clauses, key=lambda clause: -clause[2]):
        asked = {name: parameters[name] for name in ("g", "v", "as") if name in parameters}
        if not asked and media_type in (_TEXT, "text/*", "*/*"):
            return Form(_TEXT)
        known = asked.get("g") == GROUP and asked.get("as") == kind and asked.get("v") in _VERSIONS
        chosen = next((one for one in _STRUCTURED if media_type in (one, "application/*", "*/*")), None)
        if known and chosen is not None:
            return Form(chosen, asked["v"])
    return None


class Answer(msgspec.Struct, frozen=True):
    """The answer of a page: a document in a media type, or text. ``headers``: those besides the length."""

    headers: Mapping[str, str]
    text: str = ""
    document: Doc | None = None
    media_type: str = _TEXT


class Page:
    """One of the two pages of a component."""

    def __init__(self, component: str, kind: str, text: Callable[[], str], fields: Callable[[], Doc]) -> None:
        self._component = component
        self._kind = kind
        self._text = text
        self._fields = fields

    def answer(self, accept: str) -> Answer | None:
        """The page in an accepted form, or None where there is none."""
        form = negotiate(accept, self._kind)
        if form is None:
            return None
        if not form.version:
            return Answer({"content-type": "text/plain; charset=utf-8"}, self._text())
        headers = {"content-type": f"{form.media_type};g={GROUP};v={form.version};as={self._kind}"}
        if form.version == "v1alpha1":
            page = self._kind.lower()
            text = f"This version of the {page} endpoint is deprecated. Please use a newer version."
            headers["warning"] = f'299 - "{text}"'
        head: Doc = {"kind": self._kind, "apiVersion": f"{GROUP}/{form.version}", "metadata": {"name": self._component}}
        return Answer(headers, document={**head, **self._fields()}, media_type=form.media_type)


def flagz(component: str, flags: Mapping[str, str], rng: random.Random) -> Page:
    """/flagz. The text is made once, with one delimiter, so that no client parses it."""
    delimiter = rng.choice(_DELIMITERS)
    lines = "".join(f"{name}{delimiter}{flags[name]}\n" for name in sorted(flags))
    text = f"\n{component} flagz\n{_WARNING}\n{lines}"
    return Page(component, "Flagz", lambda: text, lambda: {"flags": dict(sorted(flags.items()))})


def statusz(
    component: str,
    started: datetime,
    now: Callable[[], datetime],
    version: EffectiveVersion,
    paths: Callable[[], tuple[str, ...]],
) -> Page:
    """/statusz. The delimiter changes with each answer, so that no client parses it."""
    rng = random.Random(started.timestamp())

    def facts() -> Doc:
        return {
            "startTime": format_time(started),
            "uptimeSeconds": max(0, int((now() - started).total_seconds())),
            "goVersion": f"python{platform.python_version()}",
            "binaryVersion": RELEASE,
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
        return f"\n{component} statusz\n{_WARNING}\n\n{lines}"

    return Page(component, "Statusz", text, facts)


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

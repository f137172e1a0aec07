"""The manager's handlers: health, configuration, metrics, verbosity, and the controllers' debug pages.

upstream: staging/src/k8s.io/controller-manager/app/serve.go, component-base/configz,
apiserver/pkg/server/routes/flags.go
"""

import gzip
import logging
import re
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.component.health import HealthChecks, SliMetrics
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.exposition import CONTENT_TYPE
from kcm_cli.component.zpages import MAX_ACCEPT, REFUSED, Page
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.manager.server import responses
from kcm_cli.manager.server.mux import Handler

log = logging.getLogger(__name__)
_MOST_VERBOSE = 2**31 - 1
_DIGITS = len(str(_MOST_VERBOSE))

_GZIP_LEVEL = 1
"""A sixth of the size within a millisecond."""

Debug = Callable[[str, str, Mapping[str, str]], Awaitable[tuple[str, bytes] | None]]
"""Answers (controller, path, query) with a content type and a body, or None if the controller has no such path.
Values of a repeated query parameter come joined by commas.
Raises KeyError for a controller that shows nothing, TimeoutError while the controllers are too busy."""


def health(checks: HealthChecks) -> Handler:
    """The handler of /healthz."""

    async def handle(request: Request) -> Response:
        report = checks.evaluate(frozenset(request.query_params.getlist("exclude")))
        body = report.text(verbose="verbose" in request.query_params)
        return responses.text(body, 200 if report.healthy else 500, sniff=False)

    return handle


def configz(document: Doc) -> Handler:
    """The handler of /configz, with a constant body."""
    body = codec.encode(document)

    async def handle(request: Request) -> Response:
        return Response(body, 200, {"content-type": "application/json", "x-content-type-options": "nosniff"})

    return handle


def page(shown: Page) -> Handler:
    """The handler of /flagz or /statusz."""

    async def handle(request: Request) -> Response:
        answer = shown.answer(request.headers.get("accept", ""))
        if answer is None:
            return responses.document(request, responses.status_doc(406, "NotAcceptable", REFUSED), 406)
        if answer.document is None:
            return responses.text(answer.text)
        response = responses.document(request, answer.document, media_type=answer.media_type)
        response.headers.update(answer.headers)
        return response

    return handle


def metrics(registry: Registry, start_time_s: float) -> Handler:
    """The handler of /metrics. ``start_time_s``: when the process started, Unix time."""
    headers = {"content-type": CONTENT_TYPE, "process-start-time-unix": str(int(start_time_s))}

    async def handle(request: Request) -> Response:
        body = registry.expose()
        if not accepts_gzip(request.headers.get("accept-encoding", "")):
            return Response(body, 200, headers)
        return Response(gzip.compress(body, _GZIP_LEVEL, mtime=0), 200, {**headers, "content-encoding": "gzip"})

    return handle


def accepts_gzip(accepted: str) -> bool:
    """Whether a client accepts gzip, by its Accept-Encoding, which is read up to ``MAX_ACCEPT``."""
    for clause in accepted[:MAX_ACCEPT].split(","):
        coding, *parameters = (part.strip().lower().replace(" ", "") for part in clause.split(";"))
        if coding == "gzip":
            return not any(re.fullmatch(r"q=0(\.0*)?", parameter) for parameter in parameters)
    return False


def slis(registry: Registry, families: SliMetrics, start_time_s: float) -> Handler:
    """The handler of /metrics/slis. DELETE resets the metrics."""
    show = metrics(registry, start_time_s)

    async def handle(request: Request) -> Response:
        if request.method != "DELETE":
            return await show(request)
        families.reset()
        return responses.text("metrics reset\n")

    return handle


async def flag_index(request: Request) -> Response:
    """The handler of /debug/flags, which lists the flags that can be changed."""
    page = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n"
    page += "<table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n"
    return Response(page, 200, {"content-type": "text/html; charset=utf-8"})


def verbosity(set_verbosity: Callable[[int], None]) -> Handler:
    """The handler of /debug/flags/v. PUT with a number sets the verbosity of the log."""

    def answer(body: str, status: int) -> Response:
        response = responses.text(f"{body}\n", status, sniff=False)
        response.headers["content-type"] = "text/plain"
        return response

    async def handle(request: Request) -> Response:
        if request.method != "PUT":
            return answer("unsupported http method", 406)
        text = (await request.body()).decode(errors="replace")
        if not (text.isascii() and text.isdigit()):
            return answer(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax", 400)
        digits = text.lstrip("0") or "0"
        if len(digits) > _DIGITS or int(digits) > _MOST_VERBOSE:
            return answer(f"strconv.ParseUint: parsing {quote(text)}: value out of range", 400)
        level = int(digits)
        set_verbosity(level)
        log.info("Verbosity changed", extra={"fields": {"v": level}})
        return answer(f"successfully set klog.logging.verbosity to {text}", 200)

    return handle


def controllers(debug: Debug) -> Handler:
    """The handler of everything below /debug/controllers/."""

    async def handle(request: Request) -> Response:
        rest = responses.path_of(request).removeprefix("/debug/controllers/")
        name, _, path = rest.partition("/")
        try:
            answer = await debug(name, path, _joined(request))
        except KeyError:
            return responses.not_found()
        except TimeoutError:
            return responses.error("the controllers are busy", 503)
        if answer is None:
            return responses.error("", 404)
        media_type, body = answer
        return Response(body, 200, {"content-type": media_type, "x-content-type-options": "nosniff"})

    return handle


def _joined(request: Request) -> dict[str, str]:
    query = request.query_params
    return {key: ",".join(query.getlist(key)) for key in query}

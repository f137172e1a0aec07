"""/debug/pprof/ for a Python process: the names and formats of Go's profiles, filled with what Python can tell.

goroutine: the stacks of all threads and asyncio tasks. threadcreate: the stacks of all threads. profile and trace: all
threads sampled every 10 ms (wall time, so waiting shows too). heap, allocs: allocation sites where the process runs
with PYTHONTRACEMALLOC, else the resident memory as one number. block, mutex: always empty, Python keeps no such
record. Without ``debug`` each is a gzipped pprof profile, with ``debug=1`` text.

Source: Go's net/http/pprof for paths, parameters and answers
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.manager.server import responses
from kcm_cli.manager.server.mux import Mux
from kcm_cli.manager.server.profile_proto import Frame, Stack, as_text, encode_profile
from kcm_cli.manager.server.responses import first
from kcm_cli.manager.server.stack_frames import task_stack, thread_stacks

_PERIOD_S = 0.01
_LONGEST_S = 600.0
_SITES = 1000
ABOUT = {
    "allocs": "Memory by allocation site, with PYTHONTRACEMALLOC; else the resident memory.",
    "block": "Empty: Python keeps no record of waiting.",
    "goroutine": "Stacks of all threads and asyncio tasks.",
    "heap": "The same as allocs.",
    "mutex": "Empty: Python keeps no record of contended locks.",
    "profile": "All threads sampled every 10 ms for the given seconds.",
    "threadcreate": "Stacks of all threads.",
    "trace": "The same as profile, for one second where none are given.",
}


class Profiling:
    """The handlers. ``loops``: the event loops whose tasks are shown. ``resident``: the resident memory in bytes."""

    def __init__(
        self, loops: Callable[[], tuple[asyncio.AbstractEventLoop, ...]], resident: Callable[[], float]
    ) -> None:
        self._loops = loops
        self._resident = resident

    def install(self, mux: Mux) -> None:
        """Serve /debug/pprof."""
        mux.handle("/debug/pprof", self._redirect, listed=False)
        mux.handle_prefix("/debug/pprof/", self._profile)

    async def _redirect(self, request: Request) -> Response:
        place = {"location": "/debug/pprof/"}
        if request.method not in ("GET", "HEAD"):
            return Response(status_code=302, headers=place)
        body = b'<a href="/debug/pprof/">Found</a>.\n\n'
        return Response(body, 302, {**place, "content-type": "text/html; charset=utf-8"})

    async def _profile(self, request: Request) -> Response:
        name = responses.path_of(request).removeprefix("/debug/pprof/")
        match name:
            case "":
                return _index()
            case "symbol":
                return responses.text("num_symbols: 1\n")
            case "profile" | "trace":
                return await self._sampled(request, name, 30.0 if name == "profile" else 1.0)
            case "goroutine" | "threadcreate" | "heap" | "allocs" | "block" | "mutex":
                samples, unit = self._taken(name)
                return _answer(request, name, samples, unit)
            case _:
                unknown = responses.error("Unknown profile", 404)
                unknown.headers["x-go-pprof"] = "1"
                return unknown

    def _taken(self, name: str) -> tuple[Counter[Stack], tuple[str, str]]:
        if name == "goroutine":
            tasks = (task for loop in self._loops() for task in asyncio.all_tasks(loop))
            stacks = [*thread_stacks(), *(task_stack(task) for task in tasks)]
            return Counter(stack for stack in stacks if stack), ("goroutine", "count")
        if name == "threadcreate":
            return Counter(thread_stacks()), ("threadcreate", "count")
        if name in ("heap", "allocs"):
            return self._memory(), ("inuse_space", "bytes")
        return Counter(), ("contentions", "count")

    def _memory(self) -> Counter[Stack]:
        # imported here: only these profiles need it
        import tracemalloc

        if not tracemalloc.is_tracing():
            return Counter({(Frame("resident memory of the process", "process", 0),): int(self._resident())})
        found: Counter[Stack] = Counter()
        for statistic in tracemalloc.take_snapshot().statistics("lineno")[:_SITES]:
            place = statistic.traceback[0]
            found[(Frame(f"{place.filename}:{place.lineno}", place.filename, place.lineno),)] += statistic.size
        return found

    async def _sampled(self, request: Request, name: str, default_s: float) -> Response:
        seconds = _seconds(request, default_s)
        if seconds is None:
            return responses.error("seconds must be a positive number", 400)
        samples: Counter[Stack] = Counter()
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        own = threading.get_ident()
        while loop.time() < end:
            samples.update(thread_stacks(but=own))
            await asyncio.sleep(_PERIOD_S)
        if first(request, "debug"):
            return responses.text(as_text(samples, name))
        body = encode_profile(
            samples, ("samples", "count"), period_ns=int(_PERIOD_S * 1e9), duration_ns=int(seconds * 1e9)
        )
        return _download(body, name)


def _answer(request: Request, name: str, samples: Counter[Stack], unit: tuple[str, str]) -> Response:
    if first(request, "debug") not in ("", "0"):
        return responses.text(f"{as_text(samples, name)}\n# {ABOUT[name]}\n")
    return _download(encode_profile(samples, unit), name)


def _download(body: bytes, name: str) -> Response:
    headers = {
        "content-type": "application/octet-stream",
        "content-disposition": f'attachment; filename="{name}"',
        "x-content-type-options": "nosniff",
    }
    return Response(body, 200, headers)


def _index() -> Response:
    rows = "".join(
        f"<tr><td><a href='{name}?debug=1'>{name}</a></td><td>{escape(text)}</td></tr>\n"
        for name, text in ABOUT.items()
    )
    page = f"<html><head><title>/debug/pprof/</title></head><body>\n<table>\n{rows}</table>\n</body></html>\n"
    return Response(page, 200, {"content-type": "text/html; charset=utf-8", "x-content-type-options": "nosniff"})


def _seconds(request: Request, default_s: float) -> float | None:
    text = first(request, "seconds")
    try:
        seconds = float(text) if text else default_s
    except ValueError:
        return None
    return min(seconds, _LONGEST_S) if seconds > 0 else None

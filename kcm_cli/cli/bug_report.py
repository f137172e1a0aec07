"""``kcm bug-report``: what there is to know about a manager that misbehaves, in one JSON file without secrets."""

import asyncio
import platform
import re
import sys
from collections.abc import Sequence

import msgspec

from kcm_cli.cli import manager_access
from kcm_cli.cli.manager_access import ManagerAccess
from kcm_cli.component.clock import RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed, unexpected
from kcm_cli.component.value_types import BOOL
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import format_time
from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.runtime.cause_ring import Later, Wrote
from kcm_cli.top import figures
from kcm_cli.trace.join import Target, trace
from kcm_cli.trace.source import Source
from kcm_cli.trace.text import head, plain

PAUSE_S = 2.0
"""Between two readings of the figures, of which rates are made."""
_MOST_BYTES = 64 << 20
_MOST_ERRORS, _MOST_TRACES = 200, 10
_DEEP = 100
_REDACTED = "(redacted)"
_SECRET = re.compile(
    r"token|passw|passphrase|pwd|secret|credential|(?:api|access|private|signing|encryption|ssh).?key|key.?data|bearer"
    r"|cookie|auth(?:orization)?\Z",
    re.IGNORECASE,
)
_MEASURES = ("file", "dir", "path", "ttl", "period", "timeout", "interval", "duration", "deadline", "seconds")
_COUNTS = ("syncs", "count", "total", "limit", "name", "names", "namespace")
_MEASURED = re.compile(rf"(?:{'|'.join((*_MEASURES, *_COUNTS))})\Z", re.IGNORECASE)
"""Names of numbers, durations and paths, and of objects, that are about a secret."""
_NAME = re.compile(r"(?:name|namespace)s?\Z", re.IGNORECASE)
_MEASURE = re.compile(r"-?[0-9.]{1,20}|-?(?:[0-9.]{1,20}(?:h|ms|m|s|us|µs|ns)){1,6}|/\S*")
_SWITCHES = frozenset({"", "true", "false", "<nil>", "[]", "map[]"})
"""Values that are no secret whatever the field is called."""
_USER = re.compile(r"://\S+")
_PARAMETER = re.compile(r"([?&#][^=&?#\s]{1,128}=)([^&\s]+)")
_SECRET_PARAMETER = re.compile(r"token|passw|secret|key|sig", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY")
_END_OF_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}-----")
_NO_MEASURE = "".join(f"(?<!{end})" for end in (*_MEASURES, *_COUNTS))
_IN_TEXT = re.compile(
    rf"""(
      (?:passw(?:or)?d|passphrase|pwd|authorization)s?[ \t]?:
    | (?:token|secret|credential|cookie|(?:api|access|private)[-_ ]?key)s?[ \t]?:(?![ ]?[a-z]{{1,20}}[ ]\S)
    | (?:authorization
      | (?:token|secret|credential|cookie|passw|passphrase|pwd|(?:api|access|private)[-_ ]?key)[\w.-]{{0,24}}
      ){_NO_MEASURE}(?:[ \t]?=|\\?["'][ \t]?(?:=|:(?=[ \t]?\\?["'0-9])))
    )
    ([=>]?[ \t]{{0,3}})
    (?!["']?(?:true|false|<nil>|\[\]|map\[\])(?![^\s"',;)}}\]]))
    (?:(?:Basic|Bearer|Digest|Negotiate)[ \t])?
    (?:\\"(?:[^"\\\n]|\\[^"\n])*(?:\\")?|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s"']\S*)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A name and its value within a text: to the end of the quotation, or of the word. A name with a colon may also be the
start of an error, as in "secret: not found"."""
_BEARER = re.compile(r"\b(Bearer )(?!tokens?\b|authentication\b)\S+", re.IGNORECASE)
_WEB_TOKEN = re.compile(r"(?<![\w-])eyJ\S{8,}")
"""JSON in Base64, as all JSON web tokens begin."""
_LINE = re.compile(r"(-{0,2}[A-Za-z0-9][\w.-]{0,127})(: |:|=| )(.*)")
FLAGS = FlagSet((*manager_access.FLAGS, Flag("help", BOOL, False, "Show this text.", "Output", "h")))
ABOUT = """kcm bug-report writes what there is to know about a running manager to standard output, as one JSON
document: versions, flags, configuration, health, metrics, queues, longest turns, the last errors, and traces of what
was refused. It has names of objects, and no values of Secrets. A part that the manager does not have is named in
problems: it also works with kube-controller-manager.

Usage:
  kcm bug-report [--kubeconfig FILE] [--server https://127.0.0.1:10257] > report.json"""


def main(arguments: Sequence[str]) -> int:
    """Write the report; returns the exit code."""
    return manager_access.run(arguments, FLAGS, ABOUT, _read, _run)


def completion(arguments: Sequence[str]) -> tuple[FlagSet, tuple[str, ...]]:
    """The flags and words that may come next."""
    return FLAGS, ()


def _read(parsed: Parsed, problems: list[str]) -> ManagerAccess | None:
    values = {flag.name: parsed.values.get(flag.name, flag.default) for flag in FLAGS}
    problems += unexpected(parsed, "kcm bug-report")
    return manager_access.of(values, problems)


async def _run(access: ManagerAccess) -> int:
    clock = RealClock()
    async with manager_access.opened(access, clock, "bug-report") as (transport, _):
        report = await gather(ManagerPort(transport, access.server), clock)
    sys.stdout.write(msgspec.json.format(codec.encode(report), indent=2).decode() + "\n")
    return 0


async def gather(port: ManagerPort, clock: RealClock) -> dict[str, object]:
    """The report. Raises ReadError for a manager that answers nothing."""
    problems: dict[str, str] = {}

    async def text(path: str, query: tuple[tuple[str, str], ...] = ()) -> str:
        try:
            return (await port.read(path, query, most_bytes=_MOST_BYTES)).decode(errors="replace")
        except ReadError as error:
            problems[path] = str(error)
            return ""

    health = await port.get("/healthz", (("verbose", ""),))
    before, at = await text("/metrics"), clock.monotonic()
    await asyncio.sleep(PAUSE_S)
    metrics, now = await text("/metrics"), clock.monotonic()
    report: dict[str, object] = {
        "kind": "BugReport",
        "takenAt": format_time(clock.now()),
        "kcm": {"version": GIT_VERSION, "python": platform.python_version(), "platform": platform.platform()},
        "health": [plain(line) for line in health.body[:_MOST_BYTES].decode(errors="replace").splitlines()],
        "status": (await text("/statusz")).splitlines(),
        "flags": redacted_lines(await text("/flagz")),
        "configuration": _configuration(await text("/configz"), problems),
    }
    try:
        view = figures.between(
            figures.read(before, at), figures.read(metrics, now), queue_owners(), clock.now().timestamp()
        )
        turns = {row.controller: row.longest_s for row in view.rows if row.longest_s}
        manager = msgspec.to_builtins(view)
        report["queues"] = manager.pop("rows")
        report["manager"] = manager
        report["longestTurns"] = dict(sorted(turns.items(), key=lambda pair: -pair[1]))
    except FormatError as error:
        problems.setdefault("/metrics", str(error))
    report |= await _last(port, problems)
    report |= {"problems": problems, "metrics": metrics.splitlines()}
    return {name: redacted(part) for name, part in report.items()}


async def _last(port: ManagerPort, problems: dict[str, str]) -> dict[str, object]:
    """The last errors, and traces of what was refused last."""
    source = Source(port)
    try:
        await source.read()
    except ReadError as error:
        problems["/debug/causes"] = str(error)
        return {"errors": [], "traces": []}
    refused = [one for one in source.entries if isinstance(one, Wrote) and not 200 <= one.code < 300]
    failed = [one for one in source.entries if isinstance(one, Later) and one.error]
    errors: list[Wrote | Later] = [*refused, *failed]
    errors.sort(key=lambda one: one.at)
    targets: dict[tuple[str, str], Target] = {}
    for one in reversed(refused):
        kind, _, key = one.owner.partition(" ") if one.owner else (one.kind or one.resource, "", one.key)
        namespace, _, name = key.rpartition("/")
        if name and len(targets) < _MOST_TRACES:
            targets.setdefault((kind, key), Target(kind, namespace, name))
    traces = [head(trace(source.entries, target, forgotten=source.forgotten)) for target in targets.values()]
    return {"errors": [_error(one) for one in errors[-_MOST_ERRORS:]], "traces": traces}


def _error(one: Wrote | Later) -> dict[str, object]:
    return {"type": "write" if isinstance(one, Wrote) else "sync", **msgspec.structs.asdict(one)}


def _configuration(body: str, problems: dict[str, str]) -> object:
    if not body:
        return None
    try:
        return codec.decode_doc(body.encode())
    except codec.DecodeError as error:
        problems["/configz"] = f"it cannot be read: {error}"
        return None


def redacted(value: object, name: str = "", *, is_secret: bool = False, depth: int = 0) -> object:
    """Without the values of fields that may be secrets, also within such fields, and without the secrets in texts.

    name: of the field. is_secret: whether it is within a field that may be secret. depth: of the value; what is very
    deep is left out.
    """
    if depth > _DEEP:
        return _REDACTED
    is_secret = is_secret or _SECRET.search(name) is not None
    if isinstance(value, dict):
        if is_secret and name.lower().endswith("s") and not _MEASURED.search(name):
            return _REDACTED  # its keys may be the secrets
        return {
            _text(str(key)): redacted(inner, str(key), is_secret=is_secret, depth=depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        lines = [one for one in value if isinstance(one, str) and "\n" not in one]
        if lines and len(lines) == len(value) and not is_secret:
            return _text("\n".join(lines)).split("\n")  # a private key has many lines
        return [redacted(inner, name, is_secret=is_secret, depth=depth + 1) for inner in value]
    if is_secret and isinstance(value, str | int) and not isinstance(value, bool) and not _harmless(name, str(value)):
        return _REDACTED
    return _text(value) if isinstance(value, str) else value


def _harmless(name: str, value: str) -> bool:
    if value in _SWITCHES or _NAME.search(name):
        return True
    return _MEASURED.search(name) is not None and _MEASURE.fullmatch(value) is not None


def _text(text: str) -> str:
    """A text without private keys, users in URLs, credentials of HTTP, and values that are called secrets."""
    text = _USER.sub(_without_user, _without_private_keys(text))
    text = _PARAMETER.sub(_without_secret, text)
    text = _IN_TEXT.sub(rf"\g<1>\g<2>{_REDACTED}", text)
    return _WEB_TOKEN.sub(_REDACTED, _BEARER.sub(rf"\g<1>{_REDACTED}", text))


def _without_private_keys(text: str) -> str:
    found, at = list[str](), 0
    while begin := _PRIVATE_KEY.search(text, at):
        end = _END_OF_KEY.search(text, begin.end())
        found += (text[at : begin.start()], _REDACTED)
        at = end.end() if end else len(text)
    return "".join((*found, text[at:]))


def _without_user(rest: re.Match[str]) -> str:
    """What comes after the scheme. A password may have any sign, so that it ends at the last @ of the word."""
    at = rest[0].rfind("@")
    return f"://{_REDACTED}{rest[0][at:]}" if at > 0 else rest[0]


def _without_secret(parameter: re.Match[str]) -> str:
    return parameter[1] + _REDACTED if _SECRET_PARAMETER.search(parameter[1]) else parameter[0]


def redacted_lines(text: str) -> list[str]:
    """The lines of /flagz, without the values of flags that may be secrets."""
    found = []
    for line in _without_private_keys(text).splitlines():
        match = _LINE.fullmatch(line)
        found.append(f"{match[1]}{match[2]}{redacted(match[3], match[1])}" if match else line)
    return [plain(line) for line in found]

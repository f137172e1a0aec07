"""Logging in klog's formats.

The program logs through the standard library: a constant message and ``extra={"fields": {...}}``. ``setup`` sends that
to standard error as ``I1120 13:00:00.000000    4711 worker.py:80] "Finished syncing" key="default/web"`` or as JSON.
Verbosity: INFO is 0, DEBUG is 4; the levels between and below are ``V1`` to ``V10``. Messages of other packages are
shown from WARNING on, and all of them from verbosity 8 on. The time in a line is the system's, whatever the clock.
``named`` gives the lines of a controller its name (``logger``), as contextual logging does.

Text from outside cannot forge a line or reach the terminal: whatever cannot be printed is escaped, later lines of a
text begin with a tab, and values are cut at LONGEST characters.

upstream: k8s.io/klog/v2, staging/src/k8s.io/component-base/logs
"""

import fnmatch
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import datetime

import msgspec

from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.logs_stream import BufferedStream, TextStream
from kcm_cli.machinery.kref import KRef
from kcm_cli.machinery.quoting import escaped, json_escaped, quote

V1, V2, V3, V4, V5, V6, V7, V8, V9, V10 = 17, 15, 12, logging.DEBUG, 9, 8, 7, 6, 5, 4
"""Levels of the standard library for klog's verbosities."""

_LEVELS = (logging.INFO, V1, V2, V3, V4, V5, V6, V7, V8, V9, V10)
_OURS = "kcm_cli"
_FOREIGN_FROM = 8
_NO_FIELDS: Mapping[str, object] = {}
_LOGGER: ContextVar[str] = ContextVar("logger", default="")
LONGEST = 8192
"""The most characters of one value."""
_SEVERITIES = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))


def level_of(verbosity: int) -> int:
    """The standard library's level of a verbosity."""
    return _LEVELS[min(verbosity, len(_LEVELS) - 1)]


def verbosity_of(level: int) -> int:
    """The verbosity of a level of the standard library; 0 for INFO and above."""
    return next((v for v, known in enumerate(_LEVELS) if known <= level), len(_LEVELS) - 1)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Within this block, and in tasks started in it, lines have ``logger=NAME``; "" for none."""
    token = _LOGGER.set(name)
    try:
        yield
    finally:
        _LOGGER.reset(token)


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """The key/value pairs of a record."""
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else _NO_FIELDS


class TextFormatter(logging.Formatter):
    """klog's text form."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = f"{os.getpid():7d}"

    def format(self, record: logging.LogRecord) -> str:
        severity = _severity(record.levelno)
        when = datetime.fromtimestamp(record.created).strftime("%m%d %H:%M:%S.%f")
        body = record.getMessage()
        if not record.args and record.name.startswith(_OURS):
            body = quote(body) + _pairs(_with_logger(fields_of(record)), errors_first=severity in "EF")
        else:
            body = _indented(body)
        line = f"{severity}{when} {self._pid} {record.filename}:{record.lineno}] {body}"
        return (
            line
            if not record.exc_info
            else f"{line}\n\t{_indented(_cut(self.formatException(record.exc_info), LONGEST * 4))}"
        )


class JSONFormatter(logging.Formatter):
    """The form of --logging-format=json: one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        folder = os.path.basename(os.path.dirname(record.pathname))
        line: dict[str, object] = {"ts": round(record.created * 1000, 6)}
        fields = dict(_with_logger(fields_of(record)) if record.name.startswith(_OURS) else _NO_FIELDS)
        if "logger" in fields:
            line["logger"] = fields.pop("logger")
        line |= {"caller": f"{folder}/{record.filename}:{record.lineno}", "msg": _cut(record.getMessage())}
        if record.levelno < logging.ERROR:
            line["v"] = verbosity_of(record.levelno)
        error = fields.pop("err", None)
        line |= {key: _bounded(value) for key, value in fields.items()}
        if error is not None:
            line["err"] = _cut(str(error))
        if record.exc_info:
            line["stacktrace"] = _cut(self.formatException(record.exc_info), LONGEST * 4)
        return _encode(line)


class _PerFile(logging.Filter):
    """--vmodule: higher verbosities for files whose name, or path if the pattern has a slash, matches a pattern."""

    def __init__(self, verbosity: int, patterns: tuple[tuple[str, int], ...]) -> None:
        super().__init__()
        self.verbosity = verbosity
        self._patterns = patterns
        self._known: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        asked = verbosity_of(record.levelno)
        if record.levelno >= logging.WARNING or asked <= self.verbosity:
            return True
        allowed = self._known.get(record.pathname)
        if allowed is None:
            allowed = self._known[record.pathname] = self._of_file(record.pathname)
        return asked <= allowed

    @property
    def most(self) -> int:
        """The highest verbosity of any file."""
        return max([self.verbosity, *(verbosity for _, verbosity in self._patterns)])

    def _of_file(self, path: str) -> int:
        stem = path.removesuffix(".py")
        for pattern, verbosity in self._patterns:
            name = stem if "/" in pattern else os.path.basename(stem)
            if fnmatch.fnmatchcase(name, pattern) or ("/" in pattern and fnmatch.fnmatchcase(name, f"*/{pattern}")):
                return verbosity
        return 0


class _BufferedHandler(logging.StreamHandler[TextStream]):
    """A handler whose stream decides when lines are written; ``flush`` writes them at once."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.stream.write(self.format(record) + self.terminator)
        except Exception:  # noqa: BLE001  # as in all handlers of logging: not the concern of those who log
            self.handleError(record)


def setup(config: LogsConfig) -> None:
    """Configure logging by the options. Replaces an earlier setup."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
    formatter = JSONFormatter() if config.format == "json" else TextFormatter()
    for handler in _handlers(config):
        handler.setFormatter(formatter)
        if config.vmodule:
            handler.addFilter(_PerFile(config.verbosity, config.vmodule))
        root.addHandler(handler)
    set_verbosity(config.verbosity)
    logging.captureWarnings(True)


def set_verbosity(verbosity: int) -> None:
    """Change the verbosity at run time. --vmodule may still raise that of its files."""
    root, most = logging.getLogger(), verbosity
    for handler in root.handlers:
        for one in handler.filters:
            if isinstance(one, _PerFile):
                one.verbosity = verbosity
                most = max(most, one.most)
    logging.getLogger(_OURS).setLevel(level_of(most))
    root.setLevel(logging.DEBUG if most >= _FOREIGN_FROM else logging.WARNING)


def _handlers(config: LogsConfig) -> list[logging.Handler]:
    as_json = config.format == "json"
    split = config.json_split_stream if as_json else config.text_split_stream
    if not split:
        return [logging.StreamHandler(sys.stderr)]
    size = config.json_info_buffer_bytes if as_json else config.text_info_buffer_bytes
    info: logging.Handler = logging.StreamHandler(sys.stdout)
    if size:
        info = _BufferedHandler(BufferedStream(sys.stdout, size, config.flush_period_s))
    errors = logging.StreamHandler(sys.stderr)
    info.addFilter(lambda record: record.levelno < logging.ERROR)
    errors.setLevel(logging.ERROR)
    return [info, errors]


def _severity(level: int) -> str:
    return next((letter for least, letter in _SEVERITIES if level >= least), "I")


class WithFields(logging.Formatter):
    """A formatter for foreign handlers: it adds the fields to the message, and leaves the record unchanged."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()  # formatters leave it there, and tests look at it
        if fields := fields_of(record):
            message, record = record.message, copy(record)
            record.msg, record.args = message + _pairs(fields, errors_first=False), None
        return self._inner.format(record)


def _with_logger(fields: Mapping[str, object]) -> Mapping[str, object]:
    name = _LOGGER.get()
    return {"logger": name, **fields} if name else fields


def _pairs(fields: Mapping[str, object], *, errors_first: bool) -> str:
    if errors_first and "err" in fields:
        fields = {"err": fields["err"], **fields}
    return "".join(f" {key}={_value(value)}" for key, value in fields.items())


def _value(value: object) -> str:
    """A value as klog writes it: strings quoted (those of several lines in brackets), others as JSON."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], KRef):
        return _cut(f"[{','.join(quote(str(one)) for one in value)}]")
    if value is None or isinstance(value, bool | int | float | list | tuple | dict | set | frozenset):
        text = _encode(value)
        return text if len(text) <= LONGEST else quote(_cut(text))
    text = _cut(value if isinstance(value, str) else str(value))
    if "\n" not in text:
        return quote(text)
    lines = text.removesuffix("\n").split("\n")
    return "<\n" + "".join(f"\t{escaped(line)}\n" for line in lines) + " >"


def _bounded(value: object) -> object:
    """A value for a JSON line."""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, str):
        return _cut(value)
    text = _encode(value)
    return msgspec.Raw(text.encode()) if len(text) <= LONGEST else _cut(text)


def _encode(value: object) -> str:
    """The value as JSON in which all that cannot be printed is escaped, as JSON has it."""
    try:
        text = msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half a surrogate pair, as in arguments that are not UTF-8
        text = msgspec.json.encode(_without_halves(value)).decode()
    return json_escaped(text)


def _without_halves(value: object) -> object:
    """The value with texts that can be encoded: half surrogate pairs are written as escape sequences."""
    if isinstance(value, bool | int | float | None | msgspec.Raw):
        return value
    if isinstance(value, dict):
        return {_without_halves(str(key)): _without_halves(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_without_halves(one) for one in value]
    return str(value).encode("utf-8", "backslashreplace").decode()


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} more characters)"


def _indented(text: str) -> str:
    """Lines of which only the first one begins at the margin."""
    return "\n\t".join(escaped(line) for line in text.rstrip("\n").split("\n"))

"""klog's formats."""

import json
import logging
import os
import re
import sys
from collections.abc import Iterator

import pytest

from kcm_cli.component import logs
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.logs_stream import BufferedStream
from kcm_cli.machinery.kref import KRef
from tests.kit.restoring import unchanged_logging

log = logging.getLogger("kcm_cli.tests")
foreign = logging.getLogger("elsewhere")


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    with unchanged_logging():
        yield


def repr_type(value: object) -> str:
    return type(value).__name__


def body(line: str) -> str:
    return line.split("] ", 1)[1]


def test_the_header_is_klogs(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig())
    log.info("Started controller", extra={"fields": {"controller": "job-controller"}})
    line = capsys.readouterr().err
    header = rf"I\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} {os.getpid():7d} test_logs\.py:\d+\] "
    assert re.fullmatch(header + r'"Started controller" controller="job-controller"\n', line)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param({"a": 'x "y"'}, r' a="x \"y\""', id="quotes"),
        pytest.param({"n": 5, "f": 0.5, "b": True, "z": None}, " n=5 f=0.5 b=true z=null", id="plain values"),
        pytest.param({"l": ["a", 1], "d": {"k": "v"}}, ' l=["a",1] d={"k":"v"}', id="structures"),
        pytest.param({"t": "one\ntwo"}, " t=<\n\tone\n\ttwo\n >", id="several lines"),
        pytest.param({"e": ValueError("bad")}, ' e="bad"', id="error"),
        pytest.param({"pod": KRef("web", "default"), "node": KRef("n")}, ' pod="default/web" node="n"', id="objects"),
        pytest.param({"pods": [KRef("a", "b"), KRef("c")]}, ' pods=["b/a","c"]', id="list of objects"),
        pytest.param({"pods": []}, " pods=[]", id="empty list"),
        pytest.param({"t": "\x1b[2J\r\u0085\u2028x"}, r' t="\x1b[2J\r\u0085\u2028x"', id="control characters"),
        pytest.param({"t": "a\n\x1b[2J\rb"}, " t=<\n\ta\n\t\\x1b[2J\\rb\n >", id="control characters of several lines"),
        pytest.param({"l": ["\x9b2J"]}, r' l=["\u009b2J"]', id="control characters in a list"),
        pytest.param({"t": "\ud800"}, r' t="\ud800"', id="half a surrogate pair"),
    ],
)
def test_values(fields: dict[str, object], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig())
    log.info("m", extra={"fields": fields})
    assert body(capsys.readouterr().err) == f'"m"{text}\n'


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize(
    "value", ["x" * 10**6, ["x" * 10**6], {"k": "x" * 10**6}, "x\n" * 10**6, [KRef("x" * 10**6)]], ids=repr_type
)
def test_values_are_bounded(format_: str, value: object, capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(format=format_))
    log.info("m", extra={"fields": {"a": value}})
    line = capsys.readouterr().err
    assert len(line) < 3 * logs.LONGEST
    assert "more characters" in line


FORGED = "x\nE0101 00:00:00.000000       1 forged.go:1] forged\x1b[31m\r\u0085y"


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize("place", ["value", "list", "error", "message", "argument", "other package", "traceback"])
def test_text_from_outside_cannot_forge_a_line(format_: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line begins with a header; what follows it is indented. Nothing reaches the terminal that it would obey."""
    logs.setup(LogsConfig(format=format_))
    match place:
        case "value":
            log.info("m", extra={"fields": {"a": FORGED}})
        case "list":
            log.info("m", extra={"fields": {"a": [FORGED], "b": {FORGED: FORGED}}})
        case "error":
            log.error("m", extra={"fields": {"err": ValueError(FORGED)}})
        case "message":
            log.info(FORGED)
        case "argument":
            log.info("%s", FORGED)
        case "other package":
            foreign.warning(FORGED)
        case "traceback":
            log.error("m", exc_info=ValueError(FORGED))
    text = capsys.readouterr().err
    lines = text.removesuffix("\n").split("\n")
    begins = [line for line in lines if not line.startswith(("\t", " >"))]
    assert begins == lines[:1]
    assert all(line.replace("\t", "").isprintable() for line in lines)
    assert "forged" in text


def test_lines_of_a_controller_have_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig())
    with logs.named("job-controller"):
        log.info("m", extra={"fields": {"key": "a"}})
        log.error("m", extra={"fields": {"logger": "UnhandledError", "err": "x"}})
        log.error("m", extra={"fields": {"key": "a", "err": "x"}})
    log.info("m")
    lines = [body(line) for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        '"m" logger="job-controller" key="a"',
        '"m" err="x" logger="UnhandledError"',
        '"m" err="x" logger="job-controller" key="a"',
        '"m"',
    ]


def test_the_name_is_where_zap_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(format="json"))
    with logs.named("job-controller"):
        log.info("m", extra={"fields": {"pod": KRef("a", "b"), "node": KRef("n"), "pods": [KRef("a", "b")]}})
    line = json.loads(capsys.readouterr().err)
    assert list(line) == ["ts", "logger", "caller", "msg", "v", "pod", "node", "pods"]
    assert (line["pod"], line["node"]) == ({"name": "a", "namespace": "b"}, {"name": "n"})
    assert line["pods"] == [{"name": "a", "namespace": "b"}]


def test_the_cause_of_an_error_is_first(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig())
    log.error("Failed", extra={"fields": {"key": "a/b", "err": "boom"}})
    line = capsys.readouterr().err
    assert line.startswith("E")
    assert body(line) == '"Failed" err="boom" key="a/b"\n'


def test_messages_with_arguments_are_not_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig())
    log.warning("FLAG: --%s", "x")
    line = capsys.readouterr().err
    assert (line[0], body(line)) == ("W", "FLAG: --x\n")


@pytest.mark.parametrize(("verbosity", "shown"), [(0, "0"), (2, "012"), (4, "01234"), (10, "0123456789")])
def test_verbosity_is_a_threshold(verbosity: int, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(verbosity=verbosity))
    for level in range(10):
        log.log(logs.level_of(level), str(level))
    assert re.findall(r'"(\d)"\n', capsys.readouterr().err) == list(shown)


def test_debug_is_verbosity_four() -> None:
    assert logs.verbosity_of(logging.DEBUG) == 4
    assert logs.verbosity_of(logging.INFO) == 0
    assert [logs.verbosity_of(logs.level_of(v)) for v in range(11)] == list(range(11))


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [("test_logs", True), ("test_*", True), ("component/test_logs", True), ("other", False), ("other/*", False)],
)
def test_vmodule_changes_the_verbosity_of_a_file(pattern: str, shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(vmodule=((pattern, 4),)))
    log.debug("deep")
    assert ('"deep"' in capsys.readouterr().err) is shown


def test_vmodule_does_not_lower_the_verbosity(capsys: pytest.CaptureFixture[str]) -> None:
    """As in klog: a line is shown if either of the two shows it."""
    logs.setup(LogsConfig(verbosity=4, vmodule=(("test_logs", 0),)))
    log.debug("deep")
    assert body(capsys.readouterr().err) == '"deep"\n'


def test_a_verbosity_that_is_changed_counts_beside_vmodule(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(vmodule=(("other", 4),)))
    logs.set_verbosity(4)
    log.debug("deep")
    assert body(capsys.readouterr().err) == '"deep"\n'
    logs.setup(LogsConfig(verbosity=4, vmodule=(("test_logs", 4),)))
    logs.set_verbosity(0)
    log.debug("still")
    assert body(capsys.readouterr().err) == '"still"\n'


def test_other_packages_log_from_warning_on(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(verbosity=4))
    foreign.info("chatter")
    foreign.warning("trouble")
    assert body(capsys.readouterr().err) == "trouble\n"


@pytest.mark.parametrize("text", ["a\x7fb", "\U000e0001", "\u202e", "\x9b2J", 'a\\\\"b', "\U0001f600", "a\ud800"])
def test_each_json_line_is_json(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(format="json"))
    log.info("m", extra={"fields": {"a": text, "b": [text], "c": {text: text}, "err": text}})
    line = capsys.readouterr().err
    found = json.loads(line)
    shown = text.replace("\ud800", "\\ud800")
    assert [found[key] for key in ("a", "b", "c", "err")] == [shown, [shown], {shown: shown}, shown]
    assert isinstance(found["ts"], float) and found["v"] == 0
    assert line.removesuffix("\n").isprintable()


def test_json_form(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(format="json", verbosity=2))
    log.log(logs.V2, "Synced", extra={"fields": {"key": "a/b", "n": 2}})
    line = json.loads(capsys.readouterr().err)
    assert list(line) == ["ts", "caller", "msg", "v", "key", "n"]
    assert re.fullmatch(r"component/test_logs\.py:\d+", line["caller"])
    assert (line["msg"], line["v"], line["key"], line["n"]) == ("Synced", 2, "a/b", 2)


def test_json_errors_have_no_verbosity_and_the_cause_last(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(format="json"))
    log.error("Failed", extra={"fields": {"err": ValueError("boom"), "key": "a/b"}})
    line = json.loads(capsys.readouterr().err)
    assert list(line) == ["ts", "caller", "msg", "key", "err"]
    assert line["err"] == "boom"


def test_split_streams(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(text_split_stream=True))
    log.info("fine")
    log.error("bad")
    out = capsys.readouterr()
    assert (body(out.out), body(out.err)) == ('"fine"\n', '"bad"\n')


def test_buffered_lines_are_written_by_a_flush(capsys: pytest.CaptureFixture[str]) -> None:
    logs.setup(LogsConfig(text_split_stream=True, text_info_buffer_bytes=4096, flush_period_s=3600.0))
    log.info("fine")
    assert capsys.readouterr().out == ""
    for handler in logging.getLogger().handlers:
        handler.flush()
    assert body(capsys.readouterr().out) == '"fine"\n'


@pytest.mark.parametrize("size", [0, 1])
def test_a_stream_that_fails_does_not_concern_those_who_log(
    size: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(text: str) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.stdout, "write", full)
    logs.setup(LogsConfig(text_split_stream=True, text_info_buffer_bytes=size))
    log.info("fine")
    assert "No space left on device" in capsys.readouterr().err


class Sink:
    """Remembers what was written."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str, /) -> int:
        self.writes.append(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is held."""


def test_a_buffer_writes_when_it_is_full_or_flushed() -> None:
    sink = Sink()
    stream = BufferedStream(sink, 4, 3600.0)
    stream.write("ab")
    assert sink.writes == []
    stream.write("cd")
    stream.write("e")
    stream.flush()
    assert sink.writes == ["abcd", "e"]


def test_other_handlers_format_fields_and_keep_the_record() -> None:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "Waited %s", ("long",), None)
    record.fields = {"key": "a/b", "n": 3}
    assert (
        logs.WithFields(logging.Formatter("%(levelname)s %(message)s")).format(record)
        == 'INFO Waited long key="a/b" n=3'
    )
    assert (record.message, record.args, record.fields) == ("Waited long", ("long",), {"key": "a/b", "n": 3})

"""Options of logging."""

from collections.abc import Iterator
from typing import ClassVar

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import BOOL, DURATION, LEVEL, QUANTITY, STRING, VMODULE

FORMATS = ("json", "text")
_ALPHA = "Needs the feature gate LoggingAlphaOptions."


class LogsConfig(OptionGroup):
    """The verbosity, format and destination of logs."""

    SECTION: ClassVar[str] = "Logs"

    format: str = option(
        STRING,
        "text",
        flag="logging-format",
        choices=FORMATS,
        help='Log format: "json" or "text". --vmodule cannot be used with json.',
    )
    verbosity: int = option(
        LEVEL, 0, flag="v", shorthand="v", help="Verbosity: log lines up to this level. Errors are always logged."
    )
    vmodule: tuple[tuple[str, int], ...] = option(
        VMODULE,
        (),
        flag="vmodule",
        help="Verbosity of single source files, as pattern=N separated by commas. Text format only.",
    )
    flush_period_s: float = option(
        DURATION, 5.0, flag="log-flush-frequency", unit="s", help="Longest time between two flushes of the log."
    )
    text_split_stream: bool = option(
        BOOL,
        False,
        flag="log-text-split-stream",
        help=f"In text format, write errors to stderr and everything else to stdout. {_ALPHA}",
    )
    text_info_buffer_bytes: int = option(
        QUANTITY,
        0,
        flag="log-text-info-buffer-size",
        unit="bytes",
        help=(f"Size of the buffer for stdout, in text format with split streams. 0: no buffer. {_ALPHA}"),
    )
    json_split_stream: bool = option(
        BOOL,
        False,
        flag="log-json-split-stream",
        help=f"In JSON format, write errors to stderr and everything else to stdout. {_ALPHA}",
    )
    json_info_buffer_bytes: int = option(
        QUANTITY,
        0,
        flag="log-json-info-buffer-size",
        unit="bytes",
        help=(f"Size of the buffer for stdout, in JSON format with split streams. 0: no buffer. {_ALPHA}"),
    )

    def problems(self) -> Iterator[str]:
        if self.format not in FORMATS:
            yield f'logging-format must be "json" or "text", but got "{self.format}"'
        if self.flush_period_s <= 0:
            yield "log-flush-frequency must be greater than zero"
        if self.vmodule and self.format != "text":
            yield "vmodule works with --logging-format=text only"

    def alpha_flags(self) -> list[str]:
        """The flags in use that need the gate LoggingAlphaOptions."""
        used = (
            ("log-text-split-stream", self.text_split_stream),
            ("log-text-info-buffer-size", self.text_info_buffer_bytes),
            ("log-json-split-stream", self.json_split_stream),
            ("log-json-info-buffer-size", self.json_info_buffer_bytes),
        )
        return [name for name, value in used if value]

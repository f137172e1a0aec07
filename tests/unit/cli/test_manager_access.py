"""What the commands that read a manager have in common."""

from collections.abc import Callable, Sequence

import pytest

from kcm_cli.cli import bug_report, manager_access, top, trace


@pytest.mark.parametrize(
    ("main", "words", "code"),
    [
        (top.main, [], 0),
        (top.main, ["--once"], 1),
        (trace.main, ["po/x", "--follow"], 0),
        (trace.main, ["po/x"], 1),
        (bug_report.main, [], 1),
    ],
)
def test_ctrl_c_is_an_error_where_the_output_is_missing(
    main: Callable[[Sequence[str]], int],
    words: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manager_access, "opened", interrupted)
    assert main(words) == code
    assert capsys.readouterr() == ("", "Error: interrupted\n" if code else "")

"""The command line of ``kcm trace``."""

import pytest

from kcm_cli.cli.trace import main


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "name one object as KIND/NAME, such as deploy/web"),
        (["deploy/web", "po/x"], "name one object as KIND/NAME"),
        (["web"], "web is not KIND/NAME, such as deploy/web"),
        (["a/b/c"], "a/b/c is not KIND/NAME"),
        (["po/x", "--since=0s"], "--since: must be a duration above 0, such as 10m"),
        (["po/x", "-o", "html"], "--output: html is none of text, json"),
        (["po/x", "--server=http://x"], "--server: http://x is no address such as https://127.0.0.1:10257"),
        (["po/x", "--token=a", "--token-file=/nowhere"], "--token-file: it takes the place of --token"),
    ],
)
def test_mistakes_are_one_line(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 1
    assert capsys.readouterr().err.startswith(f"Error: {text}")


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "--since" in capsys.readouterr().out


def test_a_manager_that_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["po/x", "--server=https://127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("(does the manager run? --server names its address)")

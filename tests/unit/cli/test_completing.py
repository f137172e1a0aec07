"""Completion: what may come next on a command line, and how each shell is sent it."""

from collections.abc import Mapping

import pytest

from kcm_cli.cli.completing import Candidate, Typed, candidates, main, typed
from kcm_cli.cli.subcommands import SUBCOMMANDS


def bash(*words: str) -> dict[str, str]:
    """What bash sends for words that it has split; the cursor is at the end of the last one."""
    return {"_KCM_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}


def zsh(line: str) -> dict[str, str]:
    return {"_KCM_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}


@pytest.mark.parametrize(
    ("shell", "sent", "line"),
    [
        pytest.param("bash", bash("kcm", "--v"), Typed(("--v",)), id="bash"),
        pytest.param("bash", bash("kcm", ""), Typed(("",)), id="bash, a new word"),
        pytest.param("bash", bash("kcm", "--a", "=", "b"), Typed(("--a=b",), 4), id="bash splits at ="),
        pytest.param("bash", bash("kcm", "--a", "="), Typed(("--a=",), 4), id="bash, nothing behind ="),
        pytest.param("bash", bash("kcm", "--a", "=", "b", "=", "c"), Typed(("--a=b=c",), 6), id="bash, twice"),
        pytest.param("bash", bash("kcm", "--a", "=", "k", ":", "B"), Typed(("--a=k:B",), 6), id="bash splits at :"),
        pytest.param("bash", bash("kcm", "--a", "=", "b", "c"), Typed(("--a=b", "c")), id="bash, words after a value"),
        pytest.param("bash", bash("kcm", "--a", "=", ""), Typed(("--a=", "")), id="bash, a new word after ="),
        pytest.param("bash", bash("kcm", "'a b"), Typed(("a b",)), id="bash, an open quotation"),
        pytest.param("zsh", zsh("kcm --a=b"), Typed(("--a=b",)), id="zsh"),
        pytest.param("zsh", zsh("kcm --a "), Typed(("--a", "")), id="zsh, a new word"),
        pytest.param("zsh", zsh("kcm"), Typed(("",)), id="zsh, no word"),
        pytest.param("zsh", zsh(""), Typed(("",)), id="zsh, nothing"),
    ],
)
def test_what_shells_send(shell: str, sent: Mapping[str, str], line: Typed) -> None:
    assert typed(shell, sent) == line


def test_a_cursor_in_the_middle_of_a_line() -> None:
    sent = {**bash("kcm", "--v", "sandbox"), "COMP_CWORD": "1"}
    assert typed("bash", sent) == Typed(("--v",))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(["--kube-api-"], ["--kube-api-burst", "--kube-api-content-type", "--kube-api-qps"], id="flag"),
        pytest.param(["--logging-format", ""], ["json", "text"], id="choice"),
        pytest.param(["--logging-format=t"], ["--logging-format=text"], id="choice behind ="),
        pytest.param(["--leader-elect="], ["--leader-elect=true", "--leader-elect=false"], id="bool behind ="),
        pytest.param(["--leader_elect=f"], ["--leader_elect=false"], id="spelling with _"),
        pytest.param(["--controllers", "job"], ["job-controller"], id="controller"),
        pytest.param(["--controllers", "-job"], ["-job-controller"], id="controller that is left out"),
        pytest.param(["--controllers", "*,-job"], ["*,-job-controller"], id="controller in a list"),
        pytest.param(["--feature-gates", "AllAl"], ["AllAlpha=true", "AllAlpha=false"], id="gate"),
        pytest.param(["--leader-elect=false", "--write"], ["--write-config-to"], id="after a bool with a value"),
        pytest.param(["--leader-elect", "--write"], ["--write-config-to"], id="after a bool"),
        pytest.param(["-v", "1"], ["1", "10"], id="level"),
        pytest.param(["--kubeconfig", "a"], [], id="a file"),
        pytest.param(["--pod-evic"], [], id="former flags are not offered"),
        pytest.param(["sand"], ["sandbox"], id="command"),
        pytest.param(["-v2", "sand"], [], id="a command goes first"),
        pytest.param(["sandbox", "--no"], ["--nodes", "--no-manager", "--no-view"], id="flag of a command"),
        pytest.param(["sandbox", "--port", "0", "--data"], ["--data-dir"], id="another flag of a command"),
        pytest.param(["sandbox", "n"], ["nodes"], id="command of a command"),
        pytest.param(["sandbox", "nodes", ""], ["add", "remove", "fail", "recover"], id="verb"),
        pytest.param(["sandbox", "nodes", "add", "--c"], ["--count", "--capacity"], id="flag of a verb"),
        pytest.param(["sandbox", "assets", "--d"], ["--dir"], id="flag of assets"),
        pytest.param(["sandbox", "--", "--kube-api-q"], ["--kube-api-qps"], id="flag of the manager"),
        pytest.param(
            ["sandbox", "assets", "--", "--controllers=ttl-c"], ["--controllers=ttl-controller"], id="its value"
        ),
        pytest.param(["sandbox", "--", ""], [], id="no command after --"),
        pytest.param(["plan", "--fo"], ["--force-conflicts", "--for"], id="flag with the name of a Python keyword"),
        pytest.param(["trace", "-o", "h"], ["html"], id="value of a letter"),
    ],
)
def test_candidates(words: list[str], offered: list[str]) -> None:
    assert [one.word for one in candidates(Typed(tuple(words)))] == offered


def test_bash_is_sent_what_it_has_not_yet() -> None:
    assert [one.word for one in candidates(Typed(("--feature-gates=AllAlpha=t",), 25))] == ["true"]


def test_no_candidate_is_a_pattern_that_bash_expands() -> None:
    assert "*" not in [one.word for one in candidates(Typed(("--controllers", "")))]


@pytest.mark.parametrize("command", [command.name for command in SUBCOMMANDS])
def test_each_subcommand_completes(command: str) -> None:
    assert Candidate(command, next(one.help for one in SUBCOMMANDS if one.name == command)) in candidates(Typed(("",)))
    assert "--help" in [one.word for one in candidates(Typed((command, "--")))]


@pytest.mark.parametrize(
    ("environment", "answer"),
    [
        pytest.param(bash("kcm", "--logging-format", "=", ""), "", id="bash"),
        pytest.param(bash("kcm", "--logging-format", "="), "json\ntext", id="bash, the rest of a word"),
        pytest.param(
            zsh("kcm sandbox --da"),
            '_arguments \'*: :(("--data-dir":"Directory to store the cluster in. Without it, the cluster is lost on '
            "exit.\"))'",
            id="zsh",
        ),
        pytest.param(
            zsh("kcm --controllers=a,-ttl-c"),
            "compset -P '*,'; _arguments '*: :((\"-ttl-controller\"))'",
            id="zsh, a list",
        ),
        pytest.param(zsh("kcm --kubeconfig=a"), "compset -P '--*='; _files", id="zsh, a file"),
        pytest.param(
            {
                "_KCM_COMPLETE": "complete_fish",
                "_TYPER_COMPLETE_ARGS": "kcm to",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
            "top\tWatch what a controller manager does.",
            id="fish",
        ),
        pytest.param(
            {
                "_KCM_COMPLETE": "complete_powershell",
                "_TYPER_COMPLETE_ARGS": "kcm sandbox nodes a",
                "_TYPER_COMPLETE_WORD_TO_COMPLETE": "a",
            },
            "add::: ",
            id="powershell",
        ),
    ],
)
def test_answers(environment: dict[str, str], answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(environment) == 0
    assert capsys.readouterr().out == answer


def test_zsh_is_sent_quotation_marks_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(zsh("kcm --controllers")) == 0
    assert "'\\''*'\\'' enables all" in capsys.readouterr().out


@pytest.mark.parametrize(("word", "code"), [("kcm top --on", 0), ("kcm --kubeconfig a", 1)])
def test_fish_asks_whether_there_is_more_than_files(word: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {
        "_KCM_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_ARGS": word,
        "_TYPER_COMPLETE_FISH_ACTION": "is-args",
    }
    assert main(environment) == code
    assert capsys.readouterr().out == ""

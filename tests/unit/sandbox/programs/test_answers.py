"""Commands in containers of an image that is not known: a true answer, or one error."""

from datetime import UTC, datetime

import pytest

from kcm_cli.sandbox.programs.execution import Opened
from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.programs.interpreter import PROGRAMS
from kcm_cli.sandbox.programs.simulate import Session, answer

ENV = {"HOSTNAME": "web-0", "HOME": "/root", "PATH": "/bin"}
THERE = There({"/d/f": "one\ntwo\n"}, ("/d",), began=datetime(2030, 7, 1, tzinfo=UTC), input="")


def outputs(*words: str) -> tuple[str, str, int, str]:
    """The output, the errors, the exit code and the problem."""
    known = answer(words, ENV, THERE)
    texts = ["".join(each.text for each in known.output if each.error is error) for error in (False, True)]
    return texts[0], texts[1], known.code, known.problem


SCRIPTS = {
    'echo user=$(whoami) un=$UNSET.; echo -e "a\\tb"; pwd': "user=root un=.\na\tb\n/\n",
    "id": "uid=0(root) gid=0(root) groups=0(root)\n",
    "echo $HOSTNAME; hostname; id -u; date +%Y": "web-0\nweb-0\n0\n2030\n",
    "cd /d; pwd; cat f | tail -n+2; tail -1 f; tail -n 5 f": "/d\ntwo\ntwo\none\ntwo\n",
    "cd /d; cat f | tail -c+6; tail -c 3 f; tail -c2 f; cat f | tail -c+0": "wo\nwo\no\none\ntwo\n",
    "cd /d; head -c 2 f; head -c-3 f; head -n -1 f; head -c 99 f": "onone\ntone\none\ntwo\n",
    "printf 'aé' | tail -c 2; printf 'aé' | head -c 2 | wc -c": "é2\n",
    "for f in /d/*; do echo $f; done; ls /d": "/d/f\nf\n",
    "mkdir -p /d/a/b; touch /d/a/b/.c; find /d -type f -name '*'; cd /d; find . -type f; find a": (
        "/d/a/b/.c\n/d/f\n./a/b/.c\n./f\na\na/b\na/b/.c\n"
    ),
    "cd /d; tar cf x f; mkdir -p '/d/e'; tar -C '/d/e' -xmf /d/x; e=$?; rm x; cat e/f; exit $e": "one\ntwo\n",
    "echo /d/{a,b} {1..3}; for i in {1..3}; do echo $i; done": "/d/{a,b} {1..3}\n{1..3}\n",
    "grep two /d/f; sort -r /d/f": "two\ntwo\none\n",
    "head -n1 /d/f; wc -l /d/f; wc -c < /d/f": "one\n2 /d/f\n8\n",
    "expr 2 + 3; expr -7 / 2; expr 4 % 2 || echo none": "5\n-3\n0\nnone\n",
    "expr 1764000000000 / 1000": "1764000000\n",
    "pass=1; pass=$((pass + 1)); echo $pass": "2\n",
    "echo aGk= | base64 -d; printf hi | base64": "hiaGk=\n",
    "command -v ls; which nobody || which sh": "/bin/ls\n/bin/sh\n",
    "f() { :; }; command -v cd; command -v echo; command -v f; which cd || which echo": "cd\necho\nf\n/bin/echo\n",
    "command -v /bin/ls; which /usr/bin/env; command -v /usr/local/bin/ls || command -v /app/ls || echo no": (
        "/bin/ls\n/usr/bin/env\nno\n"
    ),
    "for f in e f r x s d; do for p in /bin/sh /usr/bin/script; do [ -$f $p ] && echo $f $p; done; done; true": (
        "e /bin/sh\nf /bin/sh\nr /bin/sh\nx /bin/sh\ns /bin/sh\n"
    ),
    "[ -x /bin/bash ] && ([ -x /usr/bin/script ] && echo a || exec /bin/bash -c 'echo b') || exec /bin/sh": "b\n",
    "if [ -x /usr/local/bin/bash ]; then echo a; elif [ -x /usr/bin/bash ]; then echo b; fi": "b\n",
    "exec 3>&1; mkdir -p /d/e && head -c 2 < /d/f > /d/e/g; cat /d/e/g": "on",
    "test -f /d/f && [ -d /d ] && [ ! -e /d/g ] && echo yes": "yes\n",
    "x=$(false) || echo failed $?": "failed 1\n",
    'set -- a b; echo $# $*; echo "$@"': "2 a b\na b\n",
    "set - a b; set -; echo $*; set -e - -; echo $*; set -- -; echo $*": "a b\n-\n-\n",
    "f() { echo $?; }; false; f; f": "1\n0\n",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_true_answers(script: str) -> None:
    found = outputs("sh", "-c", script)
    assert (found[0], found[1], found[3]) == (SCRIPTS[script], "", "")


@pytest.mark.parametrize(
    ("script", "output", "errors", "code"),
    [
        ("foobar", "", "sh: foobar: not found\n", 127),
        ("foobar; echo $?", "127\n", "sh: foobar: not found\n", 0),
        ("/app/run x || echo no", "no\n", "sh: /app/run: not found\n", 0),
        ("echo a$(curl x)b", "ab\n", "sh: curl: not found\n", 0),
        ("find /d/none /d/f -type f", "/d/f\n", "find: /d/none: No such file or directory\n", 1),
        ("ls /bin/bash /usr/bin/script", "/bin/bash\n", "ls: /usr/bin/script: No such file or directory\n", 1),
        ("cat /d/none", "", "cat: /d/none: No such file or directory\n", 1),
        ("tail -n 3 /d/none || echo no", "no\n", "tail: /d/none: No such file or directory\n", 0),
        ("base64 /d/none", "", "base64: /d/none: No such file or directory\n", 1),
        (
            "head -c 1 /d/none; grep a /d/none; echo $?",
            "2\n",
            "".join(f"{name}: /d/none: No such file or directory\n" for name in ("head", "grep")),
            0,
        ),
        ("if then", "", 'sh: syntax error: unexpected "then"\n', 2),
        ("echo 'a", "", "sh: syntax error: unterminated quoted string\n", 2),
        ("echo $((1 / 0)); echo b", "", "sh: divide by zero\n", 2),
        ("set -u; echo $NO; echo b", "", "sh: NO: parameter not set\n", 2),
        ("echo ${NO:?why}", "", "sh: NO: why\n", 2),
        ("set -x; echo a 'b c'", "a b c\n", "+ echo a 'b c'\n", 0),
        ("cd /d/none", "", "sh: cd: can't cd to /d/none: No such file or directory\n", 2),
        ("kill 4711", "", "kill: can't kill pid 4711: No such process\n", 1),
        ("sleep", "", "sleep: missing operand\n", 1),
        ("[ a -eq 1 ]", "", "[: a: bad number\n", 2),
        ("exec foobar; echo no", "", "sh: foobar: not found\n", 127),
    ],
)
def test_errors_of_a_shell(script: str, output: str, errors: str, code: int) -> None:
    assert outputs("sh", "-c", script) == (output, errors, code, "")


def test_an_archive_goes_on_from_a_byte_as_kubectl_cp_asks_for_it() -> None:
    whole, *_ = outputs("tar", "cf", "-", "/d")
    start, *_ = outputs("sh", "-c", "tar cf - '/d' | tail -c+0")
    rest, *_ = outputs("sh", "-c", "tar cf - '/d' | tail -c+101")
    assert whole == start and whole[100:] == rest and rest


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["foobar"], 'exec: "foobar": executable file not found in $PATH'),
        (["cd", "/"], 'exec: "cd": executable file not found in $PATH'),
        (["/app/run"], 'exec: "/app/run": stat /app/run: no such file or directory'),
        (["cat", "/app/x"], 'the sandbox cannot simulate "cat /app/x"'),
        (["find", "/app"], 'the sandbox cannot simulate "find /app"'),
        (["find", "/d", "-name", "f"], "find -name f is not simulated"),
        (["find", "/d", "-delete"], "find -delete is not simulated"),
        (["ls", "-la", "/d"], "ls -la is not simulated"),
        (["sort", "--reverse"], "sort --reverse is not simulated"),
        (["ls", "-" + "l" * 5000], "ls -" + "l" * 96 + " is not simulated"),
        (["chmod", "-x", "/d/f"], "chmod -x is not simulated"),
        (["sh", "-c", "ls /d/[^a]*"], "the pattern /d/[^a]* is not simulated"),
        (["sh", "-c", "ls /d/[[:alpha:]]"], "the pattern /d/[[:alpha:]] is not simulated"),
        (["sh", "-c", "ls /d/['*']*"], "the pattern /d/[*]* is not simulated"),
        (["bash", "-c", "mkdir -p /d/{a,b}"], "{…} is not simulated"),
        (["bash", "-c", "for i in {1..$N}; do echo $i; done"], "{…} is not simulated"),
        (["sh", "-c", "set -a"], "set -a is not simulated"),
        (["sh", "-c", "set -e -o vi"], "set -e -o vi is not simulated"),
        (["bash", "-e", "-o", "vi", "-c", "true"], "bash -e -o vi -c true is not simulated"),
        (["sh", "-c", "f() { :; }; X=1 f"], "an assignment before a function is not simulated"),
        (["sh", "-c", "echo a | cut -c1"], "cut is not simulated"),
        (["expr", "a", "=", "b"], "expr with these words is not simulated"),
        (["grep", "-P", "a"], "grep -P is not simulated"),
        (["sh", "-c", "true;" * 5000], "it takes too many steps"),
        (["sh", "-c", "while true; do :; done"], ""),
        (["/usr/bin/awk", "1"], "awk is not simulated"),
        (["sh", "-c", "case $1 in a) exit 1;; esac"], "case is not simulated"),
        (["sh", "-c", "echo a | tr a b"], "tr is not simulated"),
        (["wc", "/d/f"], "wc with these words is not simulated"),
        (["sh", "-c", "echo ${HOSTNAME%-*}"], "${HOSTNAME%…} is not simulated"),
        (["sh", "-c", "IFS=:; echo $PATH"], "IFS is not simulated"),
        (["sh", "-c", "echo $((1 ? 2 : 3))"], "$((…)) of more than decimal numbers, sums"),
        (["sh", "-c", "sleep 5 & kill $!"], "kill of a shell or of a command in the background is not simulated"),
        (["which", "awk"], "awk is not simulated"),
        (["test", "-x", "/usr/bin/awk"], "awk is not simulated"),
        (["test", "-x", "/app/run"], "it needs what is not known"),
        (["test", "-x", "/d/f"], "it needs what is not known"),
        (["sh", "-c", "exec 3>&1 >/dev/null; echo a >&3"], "it needs what is not known"),
        (["sh", "-c", "timeout 5 sleep 1 || exit 3"], "timeout is not simulated"),
        (["ln", "-s", "/d/f", "/d/g"], "ln is not simulated"),
        (["sh", "-c", "kill $$"], "kill of a shell or of a command in the background is not simulated"),
        (["[", "-d", "/d", "-a", "-f", "/d/f", "]"], "[ with these words is not simulated"),
    ],
)
def test_one_error(words: list[str], problem: str) -> None:
    output, errors, _, found = outputs(*words)
    assert (output, errors) == ("", "") and problem in found and bool(problem) == bool(found)


def test_braces_that_bash_takes_literally() -> None:
    script = "echo {} {a} }{ '{a,b}' \"{1..2}\"; X={a,b}; echo $X"
    assert outputs("bash", "-c", script) == ("{} {a} }{ {a,b} {1..2}\n{a,b}\n", "", 0, "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_found(name: str) -> None:
    found = outputs("which", name)
    assert found == (f"/bin/{name}\n", "", 0, ""), "take a new program out of _NOT_SIMULATED of interpreter.py"


def test_what_is_known_of_a_command_is_written() -> None:
    output, errors, _, problem = outputs("sh", "-c", "echo a; cat /app/x; echo b")
    assert (output, errors) == ("a\n", "") and "cannot simulate" in problem


def test_signals_for_the_first_process() -> None:
    known = answer(["sh", "-c", "kill -0 1 && sleep 2; kill 1; kill -s HUP 1; kill -9 1"], ENV, THERE)
    assert (known.signals, known.code, known.output) == (((2, "TERM"), (2, "HUP"), (2, "KILL")), 0, ())
    assert answer(["kill", "1"], ENV, THERE).signals == ((0, "TERM"),)


def test_input_that_is_too_long_to_be_known() -> None:
    there = There({}, ("/d",), has_long_input=True)
    written = answer(["sh", "-c", "cat > /d/f; echo done"], ENV, there)
    assert (written.problem, dict(written.files)) == ("", {"/d/f": None}) and written.output[0].text == "done\n"
    for words in (["cat"], ["wc", "-l"], ["tar", "xf", "-", "-C", "/d"]):
        assert "cannot simulate" in answer(words, ENV, there).problem


def fed(session: Session, *lines: str) -> list[tuple[str, int] | None]:
    """For each line the output and the exit code; None if it is not complete."""
    found: list[tuple[str, int] | None] = []
    for line in lines:
        known = session.feed(line, THERE, 0.0)
        found.append(None if known is None else ("".join(each.text for each in known[0].output), session.code))
    return found


def test_a_shell_answers_each_line() -> None:
    session = Session(Opened(("sh",)), ENV, THERE)
    lines = ("echo a\n", "foobar\n", "X=1; cd /d\n", "cat /app/x\n", "echo $? $X; ls\n", "if true\n", "if then\n")
    assert fed(session, *lines)[:3] == [("a\n", 0), ("sh: foobar: not found\n", 127), ("", 0)]
    refused, after, incomplete, _ = fed(session, *lines[3:])
    assert refused is not None and refused[0].startswith("sh: the sandbox cannot simulate") and refused[1] == 126
    assert (after, incomplete) == (("126 1\nf\n", 0), None)


def test_a_shell_ends() -> None:
    for lines, code in (
        (("trap 'exit 5' EXIT\n", "exit 3\n"), 5),
        (("f() { exit 4; }\n", "f\n"), 4),
        (("exec false\n",), 1),
    ):
        session = Session(Opened(("sh",)), ENV, THERE)
        *_, last = [session.feed(line, THERE, 0.0) for line in lines]
        assert last is not None and last[1] and session.code == code
    errors = [
        Session(Opened(("sh",)), ENV, THERE, interactive=on).feed("${x:?no}\n", THERE, 0.0) for on in (False, True)
    ]
    assert [found is not None and found[1] for found in errors] == [True, False]


def test_a_shell_keeps_its_state_after_what_it_cannot_simulate() -> None:
    session = Session(Opened(("sh",)), ENV, THERE)
    fed(session, "f() { sh -c 'cat /app/x'; }\n", "X=1 f 2>/d/e | cat\n")
    assert fed(session, "echo $X. $0\n") == [(". sh\n", 0)]


@pytest.mark.parametrize(
    ("command", "output"),
    [("find /d/a | tail -n 1", "/d" + "/a" * 1100), ("tar cf /d/x /d/a && echo done", "done")],
)
def test_deep_folders(command: str, output: str) -> None:
    found = outputs("sh", "-c", f"mkdir -p /d{'/a' * 1100}; {command}")
    assert found == (f"{output}\n", "", 0, "")

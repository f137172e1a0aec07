"""The outcomes of simple commands, and that any command is handled."""

import gzip
import math
import tarfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO
from tarfile import TarInfo
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.programs.control import NotFound
from kcm_cli.sandbox.programs.errors import Unknown, Unsupported
from kcm_cli.sandbox.programs.execution import Execution
from kcm_cli.sandbox.programs.filesystem import Files, There
from kcm_cli.sandbox.programs.simulate import log, reactions, simulate
from kcm_cli.sandbox.programs.syntax import MOST_CHARACTERS
from kcm_cli.sandbox.programs.tar_command import Arriving
from tests.kit.growth import grows_linearly


def outcome(
    words: Sequence[str],
    env: Mapping[str, str],
    scratch: tuple[str, ...] = (),
    files: Files = MappingProxyType({}),
    volumes: "Folders | None" = None,
) -> Execution | None:
    return simulate(words, env, There(files, scratch), host=volumes)


def outcome_among(
    there: There, words: Sequence[str], env: Mapping[str, str], until_s: float = math.inf
) -> Execution | None:
    return simulate(words, env, there, until_s)


SCRIPTS = {
    "exit 3": (0, 3),
    "exit 256": (0, 0),
    "sleep 5; exit 1": (5, 1),
    "sleep 1 && false": (1, 1),
    "false && sleep 5": (0, 1),
    "false || sleep 2": (2, 0),
    "true || exit 4; exit 5": (0, 5),
    "echo one; echo 'two; exit 9'; sleep 1m 30s": (90, 0),
    "echo oh no >&2\nsleep .5\n# why\nexit 2\n": (0.5, 2),
    "set -e; false; sleep 9": (0, 1),
    "set -e; false || true; sleep 9": (9, 0),
    "set -e; if false; then :; fi; sleep 9": (9, 0),
    "sleep 2 &&\n exit 7": (2, 7),
    "! true": (0, 1),
    "{ sleep 1; false; } || exit 6": (1, 6),
    "if [ 1 -eq 2 ]; then exit 1; elif true; then exit 2; else exit 3; fi": (0, 2),
    "if [[ -r /data/x ]]\nthen\n exit 0\nelse\n touch /data/x\n exit 1\nfi": (0, 1),
    "for i in 1 2 3; do echo $i; sleep 2; done; exit 3": (6, 3),
    "while true; do echo hi; sleep 10; done": (math.inf, 0),
    "until [ -f /tmp/done ]; do sleep 1; touch /tmp/done; done; exit 8": (1, 8),
    "exec sleep 3; exit 1": (3, 0),
    "sh -c 'sleep 2; exit 4'": (2, 4),
    "sh -c 'exit 4' || sleep 3": (3, 0),
    "exit $CODE": (0, 42),
    "exit $(expr ${INDEX} % 2)": (0, 1),
    "if [ $(( $INDEX * 2 )) -ne 6 ]; then exit 1; fi": (0, 0),
    "echo $(date) `id`; sleep 1": (1, 0),
    "sleep": (0, 1),
    "sleep soon": (0, 1),
    "": (0, 0),
    "sleep 5 &": (0, 0),
    "sleep 10 & exit 1": (0, 1),
    "sleep 10 & sleep 2; wait; exit 4": (10, 4),
    "sleep 3 && exit 5 & wait $!": (3, 5),
    "sleep 2 & sleep 1 & wait": (2, 0),
    "sleep infinity & wait": (math.inf, 0),
    "true & touch /data/x & test -f /data/x": (0, 0),
    "main() {\n  sleep 2\n  exit 7\n}\nmain": (2, 7),
    "ok(){ true; }; ok && exit 3": (0, 3),
    "i=0; while [ $i -lt 3 ]; do i=$((i+1)); sleep 1; done; exit $i": (3, 3),
    "i=3; until [ $i -eq 0 ]; do i=$((i - 1)); sleep 2; done": (6, 0),
    "exit $((CODE / 2))": (0, 21),
    "f() { exit $1; }; f 3": (0, 3),
    "f() { return 4; }; f; exit $(($? + 1))": (0, 5),
    "(exit 1)": (0, 1),
    "(sleep 2; exit 3) || exit 4": (2, 4),
    "while true; do sleep 1; i=$((i + 1)); [ $i = 3 ] && break; done; exit $i": (3, 3),
    "for i in 1 2 3; do [ $i = 2 ] && continue; sleep $i; done": (4, 0),
    "if false; then X=1; fi; set -u; echo $X; sleep 9": (0, 2),
    "export NOW=$(date); sleep 3; exit 2": (3, 2),
    "set -- a b; exit $#": (0, 2),
    "kill -9 $$$$ || exit 3": (0, 3),
    "set -o errexit; false; sleep 9": (0, 1),
    "set -euo pipefail; false; sleep 9": (0, 1),
    "trap 'exit 0' TERM; sleep 3; exit 5": (3, 5),
    "trap 'echo bye; exit 7' EXIT; sleep 1": (1, 7),
    "trap 'false' EXIT; exit 3": (0, 3),
    "i=0; while [ $i -lt 2 ]; do i=$((i+1)); false; done": (0, 1),
    "if false; then :; else exit $?; fi": (0, 1),
    "trap 'exit 7' EXIT; exec sleep 1": (1, 0),
    "cat <<EOF > /data/f\ncode 5\nEOF\n[ -s /data/f ] && exit 5": (0, 5),
}


OF_CONFORMANCE = {
    "\n if [ $(expr ${INDEX} % 2) -ne 0 ]; then\n exit 1\n else\n exit 0\n fi\n": (0, 1),
    'if [[ -r /data/$INDEX ]]; then exit 0; fi; touch "/data/$INDEX"; exit 1': (0, 1),
    "_t(){\n sleep 5\n exit 143\n}\ntrap _t SIGTERM\nwhile true; do\n sleep 1\ndone": (math.inf, 0),
    "sleep 1 & exit 1": (0, 1),
    'touch /data/r; [[ "$( cat /data/r )" == "" ]]': (0, 0),
    '[[ "${CODE:?}" == "${INDEX:?}" ]] && exit 4 || exit 5': (0, 5),
    "test $(id -u) -eq 0; exit $?": (0, 0),
    "printf $(hostname) > /data/h; dd if=/dev/zero of=/data/z bs=1 count=1 conv=fsync; exit 2": (0, 2),
    "sleep 2; for i in {1..3}; do echo $i; sleep 0.5; done; echo EOF": (2.5, 0),
    "echo ok >/data/health; sleep 10; rm -rf /data/health; sleep 600": (610, 0),
    "env | grep -E '(CODE|INDEX)' | sort; tail -n +2 /data/none || exit 7": (0, 7),
}
"""What containers of conformance specs run."""


@pytest.mark.parametrize("script", OF_CONFORMANCE)
def test_scripts_of_conformance_specs(script: str) -> None:
    env = {"CODE": "42", "INDEX": "3", "HOSTNAME": "web-0"}
    known = outcome(("/bin/sh", "-c", script), env, ("/data",))
    assert (None if known is None else (known.lasts_s, known.code)) == OF_CONFORMANCE[script]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts(script: str) -> None:
    known = outcome(("/bin/sh", "-c", script), {"CODE": "42", "INDEX": "3"}, ("/data",))
    assert known is not None
    lasts_s, code = SCRIPTS[script]
    assert (known.lasts_s, code if lasts_s == math.inf else known.code) == (lasts_s, code)


@pytest.mark.parametrize(
    ("words", "seconds", "code"),
    [
        (["sleep", "10"], 10, 0),
        (["/bin/sleep", "1h", "1m"], 3660, 0),
        (["/usr/bin/sleep", "infinity"], math.inf, 0),
        (["sleep", "9" * 400], math.inf, 0),
        (["sleep", "9" * 50_000 + "x"], 0, 1),
        (["true"], 0, 0),
        (["/bin/false"], 0, 1),
        (["echo", "exit", "1"], 0, 0),
        (["tail", "-f", "/dev/null"], math.inf, 0),
        (["bash", "-ec", "false; sleep 1"], 0, 1),
        (["bash", "-e", "-c", "false; sleep 1"], 0, 1),
    ],
)
def test_programs(words: list[str], seconds: float, code: int) -> None:
    known = outcome(words, {})
    assert known is not None
    assert (known.lasts_s, known.code) == (seconds, code)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo hi there; sleep 2; echo -n a; printf 'b\\tc\\n%s' d", [(0, "hi there\n"), (2, "a"), (2, "b\tc\nd")]),
        ("echo $NAME; echo '$NAME'; echo no >&2", [(0, "me\n"), (0, "$NAME\n"), (0, "no\n")]),
        ("echo a > /data/f; echo b >>f; echo c 2>/dev/null; echo d 1>f", [(0, "c\n")]),
        ("for i in 1 2; do echo x; sleep 1; done", [(0, "x\n"), (1, "x\n")]),
        ("if true > /dev/null; then echo yes; fi; exit 3 > f", [(0, "yes\n")]),
        ("while true; do echo x; sleep 1; done", [(0, "x\n")]),
        ("{ trap 'echo bye' EXIT; sleep 1; } & wait; echo after", [(1, "bye\n"), (1, "after\n")]),
    ],
)
def test_what_echo_writes(script: str, output: list[tuple[float, str]]) -> None:
    known = outcome(("sh", "-c", script), {"NAME": "me"}, ("/data",))
    assert known is not None
    assert [(at_s, text) for at_s, text, _ in known.output] == output


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nginx"],
        ["/app/sleep", "5"],
        ["exit", "1"],
        ["sh"],
        ["sh", "script.sh"],
        ["date", "--help", "me"],
        *(
            ["sh", "-c", script]
            for script in (
                "run-me; exit 1",
                "{ sleep 5; touch /tmp/x; } & sleep 9",
                "f() { f; }; f",
                "cat <<EOF\nno end",
                "sleep 5 | true",
                "cat <<EOF\n$UNSET\nEOF\nexit $UNSET",
                '[ "$UNSET" = on ]',
                "exit $UNSET",
                "sleep $UNSET",
                "exit $((UNSET + 1))",
                "cat f",
                "exit $HIDDEN",
                "sleep $HIDDEN",
                '[ -n "$HIDDEN" ] && exit 3',
                "case $HIDDEN in a) exit 1;; esac",
                "kill 1",
                "echo ${HIDDEN%x} | grep -q a",
                "exit $(( $RANDOM / 2 ))",
                "if true; then",
                "echo 'open",
                "[ -f /etc/config/x ] && exit 1",
                "fi",
                "for i in $HIDDEN; do sleep 1; done",
                "a=(1 2)",
                "cat <(echo a)",
                "echo ${A/b/c}",
                "{ " * 40 + "true" + "; }" * 40,
                "! " * 100 + "true",
                "true;" * MOST_CHARACTERS,
            )
        ),
    ],
)
def test_what_is_unknown(words: list[str]) -> None:
    assert simulate(words, {"HIDDEN": None}, There()) is None


def test_here_documents() -> None:
    script = (
        "N=you\ncat <<-END && echo after\n\thello  $N,\n\tand ${NAME}\n\tEND\ncat <<'E' >/data/f\nplain\nE\ncat /data/f"
    )
    known = outcome(("sh", "-c", script), {"NAME": "me"}, ("/data",))
    assert known is not None
    assert "".join(each.text for each in known.output) == "hello  you,\nand me\nafter\nplain\n"


def test_the_output_of_background_jobs_is_interleaved_and_ends_with_the_command() -> None:
    script = "for i in 1 2 3; do echo $i; sleep 2; done & sleep 1; echo x; sleep 2"
    known = outcome(("sh", "-c", script), {})
    assert known is not None
    assert [(each.at_s, each.text) for each in known.output] == [(0, "1\n"), (1, "x\n"), (2, "2\n")]


TRAPS = {
    "trap 'exit 0' TERM; while true; do sleep 1; done": {0.25: (1, 0), 7.5: (8, 0)},
    "trap exit TERM; sleep infinity & wait": {5: (5, 143)},
    "trap 'exit 3' SIGTERM INT; sleep 4; exit 5": {1: (4, 3), 4: None},
    "_t(){ sleep 5; exit 143; }; trap _t 15; sleep 3; while :; do sleep 2; done": {1: (8, 143), 8: (14, 143)},
    "trap 'sleep 30' TERM; while true; do sleep 1; done": {2.5: (math.inf, 0)},
    "trap '' TERM; sleep 10": {3: (10, 0)},
    "trap : TERM; sleep 5 & wait; exit 4": {2: (2, 4)},
    "trap 'echo x' TERM; sleep 5 & wait $!; exit $?": {2: (2, 143)},
    "stop=; trap 'stop=1' TERM; while [ -z \"$stop\" ]; do sleep 2; done; exit 6": {3: (4, 6)},
    "sleep 2; trap 'exit 1' TERM; sleep 2": {1: None, 3: (4, 1)},
    "trap 'exit 1' TERM; trap - TERM; sleep 2": {1: None},
    "trap 'exit 1' TERM; exec sleep 9": {1: None},
    "trap 'exit 9' EXIT; trap 'exit 1' TERM; sleep 2": {1: (2, 9)},
    "trap nobody-knows TERM; sleep 2": {1: None},
    "sleep 100": {1: None},
}


@pytest.mark.parametrize("script", TRAPS)
def test_reactions_to_sigterm(script: str) -> None:
    signals = reactions(("sh", "-c", script), {}, There())
    for asked_s, answer in TRAPS[script].items():
        assert (signals and signals.answer(asked_s)) == answer, asked_s


def test_files_are_found_by_the_next_run() -> None:
    script = ["sh", "-c", "if [ -f /data/x ]; then exit 0; fi; touch /data/x; exit 1"]
    first = outcome(script, {}, ("/data",))
    assert first is not None
    assert (first.lasts_s, first.code, first.files) == (0, 1, {"/data/x": ""})
    again = outcome(script, {}, ("/data",), first.files)
    assert again is not None and again.code == 0


def test_variables_that_a_script_sets() -> None:
    cases = {
        "X=5; echo ${X:-2} $X": "5 5\n",
        "echo ${X:-2}; X=5": "2\n",
        "X=; echo ${X:-2} ${X-3}.": "2 .\n",
        "NAME=you; echo $NAME": "you\n",
        "echo $NAME; NAME=you": "me\n",
        "export A=b; echo ${A:-c}": "b\n",
        "if false; then X=1; fi; echo ${X:-2}": "2\n",
        "for X in a b; do echo ${X:-2}; done": "a\nb\n",
    }
    for script, text in cases.items():
        known = outcome(("sh", "-c", script), {"NAME": "me"})
        assert known is not None, script
        assert "".join(each.text for each in known.output) == text, script


def test_files_over_time() -> None:
    known = outcome(("sh", "-c", "echo ok > /tmp/h; sleep 10; rm -rf /tmp/h; sleep 600"), {})
    assert known is not None
    assert known.stages == ((0, {"/tmp/h": "ok\n"}, frozenset()), (10, {}, {"/tmp/h"}))
    toggles = outcome(("sh", "-c", "while true; do touch /h; sleep 5; rm /h; sleep 5; done"), {})
    assert toggles is not None
    assert toggles.stages == ()


def test_files_are_moved() -> None:
    script = "mv -v /srv/index.html /tmp/ || true; test -f /srv/index.html && exit 3; cp /tmp/index.html /srv"
    known = outcome(("sh", "-c", script), {}, ("/srv",), {"/srv/index.html": "hi"})
    assert known is not None
    assert known.files == {"/tmp/index.html": "hi", "/srv/index.html": "hi"}
    assert [each.text for each in known.output] == ["renamed '/srv/index.html' -> '/tmp/index.html'\n"]
    unknown = outcome(("sh", "-c", "mv /etc/x /tmp/; cat /etc/x"), {})
    assert unknown is not None
    assert (unknown.code, unknown.gone) == (1, {"/etc/x"})
    back = outcome(("sh", "-c", "mv /index.html /tmp/; mv /tmp/index.html /"), {})
    assert back is not None
    assert (set(back.files), back.gone) == ({"/index.html"}, {"/tmp/index.html"})
    made = outcome(("dd", "if=/dev/zero", "of=/data/go", "bs=1", "count=1", "conv=fsync"), {})
    assert made is not None
    assert made.files == {"/data/go": None}


def test_a_file_that_is_moved_or_copied_to_itself_stays() -> None:
    known = outcome(("sh", "-c", "touch a; mv a a && mv a .; cp a ./a"), {}, ("/d",), {}, Folders("/d"))
    assert known is not None
    assert (known.code, known.files, known.gone) == (1, {"/d/a": ""}, frozenset())
    assert [each.text for each in known.output] == ["cp: 'a' and './a' are the same file\n"]


def test_unknown_folders_are_not_moved() -> None:
    for script in ("cp /config /tmp/", "mv /config /x", "cp / /tmp"):
        assert outcome(("sh", "-c", script), {}, ("/tmp",), {}, Folders("/d")) is None, script


def test_endless_growth_is_unknown() -> None:
    env = {"A": "x" * 100_000}
    for script in ("echo " + "$A" * 2000, 'echo "' + "$A" * 1000 + '"', "echo " + "$A" * 2000 + "; A=1"):
        assert outcome(["sh", "-c", script], env) is None
    folders = f"X={'x' * 1000}; cd /tmp; for i in {'1 ' * 600}; do mkdir -p $X; cd $X; done"
    assert outcome(["sh", "-c", folders], {}, ("/tmp",)) is None


@pytest.mark.parametrize(
    "body",
    ["a=1;" * 400, "[[ a = a ]];" * 150, f"echo {'a ' * 900} > /dev/null;", "{ } & " * 300, "{ }; " * 400],
)
def test_programs_that_cost_too_much_are_unknown(body: str) -> None:
    assert outcome(["sh", "-c", f"for i in {'1 ' * 950}; do {body} done"], {}) is None


@pytest.mark.parametrize("body", ["for j in $X; do break; done", "ls /d/$i" + "*a" * 1000])
def test_many_fields_and_long_patterns_cost_too_much(body: str) -> None:
    script = f"touch /d/a; for i in $(seq 900); do {body}; done"
    assert outcome(["sh", "-c", script], {"X": "1 " * 9000}, ("/d",)) is None


def test_shells_and_functions_in_each_other_are_bounded() -> None:
    inside = "f() { " + "if true; then " * 13 + "f; " + "fi; " * 13 + "}; f"
    env = {"E0": inside}
    for number in range(1, 13):
        env[f"E{number}"] = "if true; then " * 13 + f'sh -c "$E{number - 1}"; ' + "fi; " * 13
    for script in (env["E12"], inside, "f() { " + "! " * 14 + "f; }; f", "f() { f & f & }; f"):
        assert outcome(["sh", "-c", script], env) is None


def test_output_into_a_removed_file_is_lost() -> None:
    scripts = ("rm f g >f 2>&1", "mv -v f g >f", "f() { rm x; echo hi; }; f >x")
    for script, left in zip(scripts, ({}, {"/tmp/g": ""}, {}), strict=True):
        known = outcome(["sh", "-c", f"cd /tmp; {script}"], {}, ("/tmp",))
        assert known is not None and known.files == left and known.output == (), script


@pytest.mark.parametrize("value", ["\x0699\x06", "\x07", "$(reboot)", "a; exit 1", "`x`", "a | b", "'", '"', "\\"])
def test_a_value_is_not_interpreted(value: str) -> None:
    known = simulate(
        ["sh", "-c", 'x="$A"; echo "$x" > /d/f; trap "echo $x" USR1; cat /d/f'], {"A": value}, There({}, ("/d",))
    )
    assert known is not None and [each.text for each in known.output] == [f"{value}\n"]


def test_unknown_output_is_not_written() -> None:
    for script in ("X=$(date); echo ${X:-2}; sleep 1", "echo a $HIDDEN", "printf %s $HIDDEN", "env", "date"):
        known = simulate(("sh", "-c", script), {"HIDDEN": None}, There())
        assert known is not None and not known.output_known and known.output == (), script
        with pytest.raises(Unknown):
            log(("sh", "-c", script), {"HIDDEN": None}, There(), 9)
    known = simulate(("sh", "-c", "echo $HIDDEN > /d/f; echo b"), {"HIDDEN": None}, There({}, ("/d",)))
    assert known is not None and known.output_known and dict(known.files) == {"/d/f": None}


def test_a_tested_function_does_not_end_the_shell() -> None:
    for use in ("f || exit 9", "if ! f; then exit 9; fi", "f && exit 3"):
        known = outcome(["sh", "-c", f"set -e; f() {{ false; {{ false; }}; sleep 2; }}; {use}; exit 3"], {})
        assert known is not None and (known.lasts_s, known.code) == (2, 3), use
    known = outcome(["sh", "-c", "set -e; f() { false; sleep 2; }; f; exit 3"], {})
    assert known is not None and (known.lasts_s, known.code) == (0, 1)


def test_functions_are_not_inherited() -> None:
    assert outcome(["sh", "-c", "f() { exit 3; }; sh -c f"], {}) is None
    known = outcome(["sh", "-c", "f() { exit 3; }; sh -c 'f() { exit 4; }; f'; f"], {})
    assert known is not None and known.code == 3


def test_defaults_of_what_a_loop_may_set_are_looked_for_once() -> None:
    def run(size: int) -> Callable[[], object]:
        return lambda: outcome(["sh", "-c", "${X:-}" * size + " for" * size], {})

    assert grows_linearly(run, 50)


class Folders:
    """A working directory, and a folder ``/config``."""

    fqdn, user, group, groups = "", None, None, ()
    command = ("sh", "-c", "trap 'exit 0' INT; sleep 9")

    def __init__(self, working_dir: str) -> None:
        self.working_dir = working_dir

    def read(self, path: str) -> bytes:
        raise IsADirectoryError if path == "/config" else LookupError

    def names(self, path: str) -> Sequence[str]:
        raise LookupError

    def read_only(self, path: str) -> bool:
        return False

    def mount_point(self, path: str) -> str:
        return ""


class Keys(Folders):
    def names(self, path: str) -> Sequence[str]:
        return ("key",)


TEXT = (
    "sleep exit true false echo if then else fi while do done for in { } ! && || ; 5 $X touch [ ] -f /tmp/a sh -c"
    " test -d cat ls mkdir rm -rf ${A:-b} > >> /d/f /d 2>&1 >&2 2>/dev/null $(cat /d/f) `cat /v` /d/* env printenv"
    " tail grep a sort head tee | -n wc -l hostname mv cp dd X=a $X id -u export \" ' & wait trap TERM EXIT f() <<E E"
    " $((X+1)) $? exit"
)
words = st.sampled_from([*TEXT.split(), "\n"])


@given(st.lists(words, max_size=30).map(" ".join) | st.text(max_size=60))
def test_any_script_is_handled(script: str) -> None:
    known = outcome(["sh", "-c", script], {"X": "1"}, ("/d",))
    assert known is None or (known.lasts_s >= 0 and 0 <= known.code < 256)


class Users(Folders):
    user, group, groups = 1001, 0, (3000, 0)


def test_the_user_of_a_program() -> None:
    known = outcome(("sh", "-c", "id; id -u; id -g; id -G"), {}, volumes=Users("/"))
    assert known is not None
    lines = ["uid=1001 gid=0(root) groups=0(root),3000", "1001", "0", "0 3000"]
    assert [each.text for each in known.output] == [f"{line}\n" for line in lines]
    root = outcome(("sh", "-c", "id; id -un; whoami"), {}, volumes=Folders("/"))
    assert root is not None
    assert "".join(each.text for each in root.output) == "uid=0(root) gid=0(root) groups=0(root)\nroot\nroot\n"
    other = outcome(("whoami",), {}, volumes=Users("/"))
    assert other is not None and other.code == 1


def test_a_shell_sees_the_variables_that_its_parent_exports() -> None:
    cases = {
        "X=a; sh -c 'echo [$X]'": "[]\n",
        "X=a; export X; sh -c 'echo [$X]'": "[a]\n",
        "export X=a; sh -c 'echo [$X]'; sh -c 'X=b; echo [$X]'; echo $X": "[a]\n[b]\na\n",
        'X=a; sh -c "echo [$X]"': "[a]\n",
        'X=a; export X; sh -c "X=b; echo [$X] \\$X"; echo $X': "[a] b\na\n",
        "NAME=you; sh -c 'echo $NAME'": "you\n",
        "sh -c 'NAME=you'; echo $NAME": "me\n",
        "export X=a; sh -c \"sh -c 'echo [$X]'\"": "[a]\n",
        "X=a Y=b sh -c 'echo [$X$Y]'; echo [${X:-no}]": "[ab]\n[no]\n",
        "X=a; Y=b sh -c 'echo [$X] ${X:-no}'": "[] no\n",
        "for X in a b; do sh -c 'echo [$X]'; done": "[]\n[]\n",
        "export X=a; env": "NAME=me\nX=a\n",
        "X=a printenv X": "a\n",
        "X=a; export X; X=b; printenv X": "b\n",
        "X=a; echo '$X' \"$X\" \"'$X'\" \\$X": "$X a 'a' $X\n",
        "# don't\nX=a; echo \"$X\" # nor 'this $X": "a\n",
        "trap 'echo bye $X' EXIT; X=a": "bye a\n",
        "f() { export X=a; }; f; sh -c 'echo $X'": "a\n",
        "trap 'echo $?' EXIT; exit 3": "3\n",
        "X=a; echo '<$X>' \"<$X>\" 'a > b'": "<$X> <a> a > b\n",
    }
    for script, text in cases.items():
        known = outcome(("sh", "-c", script), {"NAME": "me"})
        assert known is not None, script
        assert "".join(each.text for each in known.output) == text, script
    unknown = outcome(("sh", "-c", "export X=$(date); sh -c 'exit $X'"), {})
    assert unknown is None


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (
            "printf '%s-%d\\n' a 1 b; printf '%s%%' x; printf 'a b'; printf '%s'",
            "a-1\nb-0\nx%a b",
        ),
        ('printf %s "$NAME"', "me"),
        ("seq 3; seq 2 3; seq 5 -2 2", "1\n2\n3\n2\n3\n5\n3\n"),
        ("for i in $(seq 1 3) `seq 9 9`; do echo $i; done", "1\n2\n3\n9\n"),
        (
            "date; sleep 61; date +%F-%s; date -u '+%H:%M %%'",
            "Mon Jul  1 10:00:00 UTC 2030\n2030-07-01-1909130461\n10:01 %\n",
        ),
        ("date foo || date > /d/now; cat /d/now", "date: invalid date 'foo'\nMon Jul  1 10:00:00 UTC 2030\n"),
        ("cat; cat; echo x | cat", "a\nb\nx\n"),
        ("echo first; sort -r; cat", "first\nb\na\n"),
        ("cat < /dev/null; sh -c 'cat > /d/f'; cat /d/f", "a\nb\n"),
        ("cd /d; touch f; ls", "f\n"),
        ("printf", None),
        ("printf -v x y", None),
        ("printf '\\x41\\101'", "AA"),
        ("printf %f 1", None),
        ("printf %5s x", None),
        ("printf %d x", None),
        ("seq 99999", None),
        ("seq 1 0 2", None),
        ("date -d yesterday", None),
    ],
)
def test_commands_with_a_time_and_input(script: str, text: str | None) -> None:
    there = There({}, ("/d",), began=datetime(2030, 7, 1, 10, tzinfo=UTC), input="a\nb\n")
    known = outcome_among(there, ("sh", "-c", script), {"NAME": "me"})
    assert (None if known is None else "".join(each.text for each in known.output)) == text


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("echo a; while true; do echo x; sleep 2; done", [(0, "a"), (0, "x"), (2, "x"), (4, "x")]),
        ("i=0; while true; do echo $i; i=$((i+1)); sleep 2; done", [(0, "0"), (2, "1"), (4, "2")]),
        ("while true; do date +%S; sleep 2; done", [(0, "00"), (2, "02"), (4, "04")]),
        ("while true; do echo x >> /tmp/f; grep -c x /tmp/f; sleep 2; done", [(0, "1"), (2, "2"), (4, "3")]),
        ("while true; do echo x | tee -a /tmp/f; sleep 2; done", [(0, "x"), (2, "x"), (4, "x")]),
        ("sleep 4; echo x; sleep 4; echo y", [(4, "x")]),
    ],
)
def test_the_output_until_a_time(script: str, lines: list[tuple[float, str]]) -> None:
    there = There(began=datetime(2030, 7, 1, 10, tzinfo=UTC))
    known = outcome_among(there, ("sh", "-c", script), {}, until_s=5.0)
    assert known is not None and (known.is_cut or known.repeated[1])
    assert [(at_s, text.strip()) for at_s, text, _ in known.written(5.0)] == lines


@pytest.mark.parametrize(
    ("loop", "count", "last_s"),
    [
        ("echo a; sleep 1", 1002, 1e6),
        ("seq 2000; sleep 1", 12, 1e6),
        ("echo a; sleep 0." + "0" * 310 + "1", 1002, 0.0),
    ],
)
def test_of_an_endless_loop_the_last_iterations_are_known(loop: str, count: int, last_s: float) -> None:
    known = simulate(["sh", "-c", f"while true; do {loop}; done"], {}, There(), until_s=1e6)
    assert known is not None
    written = list(known.written(1e6))
    assert (len(written), written[0].at_s, written[-1].at_s) == (count, 0.0, pytest.approx(last_s))
    assert known.kept_s() == pytest.approx((count - 2) * known.repeated[1])


def test_a_program_that_waits_forever_writes_no_more() -> None:
    known = outcome_among(There(), ("sh", "-c", "echo x; sleep infinity"), {}, until_s=5.0)
    assert known is not None and not known.is_cut and not known.repeated[1]


def test_archives_are_written_and_read() -> None:
    files = {"/d/a": "1\n", "/d/s/b": "\udcff", "/d/s/": ""}
    there = There(files, ("/d", "/e"))

    def run(there: There, *words: str) -> Execution:
        known = outcome_among(there, words, {})
        assert known is not None
        return known

    written = run(there, "tar", "cf", "-", "-C", "/d", "a", "s", "none")
    assert written.code == 1 and [each.error for each in written.output] == [True, False]
    packed = written.output[1].text
    read = run(There(files, ("/d", "/e"), input=packed), "tar", "-xmf", "-", "-C", "/e")
    assert read.code == 0 and read.files == {**files, "/e/a": "1\n", "/e/s/b": "\udcff", "/e/s/": ""}
    zipped = run(there, "tar", "czf", "-", "/d/a").output[0].text.encode("utf-8", "surrogateescape")
    assert b"d/a" in gzip.decompress(zipped)
    assert run(There(input="no"), "tar", "xf", "-", "-C", "/e").code == 1
    create = ["tar", "cf", "-", "-C", "/d"]
    for words in (["tar"], ["tar", "xf", "-"], ["tar", "cf", "/d", "-C", "/d", "a"], ["tar", "cjf", "-", "/d/a"]):
        assert outcome_among(there, words, {}) is None
    assert outcome_among(there, [*create, ""], {}) is None


def test_archives_that_are_compressed_and_in_files() -> None:
    """``tar xvf - -C DIR`` is what the examples of clients run."""
    files: dict[str, str | None] = {"/d/a": "1\n", "/d/s/b": "\udcff", "/d/s/": ""}

    def run(given: str | None, *words: str) -> tuple[dict[str, str | None], list[str], int]:
        known = outcome_among(There(files, ("/d", "/e"), input=given), words, {})
        assert known is not None
        new = {path: text for path, text in known.files.items() if path not in files}
        return new, [f"{'!' if each.error else ''}{each.text}" for each in known.output], known.code

    _, (*names, archive), _ = run(None, "tar", "czvf", "-", "-C", "/d", "a", "s")
    assert names == ["!a\n", "!s/\n", "!s/b\n"]
    unpacked = {"/e/a": "1\n", "/e/s/": "", "/e/s/b": "\udcff"}
    for words in (("xzvf", "-", "-C", "/e"), ("-C", "/e", "-x", "-z", "-v", "-f", "-")):
        assert run(archive, "tar", *words) == (unpacked, ["a\n", "s/\n", "s/b\n"], 0)
    for broken in ("no", archive[:20]):
        assert run(broken, "tar", "xzf", "-", "-C", "/e") == ({}, ["!tar: invalid tar magic\n"], 1)
    written, said, _ = run(None, "tar", "cvf", "/e/x", "-C", "/d", "a")
    assert (list(written), said) == (["/e/x"], ["a\n"])
    moved, *rest = run(None, "sh", "-c", "tar cf /e/x -C /d a && cd /e && tar xf x && rm x")
    assert (moved, rest) == ({"/e/a": "1\n"}, [[], 0])
    assert run(None, "tar", "xf", "/e/none", "-C", "/e") == (
        {}, ["!tar: can't open '/e/none': No such file or directory\n"], 1,
    )  # fmt: skip


def packed(content: bytes, **pax: str) -> bytes:
    found, info = BytesIO(), TarInfo("f")
    info.size, info.pax_headers = len(content), pax
    with tarfile.open(fileobj=found, mode="w") as archive:
        archive.addfile(info, BytesIO(content))
    return found.getvalue()


@pytest.mark.parametrize(
    ("pax", "code"),
    [
        ({"GNU.sparse.size": "9999", "GNU.sparse.map": "0,3"}, None),
        ({"GNU.sparse.map": "0,x"}, 1),
        ({"size": "9" * 40}, 1),
    ],
    ids=["sparse", "no number", "too large"],
)
def test_an_archive_cannot_make_more_than_it_has(pax: dict[str, str], code: int | None) -> None:
    there = There(scratch=("/d",), input=packed(b"abc", **pax).decode("utf-8", "surrogateescape"))
    known = outcome_among(there, ["tar", "xf", "-", "-C", "/d"], {})
    assert (None if known is None else known.code) == code


@pytest.mark.parametrize(
    ("script", "lines"),
    [("echo a; sleep 5; echo b", 2), ("while :; do i=$((i+1)); sleep 1; done", 1)],
)
def test_the_log_of_a_program(script: str, lines: int) -> None:
    assert len(log(("sh", "-c", script), {"i": "0"}, There(), 9999).output) == lines


@pytest.mark.parametrize(
    ("script", "why"), [("echo a; ./server", NotFound), ("echo a; case a in b) c;; esac", Unsupported)]
)
def test_why_the_log_of_a_program_is_unknown(script: str, why: type[Unknown]) -> None:
    with pytest.raises(why):
        log(("sh", "-c", script), {}, There(), 9999)


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "archive",
    [
        header("a") + header("b", -512),
        header("a") + b"x" * 512,
        header("l", 0, tarfile.GNUTYPE_LONGNAME) * 3000,
        header("a", 1 << 40),
    ],
    ids=["a negative size", "no header", "nested headers", "a huge size"],
)
def test_an_invalid_archive_is_refused(archive: bytes) -> None:
    archive += bytes(1024)
    there = There(scratch=("/d",), input=archive.decode("utf-8", "surrogateescape"))
    known = outcome_among(there, ["tar", "xf", "-", "-C", "/d"], {})
    assert known is not None and known.code == 1


@pytest.mark.parametrize(
    ("name", "kind", "files"),
    [
        ("../f", tarfile.REGTYPE, None),
        ("a/../../f", tarfile.REGTYPE, None),
        (".", tarfile.REGTYPE, None),
        ("f", tarfile.LNKTYPE, None),
        ("/f", tarfile.REGTYPE, {"/d/f": ""}),
        ("f", tarfile.SYMTYPE, {"/d/f": None}),
    ],
)
def test_an_archive_is_read_into_its_folder(name: str, kind: bytes, files: dict[str, str | None] | None) -> None:
    archive = (header(name, 0, kind) + bytes(1024)).decode("utf-8", "surrogateescape")
    known = outcome_among(There(scratch=("/d",), input=archive), ["tar", "xf", "-", "-C", "/d"], {})
    assert (None if known is None else known.files) == files


@pytest.mark.parametrize("words", [("tar", "xf", "-"), ("tar", "cf", "-", "a")])
@pytest.mark.parametrize("folder", ["/d/none", "/d/a"])
def test_tar_changes_to_a_folder_that_exists(words: Sequence[str], folder: str) -> None:
    there = There({"/d/a": ""}, ("/d",), input=packed(b"x").decode())
    known = outcome_among(there, [*words, "-C", folder], {})
    assert known is not None and (known.code, known.files) == (1, {"/d/a": ""})
    assert [each.text for each in known.output] == [
        f"tar: can't change directory to '{folder}': No such file or directory\n"
    ]


@pytest.mark.parametrize("options", [(), ("-C", "."), ("-C", "/d/app")])
def test_the_working_directory_exists(options: Sequence[str]) -> None:
    there = There(scratch=("/d",), input=packed(b"x").decode())
    known = simulate(["tar", "xf", "-", *options], {}, there, host=Folders("/d/app"))
    assert known is not None and (known.code, known.files) == (0, {"/d/app/f": "x"})


def test_an_archive_ends_after_its_content() -> None:
    archive, arriving = packed(bytes(5000)), Arriving()
    for size in (0, 512, 2048, 512 + 5000, 512 + 5120, 512 + 5120 + 512):
        assert not arriving.is_whole(archive[:size])
        assert not Arriving().is_whole(archive[:size])
    assert arriving.is_whole(archive) and Arriving().is_whole(archive)


@pytest.mark.parametrize(
    ("archive", "whole"),
    [
        (bytes(1024), True),
        (b"x" * 512 + bytes(1024), False),
        (header("a") + header("b", -512) + bytes(1024), False),
        (header("a") + header("d", 512, tarfile.DIRTYPE) + bytes(1024), True),
        (header("a", 1 << 40) + bytes(1024), False),
        (header("l", 0, tarfile.GNUTYPE_LONGNAME) + header("a") + bytes(1024), True),
    ],
    ids=["empty", "no header", "a negative size", "a folder with a size", "a huge size", "a long name"],
)
def test_the_end_of_an_archive(archive: bytes, whole: bool) -> None:
    assert Arriving().is_whole(archive) is whole


def test_looking_for_the_end_costs_as_much_as_the_archive_is_long() -> None:
    def prepare(members: int) -> Callable[[], object]:
        archive = (header("f", 1536) + bytes(1536)) * members
        parts = range(0, len(archive), 2048)

        def call() -> None:
            arriving, data = Arriving(), bytearray()
            for start in parts:
                data += archive[start : start + 2048]
                assert not arriving.is_whole(data)

        return call

    assert grows_linearly(prepare, 100)


PIPELINES = {
    "env | grep -E '(NAME|X)' | sort": "NAME=me\n",
    "printf 'b\\na\\nb\\n' | sort -u | tee /d/g; grep -c . /d/g; sort -r /d/g | tail -1": "a\nb\n2\na\n",
    "echo x | tee -a /d/g | grep -c x; cat /d/g": "1\nx\n",
    "echo abc | grep -q a.c && echo yes; echo abc | grep -v b || echo no": "yes\nno\n",
    "echo Abc | grep -i ^aB; echo 'a(b' | grep -F '(' ; echo 'x|y' \"|\" \\; '&&' | cat": "Abc\na(b\nx|y | ; &&\n",
    "false | true; echo $?; true | false; echo $?; ! true | false; echo $?": "0\n1\n0\n",
    "echo a | sh -c 'cat; echo b' | cat": "a\nb\n",
    "if echo a | grep -q b; then echo b; else\n echo c |\n cat; fi": "c\n",
    "printf 'a\\nb' | tail -n 1; echo; printf a | tail -n 1; echo": "b\na\n",
    "for x in 'a;b' 'c|d'; do export x; printenv x; done": "a;b\nc|d\n",
    "echo a > /d/f; echo b | cat < /d/f; echo b | cat </dev/null; grep -c a 0< '/d/f'": "a\n1\n",
    "cat < /d/none || echo no": "sh: can't open /d/none: no such file\nno\n",
    "true < /unknown; for x in a; do echo $x; done < /dev/null": "a\n",
    "echo a | cat < /unknown": None,
    "cat < /d": None,
    "i=5; echo $i>/d/f; echo a2>>/d/f; echo $N>>/d/f; echo $((N+1))>>/d/f; cat</d/f": "5\na2\n3\n4\n",
    "echo a 2>/dev/null; cat /d/no 2>&1 >/dev/null; echo b 1>/d/f": "a\ncat: /d/no: No such file or directory\n",
    "sort /d/none /d/none": None,
    "echo hi | { cat; }": "hi\n",
    "f() { x=5; }; f | cat; echo $x": "\n",
    "f() { exit 3; }; f | cat; echo still": "still\n",
    "echo a > /d/f; echo b > /d/g; grep a /d/*": None,
    "echo a | exit 3; echo $?": "3\n",
    "echo a | X=1": "",
    "echo a | tee /d/none/f /d/f": None,
    "date | cat": None,
    "sleep 1 | cat": None,
    "echo a | grep 'x*y'": None,
    "echo $(date) | grep 2": None,
    "sort": None,
}


@pytest.mark.parametrize("script", PIPELINES)
def test_pipelines(script: str) -> None:
    known = outcome(("sh", "-c", script), {"NAME": "me", "N": "3"}, ("/d",))
    text = None if known is None else "".join(each.text for each in known.output)
    assert text == PIPELINES[script]
    assert known is None or not any("|" in path for path in known.files)


def test_a_failure_within_a_pipeline() -> None:
    known = outcome(("bash", "-c", "set -eo pipefail; false | true; exit 3"), {})
    assert known is not None and known.code == 1
    known = outcome(("bash", "-euo", "pipefail", "-c", "false | true; exit 3"), {})
    assert known is not None and known.code == 1
    known = outcome(("bash", "-o", "errexit", "-o", "pipefail", "-c", "false | true; exit 3"), {})
    assert known is not None and known.code == 1
    known = outcome(("bash", "-c", "set -e; false | true; exit 3"), {})
    assert known is not None and known.code == 3
    stays = outcome(("sh", "-c", "tail -f /dev/null | cat"), {})
    assert stays is not None and (stays.lasts_s, dict(stays.files)) == (math.inf, {})


def test_pipelines_of_long_texts_cost_too_much() -> None:
    class Long(Folders):
        def read(self, path: str) -> bytes:
            return b"a\n" * (1 << 19)

    for script in (f"grep {'.' * 3000} /v/f", "sort -u /v/f", "cat /v/f | sort | tail -n 3", "sh -c env; " * 300):
        env = dict.fromkeys(map(str, range(10000)), "x")
        assert outcome(("sh", "-c", script), env, volumes=Long("/v")) is None


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("pgrep -u $(whoami) -f trap", "1\n"),
        ("pgrep -f sleep; pgrep sh", "1\n1\n"),
        ("pgrep nginx || pgrep -u nobody -f sleep || echo none", "none\n"),
        ("pgrep 'a*'", None),
    ],
)
def test_the_first_process(script: str, text: str | None) -> None:
    known = outcome(("sh", "-c", script), {}, volumes=Folders("/"))
    assert (None if known is None else "".join(each.text for each in known.output)) == text


@pytest.mark.parametrize(("options", "text"), [("", "key\n"), ("-1", "key\n"), ("-a", None), ("-A", None)])
def test_hidden_names_in_the_folder_of_a_config_map(options: str, text: str | None) -> None:
    known = outcome(("sh", "-c", f"ls {options} /config"), {}, volumes=Keys("/"))
    assert (None if known is None else "".join(each.text for each in known.output)) == text


def test_a_shell_on_a_terminal_is_used_there() -> None:
    there = There(input="", has_terminal=True)
    known = simulate(["sh", "-c", "echo hi; exec bash -l; echo no"], {}, there)
    assert known is not None and known.shell is not None and known.shell.words == ("bash", "-l")
    assert [each.text for each in known.output] == ["hi\n"]
    known = simulate(["sh", "-c", "echo hi; (bash || sh)"], {}, there)
    assert known is not None and known.shell is not None and known.shell.words == ("bash",)
    known = simulate(["sh", "-c", "sh; echo after"], {}, There(input="echo in\n"))
    assert known is not None and known.shell is None and [each.text for each in known.output] == ["in\n", "after\n"]

"""The command ``kcm`` as its users see it. Nothing here starts a manager."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kcm_cli.cli.main import main
from kcm_cli.component.version import OWN_VERSION, TESTED
from tests.kit.places import ROOT

SERVERS = "For API servers v1.36 and v1.37; tested with kube-apiserver v1.36.2.\n"
KCM = (sys.executable, "-m", "kcm_cli.cli.main")


def run(*args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A process of its own, as a shell would start it (test runners set COLUMNS; a pipe has no width)."""
    own = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run([*KCM, *args], capture_output=True, text=True, timeout=60, env={**own, **(env or {})})


@pytest.mark.parametrize(
    ("args", "line"),
    [
        pytest.param(
            ["--concurent-gc-syncs=5"],
            "Error: unknown flag: --concurent-gc-syncs (did you mean --concurrent-gc-syncs?)",
            id="unknown flag",
        ),
        pytest.param(["start"], "Error: unexpected argument: start (see kcm --help)", id="positional"),
        pytest.param(["sandbx"], "Error: unexpected argument: sandbx (did you mean kcm sandbox?)", id="command"),
        pytest.param(["version"], "Error: unexpected argument: version (kcm --version)", id="flag"),
        pytest.param(
            ["-v2", "sandbox"],
            "Error: unexpected argument: sandbox (it goes first: kcm sandbox [flags])",
            id="command behind flags",
        ),
        pytest.param(
            ["--leader-elect", "false"],
            "Error: unexpected argument: false (a bool is set with =: --flag=false)",
            id="bool",
        ),
        pytest.param(
            ["--concurrent-gc-syncs=many"],
            'Error: invalid argument "many" for "--concurrent-gc-syncs" flag: must be a whole number',
            id="bad value",
        ),
        pytest.param(["--kubeconfig"], "Error: flag needs an argument: --kubeconfig", id="no value"),
        pytest.param(
            ["--controllers=*,nope"],
            'Error: "nope" is not in the list of known controllers (kcm --help lists them)',
            id="unknown controller",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_1(args: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.splitlines() == [line]


@pytest.mark.parametrize("command", [["sandbox"], ["sandbox", "nodes", "add"]])
def test_a_missing_package_is_named_with_the_install_command(command: list[str]) -> None:
    code = "import sys; sys.modules['httptools'] = None; from kcm_cli.cli.main import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "Error: kcm sandbox needs the package httptools, which is not installed: reinstall kcm with its dependencies\n"
    )


def test_a_missing_module_of_kcm_is_a_bug() -> None:
    code = "import sys; sys.modules['kcm_cli.sandbox.run'] = None; from kcm_cli.cli.main import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "sandbox"], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[0].startswith("Traceback")


def test_ctrl_c_at_any_time_leaves_no_traceback() -> None:
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[1:] = ['--version'];"
    code += "from kcm_cli.cli.main import main; main();"
    code += "print(signal.getsignal(signal.SIGINT) == signal.SIG_DFL)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[1] == "True"


@pytest.mark.parametrize(("pid", "code"), [(1, 143), (2, -signal.SIGTERM)])
def test_sigterm_ends_the_first_process_of_a_container_while_modules_are_loaded(pid: int, code: int) -> None:
    """The kernel drops what such a process does not handle (daily-co/pipecat-cloud-images#104)."""
    program = f"""
import os, signal, sys
os.getpid, own = lambda: {pid}, os.getpid()
from kcm_cli.cli import main
main._run = lambda args: os.kill(own, signal.SIGTERM)
sys.exit(main.main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_output_to_a_full_disk_is_one_error_line(flag: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*KCM, flag], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "Error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("command", [["--version"], ["--help"], ["plan", "--help"]])
def test_output_that_nobody_reads_ends_the_command(command: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run([*KCM, *command], stdout=writes, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--help", 0), ("--nosuch", 1)])
@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_standard_streams_can_be_closed(argument: str, code: int, closed: tuple[int, ...], tmp_path: Path) -> None:
    redirections = " ".join(f"{number}>&-" for number in closed)
    errors = tmp_path / "errors"
    shell = f'"$0" "$@" 2>"{errors}" >/dev/null {redirections}'
    done = subprocess.run(["sh", "-c", shell, *KCM, argument], timeout=60, check=False)
    assert done.returncode == code
    assert "Traceback" not in errors.read_text()


@pytest.mark.parametrize("locale", [{"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}, {}])
@pytest.mark.parametrize("encoding", ["", "ascii", "latin-1"])
def test_pipes_get_utf_8_in_every_locale(locale: dict[str, str], encoding: str) -> None:
    environment = {**os.environ, **locale, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*KCM, "\u2603".encode()], capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"Error: unexpected argument: \xe2\x98\x83 (see kcm --help)\n")


def test_a_path_that_is_no_text_is_printed_as_it_is(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    words = (*KCM, "sandbox", "assets", b"--dir=" + folder)
    done = subprocess.run(words, capture_output=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, folder + b"\n", b"")


def test_ctrl_c_is_handled_before_anything_of_kcm_is_loaded() -> None:
    code = "import sys; import kcm_cli.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("kcm_cli")} == {"kcm_cli", "kcm_cli.cli", "kcm_cli.cli.main"}
    assert "msgspec" not in loaded


def test_an_invalid_width_is_ignored() -> None:
    assert run("--help", env={"COLUMNS": "wide"}).stdout == run("--help").stdout


def test_the_package_can_be_run() -> None:
    done = subprocess.run([sys.executable, "-m", "kcm_cli", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == (f"Kubernetes {OWN_VERSION}\n", SERVERS, 0)


def test_mistakes_are_reported_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--v=x", "--nope", "--kube-api-qps=fast", "--secure-port=99999"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("Error: ") for line in lines)


def test_mistakes_of_different_stages_are_reported_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--v=x", "--controllers=nope", "extra"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 3


@pytest.mark.parametrize("args", [["--version"], ["--version=true"], ["-v2", "--version"]])
def test_version(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 0
    assert capsys.readouterr() == (f"Kubernetes {OWN_VERSION}\n", SERVERS)


@pytest.mark.parametrize("args", [["--version", "raw"], ["raw", "--version=raw"]])
def test_version_takes_no_argument(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 1
    assert capsys.readouterr() == ("", "Error: unexpected argument: raw (see kcm --help)\n")


@pytest.mark.parametrize("page", ["support.md", "install.md"])
def test_pages_name_the_api_servers_that_the_version_names(page: str) -> None:
    assert f"kube-apiserver {TESTED}" in (ROOT / "docs" / page).read_text()


def test_raw_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version=raw"]) == 0
    text, errors = capsys.readouterr()
    assert errors == ""
    assert text.startswith('version.Info{Major:"1", Minor:"36", ')
    assert f'GitVersion:"{OWN_VERSION}"' in text


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["word", "--help"], ["--v=2", "-h"]])
def test_help_wins(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 0
    out = capsys.readouterr()
    assert out.err == ""
    assert "\nGeneric flags:\n" in out.out


def test_a_mistake_precedes_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help", "--nope"]) == 1
    assert capsys.readouterr() == ("", "Error: unknown flag: --nope\n")


def test_help_is_plain_when_piped() -> None:
    text = run("--help").stdout
    assert "\x1b" not in text and max(len(line) for line in text.splitlines()) <= 100
    assert re.search(r"^  -v, --v Level\n {16}Verbosity", text, re.M)
    assert re.search(r"^      --kube-api-qps float32\n( {16}.*\n)* .* \(default 20\)$", text, re.M)
    assert re.search(r'^      --cluster-name string\n( {16}.*\n)* .* \(default "kubernetes"\)$', text, re.M)
    assert re.search(r"^      --version version\[=true\]\n", text, re.M)
    assert "pod-eviction-timeout" not in text


def test_help_lists_what_controllers_and_feature_gates_may_name() -> None:
    text = " ".join(run("--help").stdout.split())
    controllers, others = text.partition("Controllers: ")[2].split("Controllers that are off by default: ")
    assert "deployment-controller, device-taint-eviction-controller" in controllers
    assert others.startswith("bootstrap-signer-controller, ")
    assert "kube:StorageVersionMigrator=true|false (BETA - default=false)" in others


def test_written_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    assert main(["--write-config-to", str(file), "--concurrent-job-syncs=9"]) == 0
    assert json.loads(file.read_text())["JobController"] == {"ConcurrentJobSyncs": 9}
    assert main([f"--config={file}", "--write-config-to=-"]) == 0
    assert "ConcurrentJobSyncs: 9" in capsys.readouterr().out


def test_flags_without_a_field_in_the_configuration_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--secure-port=10258", "--feature-gates=AllAlpha=false", "--controllers=ttl", "-v=2"]
    assert main([*flags, "--write-config-to=-"]) == 0
    text = (
        "Warning: a configuration file has no fields for --feature-gates, --secure-port, --v: give them beside --config"
    )
    assert capsys.readouterr().err.splitlines() == [text]


def test_a_target_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"--write-config-to={tmp_path}"]) == 1
    assert capsys.readouterr().err == f"Error: cannot write the configuration to {tmp_path}: Is a directory\n"


def test_a_malformed_file_is_one_line_for_each_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("a: [\n")
    assert main([f"--config={file}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Error: {file}: not YAML: ")


def completing(words: str) -> dict[str, str]:
    """How bash asks what to offer for the last word."""
    return {"_KCM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


def test_completion_of_a_process() -> None:
    """What may come next is in tests/unit/cli/test_completing.py."""
    assert run(env=completing("kcm sandbox nodes ")).stdout.split() == ["add", "remove", "fail", "recover"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    shown = run(f"--show-completion={shell}")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "_KCM_COMPLETE=complete_" in shown.stdout


def test_the_shell_can_be_a_separate_argument() -> None:
    assert run("--show-completion", "zsh").stdout.lstrip().startswith("#compdef kcm")
    shown = run("--show-completion", "cmd")
    assert (shown.returncode, shown.stdout, len(shown.stderr.splitlines())) == (1, "", 1)


def test_completion_is_installed_for_the_current_shell_only() -> None:
    done = run("--install-completion", "zsh")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: --install-completion takes no shell: run it in that shell, or take the script of "
        "kcm --show-completion=zsh\n"
    )


def test_an_unknown_shell_is_a_mistake() -> None:
    shown = run("--show-completion=cmd")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert len(shown.stderr.splitlines()) == 1


def test_version_imports_next_to_nothing() -> None:
    code = "import sys; from kcm_cli.cli.main import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"typer", "rich", "yaml", "asyncio", "aiohttp", "kubernetes", "kubernetes_asyncio"})


def test_help_imports_neither_server_nor_client() -> None:
    code = "import sys; from kcm_cli.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stderr.split())
    assert loaded.isdisjoint({"rich", "asyncio", "aiohttp", "kubernetes", "kubernetes_asyncio", "uvicorn"})

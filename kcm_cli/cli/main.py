"""The console script ``kcm``."""

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence

_COMPLETE = "_KCM_COMPLETE"
_SHOW = "--show-completion"
_SCRIPTS = frozenset({"--install-completion", _SHOW})
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run kcm; returns the exit code. Errors are printed to standard error, one line each, with exit code 1."""
    if arguments is None:
        _end_when_asked()
        _end_on_interrupt()
        _open_closed_streams()
        _accept_all_characters()
    args = list(sys.argv[1:] if arguments is None else arguments)
    if shell := _shell_to_show(args):
        os.environ[_COMPLETE] = f"source_{shell}"  # what the script itself would ask for
    try:
        code = _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()  # its reader has gone
        code = 1
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _forget_output()
        sys.stderr.write(f"Error: cannot write the output: {error.strerror}\n")
        code = 1
    if arguments is None:
        _end_on_interrupt()
        gc.freeze()  # the process ends: its objects need not be collected one by one, which takes seconds for many pods
    return code


def _open_closed_streams() -> None:
    """A standard stream that the caller closed is /dev/null, as in a Go program: no other file gets its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _accept_all_characters() -> None:
    """In a locale such as C, write UTF-8 to files and pipes as a Go program does, and ``?`` to terminals. Bytes of the
    command line that are no UTF-8, such as a file's name, are written as they are."""
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if stream.encoding.lower() in ("utf-8", "utf8"):
            stream.reconfigure(errors="surrogateescape")
        elif stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _shell_to_show(args: Sequence[str]) -> str:
    """The shell whose completion script is asked for, as --show-completion=SHELL or --show-completion SHELL."""
    if len(args) == 1 and args[0].startswith(f"{_SHOW}="):
        return args[0].removeprefix(f"{_SHOW}=") or "none"
    return args[1] if len(args) == 2 and args[0] == _SHOW and not args[1].startswith("-") else ""


def _forget_output() -> None:
    """Discard the rest of standard output, whose write would fail again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _end_when_asked() -> None:
    """Let SIGTERM end the first process of a container while modules are loaded, and commands that do not handle it.
    The kernel drops what such a process does not handle: the container would be killed half a minute later."""
    if os.getpid() == 1 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))


def _end_on_interrupt() -> None:
    """Let Ctrl-C end the process without a traceback while modules are loaded, and at the end."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(args: Sequence[str]) -> int:
    # imported here, as all below: Ctrl-C is handled before, --version must be quick, and a manager needs neither Typer
    # nor other commands
    if args == ["--version"]:
        from kcm_cli.cli import show_version

        show_version.show()
        return 0
    if os.environ.get(_COMPLETE, "").startswith("complete_"):
        from kcm_cli.cli import completing

        return completing.main(os.environ)
    from kcm_cli.cli import subcommands

    if _COMPLETE in os.environ or subcommands.is_named(args) or not _SCRIPTS.isdisjoint(args):
        from kcm_cli.component.garbage import loading

        with loading():
            from kcm_cli.cli import command

        return command.main(args, _COMPLETE)
    return _manager(args)


def _manager(args: Sequence[str]) -> int:
    from kcm_cli.component.garbage import loading

    with loading():
        from kcm_cli.cli.manager import run_manager

    try:
        return run_manager(args)
    except KeyboardInterrupt:
        sys.stderr.write("\nError: aborted\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())

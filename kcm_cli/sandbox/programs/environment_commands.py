"""Commands that print what a program knows of itself: its variables, its user, its host.

Each takes the shell that runs it and its words, and returns its exit code. Where neither pod nor node says otherwise,
a small image is assumed whose user is root.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from kcm_cli.sandbox.programs.errors import Unknown, Unsupported
from kcm_cli.sandbox.programs.shell import Shell, options


def env(shell: Shell, words: Sequence[str]) -> int:
    """``env``, or ``env NAME=VALUE… PROGRAM``."""
    given = [word.partition("=")[::2] for word in words[1:] if "=" in word]
    rest = [word for word in words[1 + len(given) :]]
    if any("=" not in word for word in words[1 : 1 + len(given)]) or rest[:1] and rest[0].startswith("-"):
        raise Unknown
    outer = shell.variables.given
    shell.variables.given = {**outer, **dict(given)}
    try:
        return shell.launched(rest) if rest else _variables(shell)
    finally:
        shell.variables.given = outer


def _variables(shell: Shell) -> int:
    known = shell.variables.passed_on()
    if None in known.values():
        return shell.output_unknown()
    if known:
        shell.say("".join(f"{name}={value}\n" for name, value in known.items()))
    return 0


def printenv(shell: Shell, words: Sequence[str]) -> int:
    """``printenv``"""
    if not words[1:]:
        return _variables(shell)
    known, code = shell.variables.passed_on(), 0
    for name in words[1:]:
        value = known.get(name)
        if value is not None:
            shell.say(f"{value}\n")
        elif name in known:
            shell.output_unknown()
        elif not shell.assumes:
            raise Unknown
        else:
            code = 1
    return code


def _user(shell: Shell) -> tuple[int, int, list[int]]:
    """User, group, and all groups."""
    host = shell.fs.volumes
    user = (host.user if host is not None else None) or 0
    group = (host.group if host is not None else None) or 0
    others = set(host.groups) if host is not None else set()
    return user, group, [group, *sorted(others - {group})]


def identity(shell: Shell, words: Sequence[str]) -> int:
    """``id`` with ``-u``, ``-g``, ``-G``, ``-un``."""
    user, group, groups = _user(shell)
    letters, names = options(words, "ugGn")
    if set(letters) == set("un"):
        return whoami(shell, words)
    listed = ",".join(map(_group, groups))
    known = {
        "": f"uid={user}{'' if user else '(root)'} gid={_group(group)} groups={listed}",
        "u": str(user),
        "g": str(group),
        "G": " ".join(map(str, groups)),
    }
    if names or letters not in known:
        raise Unsupported("id with these words")
    shell.say(f"{known[letters]}\n")
    return 0


def _group(number: int) -> str:
    return str(number) if number else "0(root)"


def whoami(shell: Shell, _: Sequence[str]) -> int:
    """``whoami``"""
    user = _user(shell)[0]
    if user:
        shell.say(f"whoami: unknown uid {user}\n", error=True)
        return 1
    shell.say("root\n")
    return 0


def _host(shell: Shell) -> str:
    name = shell.variables.env.get("HOSTNAME")
    if name is None:
        raise Unknown
    return name


def hostname(shell: Shell, words: Sequence[str]) -> int:
    """``hostname`` with ``-f``, ``-s``."""
    option = words[1] if len(words) == 2 else ""
    if len(words) > 2 or option not in ("", "-f", "-s"):
        raise Unknown
    if option == "-f":
        if shell.fs.volumes is None:
            raise Unknown
        shell.say(f"{shell.fs.volumes.fqdn}\n")
    else:
        name = _host(shell)
        shell.say(f"{name.partition('.')[0] if option else name}\n")
    return 0


def _first(shell: Shell) -> str:
    """The command line of the first process. Raises Unknown."""
    host = shell.fs.volumes
    if host is None or not host.command:
        raise Unknown
    return " ".join(host.command)


_PLAIN = re.compile(r"[\w ./:=@,%-]+")


def pgrep(shell: Shell, words: Sequence[str]) -> int:
    """``pgrep`` with ``-f`` and ``-u``: of the processes only the first one is known."""
    user, rest = _user(shell)[0], list(words[1:])
    if rest[:1] == ["-u"]:
        if "".join(rest[1:2]) not in (str(user), "" if user else "root"):
            return 1
        del rest[:2]
    letters, names = options(["pgrep", *rest], "f")
    if len(names) != 1 or not _PLAIN.fullmatch(names[0]):
        raise Unknown
    line = _first(shell)
    if names[0] not in (line if letters else line.split(" ", 1)[0].rpartition("/")[2]):
        return 1
    shell.say("1\n")
    return 0


COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], int]] = {
    "env": env,
    "printenv": printenv,
    "id": identity,
    "whoami": whoami,
    "hostname": hostname,
    "pgrep": pgrep,
}

"""Commands that print what a program knows of itself: its variables, its user, its host.

Each takes the shell that runs it and its words, and returns its exit code. Where neither pod nor node says otherwise,
a small image is assumed whose user is root.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from kcm_cli.sandbox.programs.errors import Unknown
from kcm_cli.sandbox.programs.shell import Shell


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
    """``id`` with ``-u``, ``-g``, ``-G``, and ``-n`` for root."""
    user, group, groups = _user(shell)
    options = "".join(word[1:] for word in words[1:] if word.startswith("-"))
    names = [word for word in words[1:] if not word.startswith("-")]
    if names or set(options) - set("ugGn") or len(set(options) - {"n"}) > 1:
        raise Unknown
    kinds: dict[str, list[int]] = {"u": [user], "g": [group], "G": groups}
    chosen = kinds.get(options.replace("n", ""), [])
    if not chosen:
        shown = "(root)" if user == 0 else ""
        listed = ",".join(map(_group, groups))
        shell.say(f"uid={user}{shown} gid={_group(group)} groups={listed}\n")
        return 0
    if "n" not in options:
        shell.say(" ".join(map(str, chosen)) + "\n")
        return 0
    code = 0
    for each in chosen:
        if each:
            shell.say(f"id: unknown ID {each}\n", error=True)
            code = 1
    shell.say(" ".join("root" if number == 0 else str(number) for number in chosen) + "\n")
    return code


def _group(number: int) -> str:
    return "0(root)" if number == 0 else str(number)


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
    """``hostname`` with ``-f``, ``-s``, ``-i``."""
    option = words[1] if len(words) == 2 else ""
    if len(words) > 2 or option not in ("", "-f", "--fqdn", "--long", "-s", "--short"):
        raise Unknown
    if option in ("-f", "--fqdn", "--long"):
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
    """``pgrep`` with ``-f``, ``-u``, ``-x``: of the processes only the first one is known."""
    options, names, rest = "", [], iter(words[1:])
    for word in rest:
        if word == "-u":
            wanted = next(rest, "")
            if wanted not in ("root", str(_user(shell)[0])) or (wanted == "root" and _user(shell)[0]):
                return 1
        elif word.startswith("-"):
            options += word[1:]
        else:
            names.append(word)
    if set(options) - set("fx") or len(names) != 1 or not _PLAIN.fullmatch(names[0]):
        raise Unknown
    line = _first(shell)
    name = line.split(" ", 1)[0].rpartition("/")[2]
    looked = line if "f" in options else name
    if names[0] == looked if "x" in options else names[0] in looked:
        shell.say("1\n")
        return 0
    return 1


_SYSTEM = "snrvmo"


def uname(shell: Shell, words: Sequence[str]) -> int:
    """``uname`` of an amd64 node."""
    options = "".join(word[1:] for word in words[1:] if word.startswith("-")) or "s"
    if any(not word.startswith("-") or word.startswith("--") for word in words[1:]) or set(options) - set(
        _SYSTEM + "a"
    ):
        raise Unknown
    if "a" in options:
        options = _SYSTEM
    release = shell.fs.volumes.kernel if shell.fs.volumes is not None else None
    found: list[str] = []
    for letter in [each for each in _SYSTEM if each in options]:
        if letter == "n":
            found.append(_host(shell))
        elif letter == "r":
            if release is None:
                raise Unknown
            found.append(release)
        else:
            found.append({"s": "Linux", "v": "#1 SMP", "m": "x86_64", "o": "GNU/Linux"}[letter])
    shell.say(" ".join(found) + "\n")
    return 0


COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], int]] = {
    "env": env,
    "printenv": printenv,
    "id": identity,
    "whoami": whoami,
    "hostname": hostname,
    "uname": uname,
    "pgrep": pgrep,
}

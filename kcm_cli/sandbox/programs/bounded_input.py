"""How much of its standard input a command reads at most: clients that cannot close it send a number of bytes."""

from collections.abc import Iterator, Sequence

from kcm_cli.sandbox.programs import syntax
from kcm_cli.sandbox.programs.errors import Unknown
from kcm_cli.sandbox.programs.interpreter import SHELLS, program_name
from kcm_cli.sandbox.programs.text_commands import bytes_of_head

_READS_NOTHING = frozenset((
    ":", "[", "cd", "chgrp", "chmod", "chown", "echo", "exit", "export", "ls", "mkdir", "mv", "printf", "rm", "set",
    "sleep", "sync", "test", "touch", "true",
))  # fmt: skip


def most_read(words: Sequence[str]) -> int | None:
    """The number of bytes, as of ``head -c 9`` or ``sh -c 'mkdir -p /a && head -c 9 > /a/b'``; None for all of it."""
    if len(words) != 3 or program_name(words[0]) not in SHELLS or words[1] != "-c":
        return bytes_of_head([program_name(word) for word in words[:1]] + list(words[1:]))
    try:
        commands = list(_reading(syntax.parse(words[2])))
    except Unknown:
        return None
    return bytes_of_head(commands[0]) if len(commands) == 1 else None


def _reading(script: syntax.List) -> Iterator[list[str]]:
    """The commands that may read the standard input of a script. Raises Unknown for those that are not simple."""
    for _, command in script:
        first = command.commands[0] if isinstance(command, syntax.Pipeline) else command
        if not isinstance(first, syntax.Simple) or any(each.descriptor == 0 for each in first.redirects):
            raise Unknown
        words = ["".join(part.text for part in word if isinstance(part, syntax.Text)) for word in first.words]
        if words and program_name(words[0]) not in _READS_NOTHING:
            yield [program_name(words[0]), *words[1:]]

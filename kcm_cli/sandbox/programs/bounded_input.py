"""How much of its standard input a command reads at most: clients that cannot close it send a number of bytes."""

from collections.abc import Iterator, Sequence
from itertools import chain

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
    """The commands that may read the standard input of a script. Raises Unknown for those that are not simple, for
    words of them that are not literal, and for other commands inside of words, which may read it, too."""
    for _, command in script:
        first = command.commands[0] if isinstance(command, syntax.Pipeline) else command
        if not isinstance(first, syntax.Simple) or any(each.descriptor == 0 for each in first.redirects):
            raise Unknown
        others = [each for _, each in first.assignments] + [each.word for each in first.redirects]
        if not all(map(_runs_nothing, chain(first.words, others))):
            raise Unknown
        if first.words and (program := program_name(_literal(first.words[0]))) not in _READS_NOTHING:
            yield [program, *map(_literal, first.words[1:])]


def _runs_nothing(word: syntax.Word) -> bool:
    return all(isinstance(part, syntax.Text) or (isinstance(part, syntax.Parameter) and not part.word) for part in word)


def _literal(word: syntax.Word) -> str:
    """Raises Unknown for a word that is expanded."""
    texts = [part.text for part in word if isinstance(part, syntax.Text)]
    if len(texts) < len(word):
        raise Unknown
    return "".join(texts)

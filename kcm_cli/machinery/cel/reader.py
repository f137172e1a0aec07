"""Reads tokens for the parser, and records the errors of unexpected ones.

upstream: antlr4 DefaultErrorStrategy
"""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter

from kcm_cli.machinery.cel.errors import CelSyntaxError, located
from kcm_cli.machinery.cel.lexer import MOST_PROBLEMS, Token, tokens

STARTS = frozenset(("[", "{", "(", ".", "-", "!", "literal", "name"))
"""What an expression begins with."""

_TOO_MANY = f"Syntax error: More than {MOST_PROBLEMS} syntax errors"
_END = frozenset(("end",))
_GOES_ON = frozenset(("<", "<=", ">", ">=", "==", "!=", "in", "+", "-", "*", "/", "%", "&&", "||", "?", ".", "["))


class Reader:
    """A position in the tokens. Like cel-go's parser, it goes on after a missing or superfluous token, and collects the
    errors."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self._problems = tokens(text)
        self._notes: list[tuple[int, str]] = []
        self._position = 0
        self._reported = -1
        """Where the last error was: the next one is reported when a token has been taken since."""
        self._after = [_END]
        """What may follow the expression that is read, innermost last."""

    def end(self) -> None:
        """Check that no token is left. Raises CelSyntaxError with all errors."""
        token = self.next
        if token.kind != "end":
            if self._following.kind != "end":
                raise self.mismatch(token, "<EOF>")
            self._report(token, f"extraneous input '{token.text}' expecting <EOF>")
        if self._problems or self._notes:
            raise self._failure()

    def note(self, offset: int, message: str) -> None:
        """Record an error in text that can be parsed, and go on."""
        self._notes.append((offset, message))

    @property
    def next(self) -> Token:
        """The next token, which is not consumed."""
        return self._tokens[self._position]

    @property
    def _following(self) -> Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    @contextmanager
    def within(self, *ends: str) -> Iterator[None]:
        """While an expression is parsed that one of these tokens ends."""
        self._after.append(frozenset(ends))
        yield
        self._after.pop()

    def take(self) -> Token:
        """Consume the next token."""
        token = self._tokens[self._position]
        self._position += 1
        return token

    def takes(self, kind: str) -> bool:
        """Consume the next token if it is of this kind. Returns whether it was."""
        if self.next.kind != kind:
            return False
        self._position += 1
        return True

    def expect(self, kind: str) -> Token:
        """Consume a token of this kind. Raises CelSyntaxError."""
        token = self.next
        if token.kind == kind:
            return self.take()
        if self._following.kind == kind:
            self._report(token, f"extraneous input '{token.text}' expecting '{kind}'")
            self.take()
            return self.take()
        if token.kind in (STARTS if kind == ":" else _GOES_ON | self._after[-1]):
            self._report(token, f"missing '{kind}' at '{token.text}'")
            return Token(kind, token.offset, kind)
        raise self.mismatch(token, f"'{kind}'")

    def separated(self, end: str) -> None:
        """Check that a comma or ``end`` comes next. Raises CelSyntaxError."""
        token = self.next
        if token.kind in (end, ","):
            return
        wanted = f"{{'{end}', ','}}"
        if self._following.kind not in (end, ","):
            raise self.mismatch(token, wanted)
        self._report(token, f"extraneous input '{token.text}' expecting {wanted}")
        self.take()

    def _report(self, token: Token, message: str) -> None:
        if self._reported != self._position:
            self._problems.append((token.offset, f"Syntax error: {message}"))
        self._reported = self._position

    def mismatch(self, token: Token, wanted: str) -> CelSyntaxError:
        """The error for a token from which parsing cannot go on."""
        self._report(token, f"mismatched input '{token.text}' expecting {wanted}")
        return self._failure()

    def error(self, offset: int, message: str) -> CelSyntaxError:
        """The error with all recorded ones and this one."""
        self._notes.append((offset, message))
        return self._failure()

    def name(self) -> Token:
        """Consume the name after a dot. It is empty if parsing can go on without it. Raises CelSyntaxError."""
        token = self.next
        if token.kind == "escaped":
            self.note(token.offset, "unsupported syntax: '`'")
            return self.take()
        if token.kind != "name":
            self._report(token, f"no viable alternative at input '.{_shown(token)}'")
            if token.kind not in _GOES_ON - {"."}:
                raise self._failure()
            return Token("name", token.offset, "")
        return self.take()

    def check_start(self, wanted: str, end: str = "") -> bool:
        """Whether an expression (or ``end``) comes next, possibly after one superfluous token. False if it is missing
        before an operator. Raises CelSyntaxError."""
        token = self.next
        if token.kind in STARTS:
            return True
        if self._following.kind in STARTS or self._following.kind == end:
            self._report(token, f"extraneous input '{token.text}' expecting {wanted}")
            self.take()
            return True
        if token.kind not in _GOES_ON:
            raise self.mismatch(token, wanted)
        self._report(token, f"mismatched input '{token.text}' expecting {wanted}")
        return False

    def check_negated(self, wanted: str) -> bool:
        """Whether an operand follows an exclamation mark."""
        token = self.next
        if token.kind in STARTS:
            return True
        self._report(token, f"extraneous input '{token.text}' expecting {wanted}")
        return False

    def check_minus(self, followers: frozenset[str]) -> bool:
        """Whether one of these follows the next minus; otherwise it is parsed as a binary operator."""
        following = self._following
        if following.kind in followers:
            return True
        self._report(following, f"no viable alternative at input '-{_shown(following)}'")
        return False

    def _failure(self) -> CelSyntaxError:
        """The error with all recorded ones in order, up to the maximum."""
        syntax = sorted(self._problems, key=itemgetter(0))
        if len(syntax) > MOST_PROBLEMS:
            found, rest = syntax, located(self._text, syntax[MOST_PROBLEMS][0], _TOO_MANY)
        else:
            found = sorted(syntax + self._notes, key=itemgetter(0))
            rest = f"{len(found) - MOST_PROBLEMS} more errors were truncated" if len(found) > MOST_PROBLEMS else ""
        lines = [located(self._text, *problem) for problem in found[:MOST_PROBLEMS]]
        return CelSyntaxError("\n".join([*lines, rest] if rest else lines))


def _shown(token: Token) -> str:
    return token.text if token.kind != "end" else ""

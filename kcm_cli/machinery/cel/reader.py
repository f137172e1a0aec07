"""The tokens of an expression as its parser takes them, and the errors about those that do not fit.

upstream: antlr4 DefaultErrorStrategy
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kcm_cli.machinery.cel.errors import CelSyntaxError, located
from kcm_cli.machinery.cel.lexer import Token, tokens

STARTS = frozenset(("[", "{", "(", ".", "-", "!", "literal", "name"))
"""What an expression begins with."""

_END = frozenset(("end",))
_GOES_ON = frozenset(("<", "<=", ">", ">=", "==", "!=", "in", "+", "-", "*", "/", "%", "&&", "||", "?", ".", "["))


class Reader:
    """A place in the text. Like cel-go's, it goes on after a missing or superfluous token, and keeps
    the errors.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self._problems = tokens(text)
        self._position = 0
        self._after = [_END]
        """What may follow the expression that is read, innermost last."""

    def end(self) -> None:
        """Nothing may be left. Raises CelSyntaxError with all that was found."""
        token = self.next
        if token.kind != "end":
            if self._following.kind != "end":
                raise self.mismatch(token, "<EOF>")
            self._report(token, f"extraneous input '{token.text}' expecting <EOF>")
        if self._problems:
            raise self._failure()

    def note(self, offset: int, message: str) -> None:
        """Keep the error, and go on."""
        self._problems.append((offset, message))

    @property
    def next(self) -> Token:
        """The token that is not taken yet."""
        return self._tokens[self._position]

    @property
    def _following(self) -> Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    @contextmanager
    def within(self, *ends: str) -> Iterator[None]:
        """Around an expression that one of these ends."""
        self._after.append(frozenset(ends))
        yield
        self._after.pop()

    def take(self) -> Token:
        """The next token."""
        token = self._tokens[self._position]
        self._position += 1
        return token

    def takes(self, kind: str) -> bool:
        """Take the next token, if it is of this kind."""
        if self.next.kind != kind:
            return False
        self._position += 1
        return True

    def expect(self, kind: str) -> Token:
        """The next token, which has to be of this kind. Raises CelSyntaxError."""
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
        """What is between two elements, or ends them, comes next. Raises CelSyntaxError."""
        token = self.next
        if token.kind in (end, ","):
            return
        wanted = f"{{'{end}', ','}}"
        if self._following.kind not in (end, ","):
            raise self.mismatch(token, wanted)
        self._report(token, f"extraneous input '{token.text}' expecting {wanted}")
        self.take()

    def _report(self, token: Token, message: str) -> None:
        self._problems.append((token.offset, f"Syntax error: {message}"))

    def mismatch(self, token: Token, wanted: str) -> CelSyntaxError:
        """For a token that nothing can be done about."""
        return self.error(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {wanted}")

    def error(self, offset: int, message: str) -> CelSyntaxError:
        """All that was found, and this."""
        self._problems.append((offset, message))
        return self._failure()

    def name(self) -> Token:
        """What follows a dot. Raises CelSyntaxError."""
        token = self.next
        if token.kind != "name":
            shown = token.text if token.kind != "end" else ""
            raise self.error(token.offset, f"Syntax error: no viable alternative at input '.{shown}'")
        return self.take()

    def check_start(self, wanted: str) -> None:
        """Something that begins an expression comes next, or follows a sign too much. Raises CelSyntaxError."""
        token = self.next
        if token.kind in STARTS:
            return
        if self._following.kind not in STARTS:
            raise self.mismatch(token, wanted)
        self._report(token, f"extraneous input '{token.text}' expecting {wanted}")
        self.take()

    def _failure(self) -> CelSyntaxError:
        """All that was found, in its order."""
        return CelSyntaxError("\n".join(located(self._text, *problem) for problem in sorted(self._problems)))

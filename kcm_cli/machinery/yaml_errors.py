"""Reading YAML with one kind of error: what is wrong with a text, and where, in one line."""

from collections.abc import Callable
from typing import Any

import yaml

_NOT_IN_GO = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


def without_dates(loader: Any) -> dict[str, list[Any]]:
    """The implicit resolvers of a loader, but dates are strings, as in Go's YAML. So is a plain ``=``, which PyYAML
    takes for a value of its own that it cannot read."""
    return {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_IN_GO]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }


class StringsLoader(yaml.SafeLoader):
    """A loader that reads plain values as Go's YAML does."""

    yaml_implicit_resolvers = without_dates(yaml.SafeLoader)


def load(text: str | bytes, loader: Any = StringsLoader) -> Any:
    """The one document of a text. Raises yaml.YAMLError."""
    return _checked(lambda: yaml.load(text, loader))  # a SafeLoader or BaseLoader


def load_all(text: str | bytes, loader: Any = StringsLoader) -> list[Any]:
    """The documents of a text. Raises yaml.YAMLError."""
    found: list[Any] = _checked(lambda: list(yaml.load_all(text, loader)))
    return found


def _checked(read: Callable[[], Any]) -> Any:
    """PyYAML raises many errors for dates that do not exist, tags that do not fit (``!!int ""``), and deep nests."""
    try:
        return read()
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


def described(error: Exception) -> str:
    """An error of the YAML parser, or of decoding, without the lines that it quotes."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__

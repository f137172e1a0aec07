"""What is wrong with a text that is no YAML, and where, in one line."""

import yaml


def described(error: Exception) -> str:
    """An error of the YAML parser, or of decoding, without the lines that it quotes."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__

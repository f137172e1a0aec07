"""What a reader of the pages types: the commands of their blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

_PROGRAMS = (
    "kcm",
    "kubectl",
    "curl",
    "export",
    "cat",
    "make",
    "git",
    "pip",
    "pipx",
    "uv",
    "python",
    "python3",
    "pytest",
)
_PROGRAMS += ("docker", "go", "npm", "helm", "gh", "cp", "install", "systemctl", "timeout", r"/opt/kcm/bin/\w+")
_PROGRAMS += ("KCM_SANDBOX_FLAGS", "KUBECONFIG", "KUBEBUILDER_ASSETS", "CONTROLLERS")
_COMMAND = re.compile(rf"(?:{'|'.join(_PROGRAMS)})\b")


def blocks(page: Path) -> Iterator[str]:
    """Indented blocks outside of lists, and fenced ones without a language or of a shell."""
    block: list[str] = []
    fence, blank = "", True
    for line in [*page.read_text().splitlines(), "end"]:
        if fence or line.startswith("```"):
            ended = fence and line == "```"
            if fence in ("```", "```sh") and not ended:
                block.append(line)
            fence = "" if ended else fence or line
        elif line.startswith("    ") and (blank or block):
            block.append(line[4:])
        elif block and not line:
            block.append("")
        elif block:
            yield "\n".join(block)
            block = []
        blank = not line


def commands(block: str) -> list[str]:
    """The commands of a block; none where it is what something printed."""
    found: list[str] = []
    ends = ""
    for line in block.strip().splitlines():
        if ends or (found and found[-1].endswith("\\")):
            found[-1] += f"\n{line}"
            ends = "" if line == ends else ends
            continue
        if line.startswith("# "):
            continue
        if not _COMMAND.match(line):
            return found
        found.append(line)
        ends = word[1] if (word := re.search(r"<<(\w+)$", line)) else ""
    return found

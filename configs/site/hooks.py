"""What the site takes from beside docs: the README as its first page, the pages at the top, and the files in configs.

Links that leave docs lead to ``files/`` in the site.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LICENSE = "LICENSE"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that are not in docs."""
    files.append(File.generated(config, "index.md", content=_of_top((ROOT / "README.md").read_text(), "")))
    for name in PAGES:
        files.append(File.generated(config, f"files/{name}", content=_of_top((ROOT / name).read_text(), "../")))
    configs = [
        path for path in sorted((ROOT / "configs").rglob("*")) if path.is_file() and "__pycache__" not in path.parts
    ]
    for path in (*configs, ROOT / LICENSE):
        files.append(File.generated(config, f"files/{path.relative_to(ROOT)}", abs_src_path=str(path)))
    names = [str(path.relative_to(ROOT / "configs")) for path in configs]
    index = "\n".join(["# Files in configs", "", *(f"- [{name}]({name})" for name in names)])
    files.append(File.generated(config, "files/configs/index.md", content=index))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links that leave docs lead to the files."""
    return re.sub(r"\]\(\.\./(?=configs|CONTRIBUTING|CHANGELOG|SECURITY|LICENSE)", "](files/", markdown)


def _of_top(text: str, up: str) -> str:
    """A page of the top, whose links to docs and files are as seen from ``up``."""
    text = re.sub(r"\]\(docs/", f"]({up}", text)
    beside = "" if up else "files/"
    text = re.sub(rf"\]\((?=configs|LICENSE|{'|'.join(PAGES)})", f"]({beside}", text)
    return text.replace(f"]({beside}configs)", f"]({beside}configs/index.md)")

"""``make release-check``: what has to hold before a release, done on this machine.

Two builds give the same bytes; the wheel installs into an empty environment with exactly the locked packages, and
starts; the SBOM (CycloneDX) lists these packages and no others. The wheel and the SBOM are left in ``dist``.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.kit.places import ROOT

DIST = ROOT / "dist"
LOCK, TOOLS = ROOT / "configs" / "runtime.lock", ROOT / "configs" / "build.lock"


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a program; ends this one with its errors if it fails."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(str(word) for word in words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder: Path, *locks: Path) -> Path:
    """A new virtual environment with locked packages; returns its folder of programs."""
    venv.create(folder, with_pip=True)
    for lock in locks:
        run(folder / "bin" / "pip", "install", "-q", "--require-hashes", "-r", lock)
    return folder / "bin"


def built(tools: Path, folder: Path) -> Path:
    """A wheel of a clean clone."""
    run("git", "clone", "-q", ROOT, folder / "clone")
    out = folder / "wheel"
    run(tools / "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, ".", cwd=folder / "clone")
    (wheel,) = out.iterdir()
    return wheel


def packages(programs: Path) -> dict[str, str]:
    """The packages of an environment without what creates environments."""
    listed = json.loads(run(programs / "pip", "list", "--format", "json"))
    found = {normal(one["name"]): one["version"] for one in listed}
    return {name: version for name, version in found.items() if name not in ("pip", "setuptools")}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def described(sbom: Path) -> dict[str, str]:
    """The packages in an SBOM."""
    components = json.loads(sbom.read_text())["components"]
    found = {normal(one["name"]): one["version"] for one in components}
    return {name: version for name, version in found.items() if name not in ("pip", "setuptools")}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = environment(folder / "tools", TOOLS)
        first, second = (built(tools, folder / which) for which in ("first", "second"))
        digests = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in (first, second)}
        if len(digests) != 1:
            sys.exit(f"two builds differ: {first.name}")
        programs = environment(folder / "installed", LOCK)
        run(programs / "pip", "install", "-q", "--no-deps", first)
        version = run(programs / "kcm", "--version").strip()
        if not (programs.parent / "share/man/man1/kcm.1").is_file():
            sys.exit("the wheel has no man pages")
        DIST.mkdir(exist_ok=True)
        sbom = DIST / "sbom.json"
        run(tools / "cyclonedx-py", "environment", "--output-reproducible", "-o", sbom, programs / "python")
        if (there := packages(programs)) != (listed := described(sbom)):
            sys.exit(f"the SBOM differs from what is installed: {sorted(there.items() ^ listed.items())}")
        shutil.copy(first, DIST)
    print(f"{first.name}: {digests.pop()}, the same in two builds")
    print(f"{version}: installs and starts with {len(there)} packages, as dist/sbom.json says")


if __name__ == "__main__":
    main()

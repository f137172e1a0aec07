"""The program of a container: its command with its arguments, variables and files.

``sandbox.programs`` simulates it.
"""

import math
from collections.abc import Sequence
from posixpath import normpath

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs, Mounted
from kcm_cli.sandbox.nodes.environment import known_env
from kcm_cli.sandbox.nodes.expansion import expand
from kcm_cli.sandbox.nodes.hostnames import hostname_of
from kcm_cli.sandbox.nodes.volumes import Objects, Volumes, sub_path_of
from kcm_cli.sandbox.programs import simulate as simulation
from kcm_cli.sandbox.programs.execution import Execution, Opened
from kcm_cli.sandbox.programs.filesystem import Files, There
from kcm_cli.sandbox.programs.signals import Signals
from kcm_cli.sandbox.programs.simulate import Environment
from kcm_cli.sandbox.views import LifecycleHandler, SimulatedContainer, SimulatedPod

PAUSE = "pause"
_MOST_CHARACTERS = 2 << 20
"""The limit for a command with its arguments."""


class Program(msgspec.Struct, frozen=True):
    """A container's command with its arguments, the known variables, the folders that have only files of the pod, the
    volumes, and its input: nothing, or unknown where it has one (``stdin``) or a terminal."""

    words: tuple[str, ...]
    env: Environment
    own: Mounted
    volumes: Volumes | None
    input: str | None = ""

    def _with_input(self, there: There) -> There:
        return there if there.input is not None else replace(there, input=self.input)

    @property
    def scratch(self) -> tuple[str, ...]:
        """The folders that have only files of the pod."""
        return tuple(self.own)

    def outcome(self, scratch: tuple[str, ...], files: Files, until_s: float = math.inf) -> Execution | None:
        """The outcome with these files; None if it is unknown. scratch: the folders that have no others."""
        return self.among(There(files, scratch), until_s)

    def signals(self, there: There) -> Signals | None:
        """As ``simulate.reactions``."""
        return simulation.reactions(self.words, self.env, self._with_input(there), self.volumes)

    def among(self, there: There, until_s: float = math.inf) -> Execution | None:
        """As ``simulate.simulate``."""
        return simulation.simulate(self.words, self.env, self._with_input(there), until_s, self.volumes)

    def log(self, there: There, until_s: float) -> Execution:
        """As ``simulate.log``."""
        return simulation.log(self.words, self.env, self._with_input(there), until_s, self.volumes)

    def answer(self, command: Sequence[str], there: There) -> Execution:
        """As ``simulate.answer``."""
        return simulation.answer(command, self.env, there, self.volumes)

    def session(self, shell: Opened, there: There, *, interactive: bool = False) -> simulation.Session:
        """As ``simulate.Session``."""
        return simulation.Session(shell, self.env, there, self.volumes, interactive=interactive)


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The path in most images."""


class Beginning(msgspec.Struct, frozen=True):
    """The pod, and the objects that it refers to, when a container started. Its variables and what it mounts by
    subPath stay as they were then."""

    pod: SimulatedPod
    objects: Objects


def program_of(
    container: SimulatedContainer,
    pod: SimulatedPod,
    objects: Objects | None,
    command: Sequence[str] = (),
    made: EmptyDirs | None = None,
    began: Beginning | None = None,
) -> Program:
    """The program of a container. command: instead of its own. made: the emptyDirs when it started. began: when that
    was; None: now."""
    env = known_env(container, began.pod if began else pod, began.objects if began else objects, made)
    words = tuple(command) or _expanded((*container.command, *container.args), env)
    own = {volume.name for volume in pod.spec.volumes if volume.empty_dir is not None}
    mounts = (mount for mount in container.volume_mounts if mount.name in own)
    mounted = {mount.mount_path.rstrip("/"): (mount.name, sub_path_of(mount, env)) for mount in mounts}
    inside = {
        folder: (name, f"/{normpath(path)}" if path else "")
        for folder, (name, path) in mounted.items()
        if path is not None
    }
    then = None if began is None else Volumes(began.pod, container, env, began.objects)
    volumes = None if objects is None else Volumes(pod, container, env, objects, then)
    env = {"PATH": _PATH, "HOSTNAME": hostname_of(pod), **env}
    env.setdefault("HOME", _home(container, pod))
    has_input = not command and (container.stdin or container.tty)
    return Program(words, env, inside, volumes, None if has_input else "")


def _home(container: SimulatedContainer, pod: SimulatedPod) -> str:
    """HOME as container runtimes set it for root, and for users that are not in the image."""
    contexts = (container.security_context, pod.spec.security_context)
    user = next((each.run_as_user for each in contexts if each is not None and each.run_as_user is not None), 0)
    return "/" if user else "/root"


def hooked(
    container: SimulatedContainer,
    pod: SimulatedPod,
    objects: Objects | None,
    handler: LifecycleHandler,
    made: EmptyDirs,
) -> Execution | None:
    """The outcome of a hook's command; None if it is unknown."""
    if handler.exec is None or not handler.exec.command:
        return None
    program = program_of(container, pod, objects, handler.exec.command, made)
    return program.outcome((*program.scratch, *own_folders(container)), {})


def made_at_start(container: SimulatedContainer, pod: SimulatedPod, objects: Objects | None, made: EmptyDirs) -> Files:
    """The files that a ``postStart`` hook writes at once, so that the container finds them."""
    handler = container.lifecycle.post_start if container.lifecycle is not None else None
    known = hooked(container, pod, objects, handler, made) if handler is not None else None
    return known.files if known is not None and known.lasts_s == 0.0 else {}


def _expanded(words: Sequence[str], env: Environment) -> tuple[str, ...]:
    """The words with variables expanded; empty, so that the program is unknown, if Linux does not allow the length."""
    found: list[str] = []
    length = 0
    for word in words:
        expanded = expand(word, env)
        length += len(expanded or "")
        if expanded is None or length > _MOST_CHARACTERS:
            return ()
        found.append(expanded)
    return tuple(found)


def is_pause(container: SimulatedContainer) -> bool:
    """Whether it runs the pause image, which does nothing until it is stopped."""
    if container.command or container.args:
        return False
    name = container.image.partition("@")[0].rpartition("/")[2]
    return name.partition(":")[0] == PAUSE


def own_folders(container: SimulatedContainer) -> tuple[str, ...]:
    """The folders that have only files of the container's program and of commands in it."""
    mounts = [mount.mount_path.rstrip("/") for mount in container.volume_mounts]
    return () if any(path in ("", "/tmp") or path.startswith("/tmp/") for path in mounts) else ("/tmp",)

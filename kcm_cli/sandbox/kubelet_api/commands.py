"""Commands in containers: the files that they find, and those that they write."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import chain, takewhile
from math import inf
from typing import cast

import msgspec
from msgspec.structs import replace

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.recent import Bounded
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.kubelet_api.objects import Issue, StoredObjects
from kcm_cli.sandbox.kubelet_api.pods import PODS, Pod, Run, shown_since
from kcm_cli.sandbox.nodes.container_program import Beginning, Program, made_at_start, own_folders, program_of
from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs, Left, Mounted
from kcm_cli.sandbox.nodes.probes import Verdicts, after
from kcm_cli.sandbox.programs.execution import Execution
from kcm_cli.sandbox.programs.filesystem import Files, There
from kcm_cli.sandbox.programs.simulate import sharing
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod, containers_of

_MOST_PODS, _MOST_COMMANDS, _MOST_BEGINNINGS = 64, 64, 256
_MOST_OF_POD, _MOST = 4 << 20, 32 << 20
"""The limits for names and content of files that commands have written, in a pod and in all, in characters. Of a pod
with more only the names are kept, and the result of a command that writes still more names is unknown. In all, the pods
in which no command has written for the longest time lose theirs."""
_NOTHING = ("true",)


class Started(msgspec.Struct, frozen=True):
    """What a command finds in a container."""

    pod: Pod
    container: SimulatedContainer
    program: Program
    folders: Mounted
    there: There

    def outcome(self, command: tuple[str, ...]) -> Execution:
        """The outcome of a command, with its problem if it cannot be simulated."""
        return self.program.answer(command, self.there)

    def reads(self, command: tuple[str, ...]) -> bool:
        """Whether a command needs its standard input: it can be simulated with input only."""
        unread = replace(self.there, input=None)
        return not self.outcome(command).problem and bool(replace(self, there=unread).outcome(command).problem)


class Commands:
    """See the module."""

    def __init__(self, store: Store, clock: Clock, issue: Issue) -> None:
        """``issue``: issues the tokens in volumes."""
        self.changed: Callable[[str, str, Verdicts], None] = _ignore
        """Called after a command that changes files, with pod, container and the new results of its probes."""
        self.signalled: Callable[[str, str, str], None] = _ignore
        """Called when a command signals the first process of its container, with pod, container and signal."""
        self.ended: Callable[[str, str, int], None] = _ignore
        """Called when the first process of a container ends, since its input did, with pod, container and exit code."""
        self.objects = StoredObjects(store, clock, issue)
        self._store = store
        self._clock = clock
        self._written: OrderedDict[str, Left] = OrderedDict()
        """The files that commands have written and removed, by uid of the pod, the last one at the end."""
        self._places: dict[str, tuple[str, str]] = {}
        """Namespace and name of these pods, as far as they are known."""
        self._sizes: dict[str, int] = {}
        """Their characters."""
        self._beginnings: Bounded[str, Beginning] = Bounded(_MOST_BEGINNINGS)
        """What there was when runs began, by the IDs of their containers; of the runs that were looked at last."""

    @property
    def written(self) -> Mapping[str, Left]:
        """The files that commands have written and removed, by uid of the pod."""
        return dict(self._written)

    @written.setter
    def written(self, written: Mapping[str, Left]) -> None:
        self._written = OrderedDict(written)
        self._sizes = {uid: _characters(left) for uid, left in written.items()}
        self._places = {uid: place for uid, place in self._places.items() if uid in written}

    def program_of_run(
        self, pod: Pod, container: SimulatedContainer, run: Run | None, made: EmptyDirs
    ) -> tuple[Program, EmptyDirs]:
        """A container's program, and the emptyDirs when it starts. After a restart they have the files of the first
        run."""
        began = self.began(pod, run)
        program = program_of(container, pod.view, self.objects, made=made, began=began)
        if run is None or run.number == 1 or not program.own:
            return program, made
        known = program.outcome(made.known(program.own), self.at_start(pod, container, program, made, run))
        if known is None:
            return program, made
        made = made.after(program.own, known.files, known.gone)
        return program_of(container, pod.view, self.objects, made=made, began=began), made

    def began(self, pod: Pod, run: Run | None) -> Beginning | None:
        """What there was when a run began; None if that is not known."""
        if run is None or not run.id:
            return None
        found = self._beginnings.get(run.id)
        if found is None:
            version = shown_since(self._store, pod, run)
            if version is None:
                return None
            view = codec.decode(version.data, SimulatedPod)
            found = Beginning(view, self.objects.at(version.revision))
        self._beginnings[run.id] = found
        return found

    def at_start(
        self, pod: Pod, container: SimulatedContainer, program: Program, made: EmptyDirs, run: Run | None
    ) -> dict[str, str | None]:
        """The files when a run of a container starts, with those of its hook."""
        return {**made.seen_by(program.own), **self._of_hook(pod, container, made, run)}

    def _of_hook(self, pod: Pod, container: SimulatedContainer, made: EmptyDirs, run: Run | None) -> Files:
        began = self.began(pod, run) or Beginning(pod.view, self.objects)
        return made_at_start(container, began.pod, began.objects, made)

    def made_before(self, pod: Pod, name: str) -> EmptyDirs:
        """The emptyDirs when a container starts."""
        before = takewhile(lambda each: each.name != name, pod.view.spec.init_containers)
        run = pod.run(name, previous=False)
        made, _ = self._made(pod, before, until=None if run is None else run.started)
        return made

    @sharing()
    def _made(
        self, pod: Pod, containers: Iterable[SimulatedContainer], asked: str = "", until: datetime | None = None
    ) -> tuple[EmptyDirs, bool]:
        """What these containers have written in emptyDirs until a time (default: now), and the container ``asked`` in
        all of its folders; and whether the result of that one's program is known."""
        found, known_all = EmptyDirs(), False
        until = until or self._clock.now()
        for container in containers:
            run = pod.run(container.name, previous=False)
            mine = container.name == asked
            if run is None or not (container.volume_mounts or mine):
                continue
            program, found = self.program_of_run(pod, container, run, found)
            passed_s = inf if run.finished is not None else (until - run.started).total_seconds()
            there = self.at_start(pod, container, program, found, run)
            known = program.outcome(found.known(program.own), there, passed_s)
            folders = _folders(program, container, run) if mine else program.own
            if known is not None:
                found.put(folders, known.files, known.gone)
                known_all = known_all or mine
                continue
            found.put(folders, self._of_hook(pod, container, found, run))
            if program.words or container in pod.view.spec.init_containers:
                found.doubt(program.own)
        return found, known_all

    def run(
        self,
        pod: Pod,
        container: SimulatedContainer,
        command: tuple[str, ...],
        sent: str | None = "",
        *,
        is_long: bool = False,
        on_terminal: bool = False,
    ) -> Execution:
        """Run a command in a container. The files that it writes and removes are kept. ``sent``: its standard input;
        is_long: it is too long to be known; on_terminal: it is a terminal."""
        started = self.started(pod, container, sent, on_terminal=on_terminal)
        started = replace(started, there=replace(started.there, has_long_input=is_long))
        known = started.outcome(command)
        if self.keep(started, known):
            return known
        return replace(known, problem="the names of the files that it writes are too many to be kept")

    def started(
        self, pod: Pod, container: SimulatedContainer, sent: str | None = None, *, on_terminal: bool = False
    ) -> Started:
        """What a command finds that starts now in a container."""
        made, whole = self._made(pod, containers_of(pod.view), container.name)
        for mounted, files, gone in self._written.get(pod.view.uid, ()):
            made.put(mounted, files, gone)
        run = pod.run(container.name, previous=False)
        before = self.made_before(pod, container.name)
        program = program_of(container, pod.view, self.objects, _NOTHING, before, self.began(pod, run))
        folders = _folders(program, container, run)
        scratch = (*made.known(program.own), *(own_folders(container) if whole else ()))
        there = There(
            made.seen_by(folders), scratch, made.gone_by(folders), self._clock.now(), sent, has_terminal=on_terminal
        )
        return Started(pod, container, program, folders, there)

    def keep(self, started: Started, known: Execution) -> bool:
        """Keep the files that a command has written and removed; returns whether there is room for them."""
        pod, there = started.pod, started.there
        if known.files == there.files and known.gone == there.gone:
            return True
        new = {path: text for path, text in known.files.items() if path not in there.files or there.files[path] != text}
        gone, written = known.gone - there.gone, self._written.get(pod.view.uid, ())
        left = _added(written, started.folders, new, gone)
        if _characters(left) > _MOST_OF_POD:
            left = _added(written, started.folders, dict.fromkeys(new), gone)
            if _characters(left) > _MOST_OF_POD:
                return False
        self._written[pod.view.uid], self._sizes[pod.view.uid] = left, _characters(left)
        self._places[pod.view.uid] = pod.namespace, pod.name
        self._written.move_to_end(pod.view.uid)
        self._limit()
        container, now = started.container, There(known.files, there.scratch, known.gone)
        self.changed(pod.key, container.name, after(container, started.program.env, there, now))
        return True

    def _limit(self) -> None:
        """Drop the files of deleted pods, then those of others, while there are too many."""
        if not self._is_full():
            return
        for uid in [uid for uid in self._written if self._is_gone(uid)]:
            self._drop(uid)
        while self._is_full():
            self._drop(next(iter(self._written)))

    def _is_gone(self, uid: str) -> bool:
        place = self._places.get(uid)
        stored = self._store.get(PODS, *place) if place is not None else None
        return place is not None and (stored is None or cast(Tree, stored.doc)["metadata"].get("uid") != uid)

    def _is_full(self) -> bool:
        return len(self._written) > _MOST_PODS or sum(self._sizes.values()) > _MOST

    def _drop(self, uid: str) -> None:
        del self._written[uid], self._sizes[uid]
        self._places.pop(uid, None)


def _ignore(pod: str, container: str, what: object) -> None:
    """Used without simulated nodes."""


def _folders(program: Program, container: SimulatedContainer, run: Run | None) -> Mounted:
    """The folders of a container, in which commands write. All but mounted ones are new in each run."""
    began = "" if run is None else run.started.isoformat()
    return {**program.own, "": (f"/{container.name}/{began}", "")}


def _added(written: Left, folders: Mounted, files: Files, gone: frozenset[str]) -> Left:
    """What is left after one more command. It is one with the command before it in the same container, so that no
    content is kept that has been replaced."""
    if written and written[-1][0] == folders:
        _, earlier, lost = written[-1]
        kept = {path: text for path, text in earlier.items() if path not in gone}
        return (*written[:-1], (folders, {**kept, **files}, lost | gone))
    return (*written, (folders, files, gone))[-_MOST_COMMANDS:]


def _characters(left: Left) -> int:
    made = sum(len(path) + len(text or "") for _, files, _ in left for path, text in files.items())
    return made + sum(map(len, chain.from_iterable(gone for _, _, gone in left)))

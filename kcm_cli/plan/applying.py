"""Makes changes in a twin as the usual tools do: kubectl apply, drain, scale and delete, and the loss of nodes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice

import msgspec
from msgspec.structs import replace

from kcm_cli.api.short_names import kind_in
from kcm_cli.api.well_known import HOSTNAME
from kcm_cli.engine.controller import CUSTOM
from kcm_cli.machinery import labels
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.names import path_segment
from kcm_cli.machinery.quoting import bounded, quote
from kcm_cli.machinery.times import format_time
from kcm_cli.plan.answer import Object
from kcm_cli.plan.changes import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Metric,
    Options,
    RemoveNode,
    Scale,
    SetImage,
    Target,
    is_selector,
)
from kcm_cli.plan.draining import NODE_RESOURCE, POLL_S, Draining, Note
from kcm_cli.plan.kubectl_apply import ApplyError, KubectlApply, NoPatchError, is_server_side, without_nulls
from kcm_cli.plan.observe import NODES
from kcm_cli.plan.redaction import as_live
from kcm_cli.plan.refusals import Refusal, as_kubectl, refused
from kcm_cli.plan.shapes import fault_of_metadata
from kcm_cli.plan.snapshot import PlanError
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError, Conflict, NotFound
from kcm_cli.rest.served_resources import Discovery, ServedResource
from kcm_cli.sandbox.nodes.shape import ANNOTATIONS

_TEMPLATES = ("deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers", "jobs", "cronjobs")
_KUSTOMIZATION = "kustomize.config.k8s.io"
_LONGEST = 300
"""Characters of a warning."""
_LONGEST_LABEL = 63


class Applying(msgspec.Struct):
    """Makes the changes. refusals: what failed. remarks: how a change was made, by its number. assumed: what may be
    otherwise in the cluster."""

    twin: Twin
    options: Options
    note: Note
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    remarks: dict[int, str] = msgspec.field(default_factory=dict)
    assumed: list[str] = msgspec.field(default_factory=list)
    drain: Draining | None = None
    _known: Discovery = msgspec.field(default_factory=Discovery)
    _before: Discovery = msgspec.field(default_factory=Discovery)
    _images: dict[Target, list[SetImage]] = msgspec.field(default_factory=dict)

    async def begin(self, changes: tuple[Change, ...]) -> list[str]:
        """Make all immediate changes. Returns the nodes to drain. Raises PlanError with what is wrong in any of
        them."""
        self._before = self._known = await discover(self.twin.client)
        drains: list[str] = []
        problems: dict[str, None] = {}
        for one in changes:
            if isinstance(one, SetImage):
                self._images.setdefault(one.target, []).append(one)
        for number, change in enumerate(changes):
            try:
                drains += await self._make(number, change)
            except PlanError as error:
                problems[str(error)] = None
            if texts := self._warnings():
                told = (self.remarks.get(number, ""), f"the API server warns: {'; '.join(texts)}")
                self.remarks[number] = "; ".join(filter(None, told))
        if problems:
            raise PlanError("\n".join(problems))
        self.drain = Draining(self.twin, self.note, self.refusals)
        if drains:
            last = max(number for number, change in enumerate(changes) if isinstance(change, Drain))
            self.remarks[last] = self.drain.command(drains)
        return drains

    def _warnings(self) -> list[str]:
        """What the API server has warned of since the last call, as kubectl prints it."""
        warned = self.twin.written.warned
        found = [bounded(text, _LONGEST) for text in warned]
        warned.clear()
        return list(dict.fromkeys(found))

    async def _make(self, number: int, change: Change) -> list[str]:
        """Make a change. Returns the nodes to drain. Raises PlanError."""
        match change:
            case Drain(node=word):
                return self._nodes(word)
            case FailNode(node=word) | RemoveNode(node=word):
                for name in self._nodes(word):
                    await self._lose(name, removed=isinstance(change, RemoveNode))
            case Metric():
                metric = replace(change, namespace=change.namespace or self._namespace)
                if problem := self.twin.metrics.give(metric):
                    raise PlanError(problem)
            case Apply():
                try:
                    self.remarks[number] = await self._apply(change)
                except RecursionError:
                    raise PlanError(f"error: {change.where}: it is nested too deep") from None
            case SetImage():
                if some := self._images.pop(change.target, ()):
                    self.remarks[number] = await self._set_images(change.target, some)
            case _:
                await self._write(change)
        return []

    async def _write(self, change: Change) -> None:
        match change:
            case AddNode():
                await self._add(change)
            case Scale():
                await self._scale(change)
            case Delete():
                await self._delete(change)

    @contextmanager
    def _reported(self, about: Object, when: str = "") -> Iterator[None]:
        """A rejected request is a refusal of the change."""
        try:
            yield
        except ApiError as error:
            self.refusals.append(refused(about, error, as_kubectl(error, when)))

    # -- nodes

    def _nodes(self, word: str) -> list[str]:
        """The node with this name, or the nodes that a label selector matches."""
        if not is_selector(word):
            if self.twin.store.get(NODES, "", word) is None:
                raise PlanError(f'Error from server (NotFound): nodes "{word}" not found')
            return [word]
        try:
            selector = labels.parse(word)
        except FormatError as error:
            raise PlanError(f"error: {error}") from None
        nodes = ((stored.name, nested_map(stored.doc, "metadata", "labels")) for stored in self.twin.store.list(NODES))
        found = [name for name, own in nodes if selector.matches(own)]
        if not found:
            raise PlanError(f"error: no node has the label {word}")
        return found

    async def _lose(self, name: str, *, removed: bool) -> None:
        """Stop a node's kubelet, or delete its Node object."""
        if removed:
            with self._reported(Object("Node", "", name)):
                await self.twin.client.delete(NODE_RESOURCE, "", name)
            return
        self.twin.agents.fail(name)
        self.note("node", Object("Node", "", name), "its kubelet stops")

    async def _add(self, change: AddNode) -> None:
        stored = self.twin.store.get(NODES, "", self._nodes(change.like)[0])
        assert stored is not None
        names = (f"{change.like}-copy-{number}" for number in count(1))
        free = (name for name in names if self.twin.store.get(NODES, "", name) is None)
        for name in islice(free, change.count):
            doc = node_like(stored.copy(), name, format_time(self.twin.clock.now()))
            with self._reported(Object("Node", "", name)):
                await self.twin.client.create(NODE_RESOURCE, "", doc)

    # -- objects

    async def _apply(self, change: Apply) -> str:
        """Apply a manifest. Returns how. Raises PlanError."""
        doc = change.doc
        served, namespace, name = self._place(doc, change.where)
        about = _about(served, namespace, name)
        kubectl = KubectlApply(self.twin.client, served, self.twin.type_of(served))
        how, held = "", ""
        try:
            live = await kubectl.live(namespace, name)
            if self.twin.snapshot.redacted and live is not None:
                doc, taken = as_live(doc, live)
                if taken:
                    self.assumed.append(f"{about} keeps its values of env, which the snapshot does not have")
            if self._is_server_side(live):
                how = "server-side"
                written = await kubectl.server_side(namespace, name, doc, force=self.options.force_conflicts)
            else:
                how = "client-side"
                written = await kubectl.client_side(namespace, name, doc, live)
        except ApplyError as failed:
            text = as_kubectl(failed.error, f'{failed.when} "{change.where}"')
            if isinstance(failed.error, Conflict) and failed.error.causes:
                text = f"{text} (--force-conflicts takes them over)"
            self.refusals.append(refused(about, failed.error, text))
        except NoPatchError as failed:
            self.refusals.append(Refusal("refused", about, f'error: error when patching "{change.where}": {failed}'))
        else:
            rolls = live is not None and template_of(live) != template_of(written)
            held = held_back(about.kind, written) if rolls else ""
        if served.gvr.plural == "customresourcedefinitions":
            await self.twin.clock.sleep(POLL_S)
            self._known = await discover(self.twin.client)
        return "; ".join(part for part in (how, self._elsewhere(namespace), self._later(served), held) if part)

    def _later(self, served: ServedResource) -> str:
        """That kubectl looks for the kinds of all manifests first."""
        is_known = self._before.find_kind(served.gvr.group, served.kind, served.gvr.version) is not None
        return "" if is_known else "kubectl apply does not know its kind before it is run again"

    def _elsewhere(self, namespace: str) -> str:
        """That kubectl refuses a manifest of another namespace than that of -n."""
        given = self.options.namespace
        return f"kubectl apply -n {given} refuses another namespace" if given and namespace not in ("", given) else ""

    def _is_server_side(self, live: Doc | None) -> bool:
        return self.options.server_side or self.options.force_conflicts or is_server_side(live)

    def _place(self, doc: Doc, where: str) -> tuple[ServedResource, str, str]:
        """(resource, namespace, name) of a manifest. Raises PlanError."""
        version, kind = (_text(doc.get(field), field, where) for field in ("apiVersion", "kind"))
        name, named = (nested_str(doc, "metadata", field) for field in ("name", "namespace"))
        group, _, bare = version.rpartition("/")
        served = self._known.find_kind(group, kind, bare)
        if served is None:
            text = f'no matches for kind "{kind}" in version "{version}"'
            hint = " (kustomize build FOLDER | kcm plan -f -)" if group == _KUSTOMIZATION else ""
            of = f"for name: {name} from {where}" if name else f"from {where}"
            raise PlanError(f"error: resource mapping not found {of}: {text}{hint}")
        if not name and (prefix := nested_str(doc, "metadata", "generateName")):
            raise PlanError(f"error: {where}: from {prefix}: cannot use generate name with apply")
        _check_metadata(doc, where)
        for what, segment in (("resource name", name), ("namespace", named or self._namespace)):
            if faults := path_segment(segment):
                raise PlanError(f"error: {where}: invalid {what} {quote(segment)}: [{' '.join(faults)}]")
        return served, (named or self._namespace) if served.namespaced else "", name

    async def _set_images(self, target: Target, changes: Sequence[SetImage]) -> str:
        """Set the images of a workload by one patch, as kubectl set image does. Returns what of it takes no effect yet.
        Raises PlanError."""
        served, namespace, doc = await self._found(target)
        if served.gvr.plural not in _TEMPLATES or self.twin.type_of(served) is None:
            raise PlanError(f"--set-image: {target} has no pod template")
        above = ("spec", "jobTemplate") if served.gvr.plural == "cronjobs" else ()
        pod = nested_map(doc, *above, "spec", "template", "spec")
        names, inits = (
            [nested_str(one, "name") for one in nested_list(pod, field)] for field in ("containers", "initContainers")
        )
        images: dict[str, str] = {}
        for change in changes:
            container = change.container or (names[0] if len(names) == 1 else "")
            if container not in (*names, *inits):
                what = f"has no container {container}" if container else "has several containers"
                raise PlanError(f"--set-image: {target} {what}: name one of {', '.join((*names, *inits))}")
            images[container] = change.image
        lists: dict[str, list[Doc]] = {}
        for container, image in images.items():
            of = "initContainers" if container in inits else "containers"
            lists.setdefault(of, []).append({"name": container, "image": image})
        patch: Doc = {"spec": {"template": {"spec": lists}}}
        if served.gvr.plural == "cronjobs":
            patch = {"spec": {"jobTemplate": patch}}
        await self._change(target, served, namespace, patch, STRATEGIC_MERGE, "")
        return held_back(served.kind, doc)

    async def _scale(self, change: Scale) -> None:
        served, namespace, _ = await self._found(change.target)
        if "scale" not in served.subresources:
            raise PlanError(f"--scale: {change.target} cannot be scaled")
        await self._change(change.target, served, namespace, {"spec": {"replicas": change.replicas}}, MERGE, "scale")

    async def _change(
        self, target: Target, served: ServedResource, namespace: str, patch: Doc, type_: str, subresource: str
    ) -> None:
        with self._reported(_about(served, namespace, target.name)):
            await self.twin.client.patch(
                served.partial(), namespace, target.name, patch, content_type=type_, subresource=subresource
            )

    async def _delete(self, change: Delete) -> None:
        target = change.target
        served, namespace, _ = await self._found(target)
        with self._reported(_about(served, namespace, target.name)):
            await self.twin.client.delete(served.partial(), namespace, target.name, propagation=change.propagation)

    async def _found(self, target: Target) -> tuple[ServedResource, str, Doc]:
        """(resource, namespace, document) of a target. Raises PlanError."""
        served = self._known.named(target.kind)
        if served is None:
            raise PlanError(f'error: the server doesn\'t have a resource type "{target.kind}"')
        namespace = (target.namespace or self._namespace) if served.namespaced else ""
        try:
            return served, namespace, await self.twin.client.get_doc(served.partial(), namespace, target.name)
        except NotFound as error:
            if why := self._unread(served.gvr.group_resource):
                raise PlanError(f"error: {target} is not in the snapshot: {why}") from None
            where = f" in namespace {namespace}" if namespace else ""
            raise PlanError(f"Error from server (NotFound): {error}{where}") from None
        except (ApiError, ValueError) as error:
            raise PlanError(f"{target}: {error}") from None

    def _unread(self, resource: str) -> str:
        """Why not all objects of a resource are in the snapshot; empty if they are."""
        snapshot = self.twin.snapshot
        reasons = {gap.resource: gap.reason for gap in snapshot.gaps}
        if resource not in reasons and any(
            gvr.group_resource == resource and not one.read for gvr, one in snapshot.collections.items()
        ):
            return f"{resource}: {reasons.get(CUSTOM, 'not read')}"
        return f"{resource}: {reasons[resource]}" if resource in reasons else ""

    @property
    def _namespace(self) -> str:
        return self.options.namespace or self.twin.snapshot.namespace or "default"


def _about(served: ServedResource, namespace: str, name: str) -> Object:
    return Object(kind_in(served.gvr.group, served.kind), namespace, name)


def _text(value: object, field: str, where: str) -> str:
    """The value of a manifest's field that must be a text. Raises PlanError."""
    if value in (None, ""):
        raise PlanError(f"error: {where}: {field} is missing")
    if not isinstance(value, str):
        raise PlanError(f"error: {where}: {field} is no string")
    return value


def _check_metadata(doc: Doc, where: str) -> None:
    """Raises PlanError for metadata without a name, and for those that kubectl cannot decode: an annotation that is no
    string."""
    metadata = nested_map(doc, "metadata")
    _text(metadata.get("name"), "metadata.name", where)
    if fault := fault_of_metadata(without_nulls(metadata)):
        raise PlanError(f"error: {where}: {fault}")


def template_of(doc: Doc) -> object:
    """The template of a workload's pods."""
    return nested_map(doc, "spec", "template")


def held_back(kind: str, doc: Doc) -> str:
    """What of a new template a workload does not roll out by itself; empty if it rolls out all."""
    if kind == "Deployment" and nested_map(doc, "spec").get("paused") is True:
        return "the Deployment is paused: no pod is replaced"
    strategy = nested_map(doc, "spec", "updateStrategy")
    if kind in ("StatefulSet", "DaemonSet") and strategy.get("type") == "OnDelete":
        return "updateStrategy OnDelete: no pod is replaced until it is deleted"
    partition, replicas = (
        nested_map(strategy, "rollingUpdate").get("partition"),
        nested_map(doc, "spec").get("replicas"),
    )
    if kind == "StatefulSet" and isinstance(partition, int) and partition > 0:
        count = replicas if isinstance(replicas, int) else 1
        return f"partition {partition}: {min(partition, count)} of {count} replicas keep the old template"
    return ""


def node_like(node: Doc, name: str, now: str) -> Doc:
    """The body of a new Node with the properties of another one."""
    status = nested_map(node, "status")
    labels = {**nested_map(node, "metadata", "labels"), HOSTNAME: name[-_LONGEST_LABEL:].lstrip("-._")}
    keeps = ("capacity", "allocatable", "nodeInfo", "daemonEndpoints", "declaredFeatures", "features")
    conditions: list[object] = [
        {**one, "lastHeartbeatTime": now, "lastTransitionTime": now}
        for one in nested_list(status, "conditions")
        if isinstance(one, dict) and one.get("type") != "Ready"
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    conditions.append({**ready, "message": "kubelet is posting ready status", "lastTransitionTime": now})
    kept = (one for one in nested_list(node, "spec", "taints") if isinstance(one, dict))
    taints = [one for one in kept if not nested_str(one, "key").startswith("node.kubernetes.io/")]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(ANNOTATIONS)},
        "spec": {"taints": taints} if taints else {},
        "status": {**{key: status[key] for key in keeps if key in status}, "conditions": conditions},
    }

"""Small operators written with kopf, each with one bug that can be left out."""

import secrets
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import kopf
import kubernetes

from tests.perturb.kit import GROUP, PLURAL, SPACE, Case, adds_another, changes, config_map, core, ends, starts

Exists = kubernetes.client.ApiException
KIND = (GROUP, "v1", PLURAL)


def program(register: Callable[..., Any]) -> Callable[[bool], Any]:
    """``register(registry, client, buggy)`` declares the handlers, and may return settings."""

    def make(buggy: bool) -> Any:
        async def main(kubeconfig: str) -> None:
            registry, client = kopf.OperatorRegistry(), core(kubeconfig)
            kopf.on.login(registry=registry)(lambda **words: kopf.login_with_kubeconfig(**words))
            settings = register(registry, client, buggy) or kopf.OperatorSettings()
            settings.posting.enabled = False
            await kopf.operator(registry=registry, settings=settings, standalone=True, namespaces=[SPACE])

        return main

    return make


def create_once(client: Any, body: Any) -> None:
    try:
        client.create_namespaced_config_map(SPACE, body)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise


def delete_once(client: Any, name: str) -> None:
    try:
        client.delete_namespaced_config_map(name, SPACE)
    except kubernetes.client.ApiException as error:
        if error.status != 404:
            raise


@program
def generated(registry, client, buggy):
    @kopf.on.create(*KIND, registry=registry)
    def create(name, **_):
        if buggy:
            body = {"metadata": {"generateName": f"{name}-"}, "data": {"k": "v"}}
            client.create_namespaced_config_map(SPACE, body)
        else:
            create_once(client, config_map(f"{name}-made", k="v"))


@program
def exists_is_fatal(registry, client, buggy):
    custom = kubernetes.client.CustomObjectsApi(client.api_client)

    @kopf.on.create(*KIND, registry=registry)
    def create(name, **_):
        try:
            client.create_namespaced_config_map(SPACE, config_map(name, k="v"))
        except kubernetes.client.ApiException as error:
            if buggy:
                raise kopf.PermanentError("cannot create") from error
            if error.status != 409:
                raise
        # Not patch.status: kopf sends that after the patch that says that the handler is done.
        custom.patch_namespaced_custom_object_status(GROUP, "v1", SPACE, PLURAL, name, {"status": {"made": True}})


@program
def done_before_it_is(registry, client, buggy):
    custom = kubernetes.client.CustomObjectsApi(client.api_client)

    def say_ready(name):
        body = {"status": {"phase": "Ready"}}
        custom.patch_namespaced_custom_object_status(GROUP, "v1", SPACE, PLURAL, name, body)

    @kopf.on.create(*KIND, registry=registry)
    @kopf.on.resume(*KIND, registry=registry)
    def create(name, **_):
        now = custom.get_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL, name)
        if now.get("status", {}).get("phase") == "Ready":
            return
        if buggy:
            say_ready(name)
            create_once(client, config_map(name, k="v"))
        else:
            create_once(client, config_map(name, k="v"))
            say_ready(name)


@program
def appends(registry, client, buggy):
    @kopf.on.create(*KIND, registry=registry)
    def create(name, **_):
        create_once(client, config_map("registry", names=""))
        known = client.read_namespaced_config_map("registry", SPACE)
        names = (known.data or {}).get("names", "").split()
        if buggy or name not in names:
            known.data = {"names": " ".join([*names, name])}
            client.replace_namespaced_config_map("registry", SPACE, known)


@program
def status_by_patch(registry, client, buggy):
    """kopf sends ``patch.status`` after the patch that says that the handler is done: a crash between loses it."""
    custom = kubernetes.client.CustomObjectsApi(client.api_client)

    @kopf.on.create(*KIND, registry=registry)
    def create(name, spec, patch, **_):
        if buggy:
            patch.status["text"] = spec["text"]
        else:
            body = {"status": {"text": spec["text"]}}
            custom.patch_namespaced_custom_object_status(GROUP, "v1", SPACE, PLURAL, name, body)


@program
def counts(registry, client, buggy):
    custom = kubernetes.client.CustomObjectsApi(client.api_client)

    @kopf.on.create(*KIND, registry=registry)
    def create(**_):
        create_once(client, config_map("totals", count="0"))
        known = client.read_namespaced_config_map("totals", SPACE)
        there = len(custom.list_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL)["items"])
        known.data = {"count": str(int(known.data["count"]) + 1 if buggy else there)}
        client.replace_namespaced_config_map("totals", SPACE, known)


@program
def replaces(registry, client, buggy):
    @kopf.on.create(*KIND, registry=registry)
    def create(name, spec, **_):
        create_once(client, config_map(name, text=spec["text"]))

    @kopf.on.update(*KIND, registry=registry)
    def update(name, spec, **_):
        if not buggy:
            there = client.list_namespaced_config_map(SPACE, field_selector=f"metadata.name={name}").items
            if there and there[0].data == {"text": spec["text"]}:
                return
        try:
            client.delete_namespaced_config_map(name, SPACE)
        except kubernetes.client.ApiException as error:
            if buggy:
                raise kopf.PermanentError("nothing to replace") from error
            if error.status != 404:
                raise
        if buggy:
            client.create_namespaced_config_map(SPACE, config_map(name, text=spec["text"]))
        else:
            create_once(client, config_map(name, text=spec["text"]))


@program
def owner_later(registry, client, buggy):
    @kopf.on.create(*KIND, registry=registry)
    def create(name, uid, **_):
        try:
            client.create_namespaced_config_map(SPACE, config_map(name, k="v"))
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise
            if buggy:
                return
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "name": name, "uid": uid}
        client.patch_namespaced_config_map(name, SPACE, {"metadata": {"ownerReferences": [owner]}})


@program
def finalizes(registry, client, buggy):
    """kopf (1.45) sends the patch with its finalizer again where the answer was lost. The second one is refused, and
    then it waits for a change, which has come already. Where it does not retry by itself, it looks at the change."""

    @kopf.on.create(*KIND, registry=registry)
    @kopf.on.resume(*KIND, registry=registry)
    def create(name, **_):
        create_once(client, config_map(name, k="v"))

    @kopf.on.delete(*KIND, registry=registry)
    def delete(name, **_):
        delete_once(client, name)

    settings = kopf.OperatorSettings()
    if not buggy:
        settings.networking.error_backoffs = ()
    return settings


@program
def new_password(registry, client, buggy):
    """A password in a Secret, and in what its users read."""

    @kopf.on.create(*KIND, registry=registry)
    def create(name, **_):
        password = secrets.token_hex(8)
        body = {"metadata": {"name": name}, "stringData": {"password": password}}
        try:
            client.create_namespaced_secret(SPACE, body)
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise
            if not buggy:
                password = b64decode(client.read_namespaced_secret(name, SPACE).data["password"]).decode()
        create_once(client, config_map(name, url=f"db://{password}@{name}"))


CASES = (
    Case(
        "generated-names", "kopf", "a retried create makes another object with a generated name", generated, (starts,)
    ),
    Case("exists-is-fatal", "kopf", "AlreadyExists of its own object is a permanent error", exists_is_fatal, (starts,)),
    Case("done-before-it-is", "kopf", "the status says Ready before the object is made", done_before_it_is, (starts,)),
    Case("appends-again", "kopf", "a retry appends to a list what is in it", appends, (starts, adds_another)),
    Case("counts-again", "kopf", "a retry adds one to a counter again", counts, (starts, adds_another)),
    Case(
        "replace-in-two-steps",
        "kopf",
        "deletes, then creates, and gives up if it is deleted",
        replaces,
        (starts, changes),
    ),
    Case("owner-later", "kopf", "what exists is taken to have its owner", owner_later, (starts,)),
    Case("new-password", "kopf", "a retry makes a password anew that was stored", new_password, (starts,)),
)
FLAWS = (
    Case("status-by-patch", "kopf", "the status comes after the handler is done", status_by_patch, (starts,)),
    Case("finalizer-lost", "kopf", "kopf's own retries of the finalizer's patch", finalizes, (starts, ends)),
)
"""What kopf loses by itself is noted, not reported."""

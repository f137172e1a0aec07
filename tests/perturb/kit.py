"""What the operators of this folder share: a custom kind, a scenario, and the clients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import kubernetes
import yaml

from kcm_cli.testing import HostOptions, Program
from kcm_cli.testing.perturb.trial import OperatorTrial

Tree = dict[str, Any]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
GROUP, PLURAL, SPACE = "example.com", "widgets", "default"
DEFINITION: Tree = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": PLURAL, "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
OPTIONS = HostOptions(nodes=0, controllers=False, manifests=(DEFINITION,))


@dataclass(frozen=True)
class Case:
    """An operator with a bug, or without. ``make(True)`` has the bug."""

    name: str
    client: str
    bug: str
    make: Callable[[bool], Program]
    steps: Sequence[Callable[["User"], None]]

    def scenario(self, buggy: bool) -> Callable[[OperatorTrial], None]:
        def play(trial: OperatorTrial) -> None:
            trial.operator(self.make(buggy))
            user = User(trial)
            for step in self.steps:
                step(user)
                trial.settle()

        return play


class User:
    """Somebody who has wishes."""

    def __init__(self, trial: OperatorTrial) -> None:
        self._trial = trial
        client = core(trial.sandbox.kubeconfig)
        self.core, self.custom = client, kubernetes.client.CustomObjectsApi(client.api_client)

    def wants(self, name: str, **spec: Any) -> None:
        widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
        self._trial.sandbox.apply(widget)

    def drops(self, name: str) -> None:
        self.custom.delete_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL, name)


def core(kubeconfig: str) -> kubernetes.client.CoreV1Api:
    """A client without retries."""
    configuration = kubernetes.client.Configuration()
    with open(kubeconfig, encoding="utf-8") as file:
        content = yaml.load(file, _Loader)
    kubernetes.config.load_kube_config_from_dict(content, client_configuration=configuration)
    configuration.retries = False
    return kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))


def config_map(name: str, **data: str) -> Tree:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def starts(user: User) -> None:
    user.wants("web", text="a")


def changes(user: User) -> None:
    user.wants("web", text="b")


def ends(user: User) -> None:
    user.drops("web")


def makes_again(user: User) -> None:
    user.drops("web")
    user.wants("web", text="a")


def adds_another(user: User) -> None:
    user.wants("api", text="c")


def shares(user: User) -> None:
    user.core.create_namespaced_config_map(SPACE, config_map("shared", a="1"))


def shares_more(user: User) -> None:
    user.core.patch_namespaced_config_map("shared", SPACE, {"data": {"b": "2"}})


def keeps(user: User) -> None:
    """Something temporary, which has not expired."""
    body = config_map("job", expired="no")
    body["metadata"]["labels"] = {"temporary": "yes"}
    user.core.create_namespaced_config_map(SPACE, body)


def gives_up(user: User) -> None:
    user.core.patch_namespaced_config_map("job", SPACE, {"data": {"expired": "yes"}})

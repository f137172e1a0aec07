"""The interface of pytest-kind's cluster, for suites that were written for kind.

https://codeberg.org/hjacobs/pytest-kind: ``KindCluster``. What is about images, or the life of the cluster, does
nothing.
"""

import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from kcm_cli.testing.pointing import environment
from kcm_cli.testing.sandbox import Sandbox

_END_S = 5


class KindCluster:
    """A sandbox with pytest-kind's interface: what a fixture ``kind_cluster`` returns.

    ``kubectl`` and ``port_forward`` need kubectl on ``PATH``, and ``api`` needs pykube-ng.
    """

    def __init__(self, sandbox: Sandbox, name: str = "kcm-sandbox") -> None:
        self.sandbox = sandbox
        self.name = name
        self.kubeconfig_path = Path(sandbox.kubeconfig)

    @property
    def api(self) -> Any:
        """A client of pykube-ng."""
        # imported here: it is the suite's
        import pykube  # type: ignore[import-not-found, unused-ignore]

        return pykube.HTTPClient(pykube.KubeConfig.from_file(str(self.kubeconfig_path)))

    def create(self, config_file: str | Path | None = None) -> None:
        """Do nothing: the sandbox runs."""

    def delete(self) -> None:
        """Do nothing: the sandbox ends with its fixture."""

    def load_docker_image(self, docker_image: str) -> None:
        """Do nothing: no image is pulled."""

    def kubectl(self, *args: str, **options: Any) -> str:
        """Run kubectl, and return what it prints. options: of ``check_output``. Raises CalledProcessError."""
        printed: str = subprocess.check_output(
            ["kubectl", *args], env=environment(str(self.kubeconfig_path)), encoding="utf-8", **options
        )
        return printed

    @contextmanager
    def port_forward(
        self, service_or_pod_name: str, remote_port: int, *args: str, local_port: int | None = None, retries: int = 10
    ) -> Iterator[int]:
        """Forward a local port, a free one by default, to a port of a pod or Service while inside.

        Nothing listens there unless ``Sandbox.forward`` or a rule says where the connections go. retries: ignored.
        Raises RuntimeError if kubectl does not forward.
        """
        words = ["kubectl", "port-forward", service_or_pod_name, f"{local_port or ''}:{remote_port}", *args]
        with subprocess.Popen(
            words, env=environment(str(self.kubeconfig_path)), stdout=subprocess.PIPE, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            rest = Thread(target=deque, args=(process.stdout, 0), daemon=True)  # a line for each connection
            try:
                first = process.stdout.readline()  # Forwarding from 127.0.0.1:PORT -> PORT
                if " -> " not in first:
                    raise RuntimeError(f"kubectl port-forward ended: {first}")
                rest.start()
                yield int(first.partition(" -> ")[0].rpartition(":")[2])
            finally:
                process.terminate()
                if rest.ident is not None:
                    rest.join(_END_S)

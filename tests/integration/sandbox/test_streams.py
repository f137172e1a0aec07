"""Logs, commands and ports with several kinds of clients."""

import asyncio
import gc
import http.client
import http.server
import io
import json
import socket
import ssl
import struct
import tarfile
import threading
import zlib
from urllib.parse import urlsplit

import kubernetes
import pytest
from kubernetes.stream import stream

from kcm_cli.sandbox.kubelet_api import commands, server
from kcm_cli.sandbox.streams import spdy
from kcm_cli.testing import Asked, Output
from tests.kit.streams import masked, syn_stream

PREFIX = "sandbox.kcm.dev/"
# The client of kubernetes leaves the sockets of refused requests to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", autouse=True)
def collected():
    """Sockets that are left are collected here, not in a test of another module, where they are errors."""
    yield
    gc.collect()


@pytest.fixture
def core(kcm_kubeconfig):
    with kubernetes.config.new_client_from_config(kcm_kubeconfig) as client:
        yield kubernetes.client.CoreV1Api(client)
        client.rest_client.pool_manager.clear()


@pytest.fixture
def pod(kcm_sandbox, kcm_namespace, core):
    """Makes a pod that runs; its name."""

    def make(
        name: str, command: tuple[str, ...] = (), containers: tuple[str, ...] = ("c",), more=None, **annotations: str
    ) -> str:
        written = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
        spec = dict(more or {})
        mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in spec.get("volumes", ())]
        each = {"image": "i", "volumeMounts": mounts, **({"command": list(command)} if command else {})}
        spec |= {"restartPolicy": "Never", "containers": [{"name": one, **each} for one in containers]}
        core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": name, "annotations": written}, "spec": spec})

        def runs():
            return core.read_namespaced_pod(name, kcm_namespace).status.phase != "Pending"

        kcm_sandbox.wait(runs)
        return name

    return make


def executed(core, namespace: str, pod: str, *command: str, container: str = "c") -> tuple[bytes, bytes, int]:
    """What a command writes to its output and for errors, and its exit code."""
    found = stream(
        core.connect_get_namespaced_pod_exec, pod, namespace, command=list(command), container=container, binary=True,
        stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False,
    )  # fmt: skip
    found.run_forever(timeout=60)
    found.close()
    return found.read_stdout(), found.read_stderr(), found.returncode


def error_of(core, namespace: str, pod: str, *command: str) -> str:
    """The message of a command that is not run."""
    found = stream(
        core.connect_get_namespaced_pod_exec, pod, namespace, command=list(command), stdout=True, stderr=True,
        stdin=False, tty=False, _preload_content=False,
    )  # fmt: skip
    found.run_forever(timeout=60)
    found.close()
    return json.loads(found.read_channel(3))["message"]


def test_logs_of_an_annotation(kcm_namespace, core, pod):
    name = pod("a", logs="one\ntwo\nthree\n")

    def logs(**options):
        return core.read_namespaced_pod_log(name, kcm_namespace, **options)

    assert logs() == "one\ntwo\nthree\n"
    assert logs(tail_lines=1) == "three\n"
    assert logs(limit_bytes=5) == "one\nt"
    assert logs(since_seconds=3600, timestamps=True).splitlines()[0].endswith("Z one")


def test_the_log_of_a_program_whose_last_line_does_not_end(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", ("sh", "-c", r"echo a; printf '1%%\r2%%'; sleep 60; echo; printf b; sleep 60"))

    def log():
        return core.read_namespaced_pod_log(name, kcm_namespace)

    assert log() == "a\n"
    kcm_sandbox.advance(70, patience=0.01)
    assert log() == "a\n1%\r2%\n"
    kcm_sandbox.advance(70, patience=0.01)
    assert log() == "a\n1%\r2%\nb"


def test_only_line_feeds_end_the_lines_of_an_annotation(kcm_namespace, core, pod):
    name = pod("a", logs="1%\r2%\x0c\u2028\n\nend")
    assert core.read_namespaced_pod_log(name, kcm_namespace) == "1%\r2%\x0c\u2028\n\nend\n"
    assert core.read_namespaced_pod_log(name, kcm_namespace, tail_lines=3).startswith("1%")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("case $X in a) exit 1;; esac", "its script uses what is not simulated: case"),
        ("echo a | tr a b", "its script uses what is not simulated: tr"),
        ("./server", "nothing runs in the containers of a sandbox"),
    ],
)
def test_why_there_are_no_logs(kcm_namespace, core, pod, script, why):
    with pytest.raises(kubernetes.client.ApiException) as raised:
        core.read_namespaced_pod_log(pod("a", ("sh", "-c", script)), kcm_namespace)
    assert f"there are no logs: {why}; set them with the annotation" in json.loads(raised.value.body)["message"]


def test_a_log_is_followed_until_the_command_ends(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", ("sh", "-c", "echo now; sleep 20; echo then; sleep 20; echo late"))
    found = core.read_namespaced_pod_log(name, kcm_namespace, follow=True, _preload_content=False)
    assert found.readline() == b"now\n"
    assert core.read_namespaced_pod_log(name, kcm_namespace) == "now\n"
    kcm_sandbox.advance(30, patience=0.01)
    assert found.readline() == b"then\n"
    kcm_sandbox.advance(30, patience=0.01)
    assert found.read() == b"late\n"
    assert core.read_namespaced_pod_log(name, kcm_namespace) == "now\nthen\nlate\n"


@pytest.mark.parametrize(
    ("script", "second"),
    [
        ("while true; do echo x; sleep 50; done", b"x\n"),
        ("i=1; while :; do echo x$i; i=$((i+1)); sleep 50; done", b"x2\n"),
    ],
)
def test_logs_of_endless_loops(kcm_sandbox, kcm_namespace, core, pod, script, second):
    name = pod("a", ("sh", "-c", script))
    found = core.read_namespaced_pod_log(name, kcm_namespace, follow=True, _preload_content=False)
    assert found.readline().startswith(b"x")
    for _ in range(3):
        kcm_sandbox.advance(50, patience=0.01)
    assert found.readline() == second
    assert found.readline().startswith(b"x") and found.readline().startswith(b"x")
    assert core.read_namespaced_pod_log(name, kcm_namespace).count("x") in (4, 5)
    core.delete_namespaced_pod(name, kcm_namespace, grace_period_seconds=0)


@pytest.mark.parametrize(
    ("loop", "last", "first"), [("seq 2000; sleep 1", b"2000\n", b"1\n"), ("echo a; sleep .001", b"a\n", b"a\n")]
)
def test_the_log_of_a_loop_that_writes_much_is_followed(kcm_sandbox, kcm_namespace, core, pod, loop, last, first):
    name = pod("a", ("sh", "-c", f"while true; do {loop}; done"))
    kcm_sandbox.advance(100)
    found = core.read_namespaced_pod_log(name, kcm_namespace, follow=True, tail_lines=1, _preload_content=False)
    assert found.readline() == last
    kcm_sandbox.advance(3, patience=0.01)
    assert found.readline() == first
    core.delete_namespaced_pod(name, kcm_namespace, grace_period_seconds=0)


def test_the_log_of_a_long_loop_says_where_it_ends(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", ("sh", "-c", "i=1; while :; do echo $i; i=$((i+1)); sleep 1; done"))
    kcm_sandbox.advance(600)
    found = core.read_namespaced_pod_log(name, kcm_namespace).splitlines()
    assert found[:2] == ["1", "2"] and len(found) == 501 and found[-1].startswith("[no more of this log")
    core.delete_namespaced_pod(name, kcm_namespace, grace_period_seconds=0)


def test_a_followed_log_ends_after_limit_bytes(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", ("sh", "-c", "echo now; sleep 20; echo then; sleep 3600"))
    found = core.read_namespaced_pod_log(name, kcm_namespace, follow=True, limit_bytes=6, _preload_content=False)
    assert found.readline() == b"now\n"
    kcm_sandbox.advance(30, patience=0.01)
    assert found.read() == b"th"


def attached(core, namespace: str, pod: str):
    return stream(
        core.connect_get_namespaced_pod_attach, pod, namespace, container="c", stdout=True, stderr=True, stdin=False,
        tty=False, _preload_content=False,
    )  # fmt: skip


def test_attach_shows_what_is_written_from_then_on(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", ("sh", "-c", "echo early; sleep 20; echo late; sleep 20; exit 3"))
    client = attached(core, kcm_namespace, name)
    kcm_sandbox.advance(30, patience=0.01)
    assert client.is_open() and client.read_stdout(timeout=5) == "late\n"
    kcm_sandbox.advance(30, patience=0.01)
    client.run_forever(timeout=60)
    assert (client.read_stdout(timeout=0), client.returncode) == ("", 0)


def test_attach_to_a_program_that_is_over_shows_its_output(kcm_sandbox, kcm_namespace, core, pod):
    client = attached(core, kcm_namespace, pod("a", ("echo", "hi"), run_time="60s"))
    kcm_sandbox.advance(70, patience=0.01)
    client.run_forever(timeout=60)
    assert (client.read_stdout(), client.returncode) == ("hi\n", 0)


def test_attach_shows_no_output_that_the_log_has_just_shown(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", ("echo", "hi"), run_time="60s")
    assert core.read_namespaced_pod_log(name, kcm_namespace, container="c") == "hi\n"
    client = attached(core, kcm_namespace, name)
    kcm_sandbox.advance(70, patience=0.01)
    client.run_forever(timeout=60)
    assert (client.read_stdout(), client.returncode) == ("", 0)


def test_missing_logs_are_reported_once(kcm_namespace, core, pod):
    name = pod("a")
    with pytest.raises(kubernetes.client.ApiException, match=f"with the annotation {PREFIX}logs.c") as caught:
        core.read_namespaced_pod_log(name, kcm_namespace)
    assert caught.value.status == 400
    assert core.read_namespaced_pod_log(name, kcm_namespace, follow=True).count("\n") == 1


def test_logs_and_command_outputs_set_by_a_test(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", containers=("c", "d"))
    asked = []

    def answer(call: Asked) -> Output:
        asked.append((call.pod, call.container, call.command, call.stdin, call.tty))
        return Output(stdout="out\n", stderr=b"err\n", exit_code=3)

    kcm_sandbox.answer_exec(f"{kcm_namespace}/*", answer, container="d")
    kcm_sandbox.set_logs(f"{kcm_namespace}/a", "mine", container="d")
    assert core.read_namespaced_pod_log(name, kcm_namespace, container="d") == "mine\n"
    ran = stream(
        core.connect_get_namespaced_pod_exec, name, kcm_namespace, container="d", command=["psql", "-c", "x y"],
        stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False,
    )  # fmt: skip
    ran.run_forever(timeout=60)
    ran.close()
    assert (ran.read_stdout(), ran.read_stderr(), ran.returncode) == ("out\n", "err\n", 3)
    assert asked == [("a", "d", ("psql", "-c", "x y"), b"", False)]


def test_an_interactive_command(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a")

    async def echo(call: Asked) -> None:
        while data := await call.console.stdin.read():
            await call.console.write(data.upper())
            if b"bye" in data:
                return

    kcm_sandbox.answer_exec(f"{kcm_namespace}/a", echo)
    shell = stream(
        core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=["sh"],
        stdout=True, stderr=True, stdin=True, tty=True, _preload_content=False,
    )  # fmt: skip
    for text in ("hi", "bye"):
        shell.write_stdin(text)
        heard = ""
        while heard != text.upper():
            assert shell.is_open() or heard
            heard += shell.read_stdout(timeout=10)  # an empty text is the server's greeting
    shell.run_forever(timeout=60)
    shell.close()
    assert shell.returncode == 0


def test_simple_commands_run_and_others_are_an_error(kcm_namespace, core, pod):
    name = pod("a")
    run = {"stdout": True, "stderr": True, "stdin": False, "tty": False}
    said = stream(core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=["echo", "hi"], **run)
    assert said == "hi\n"
    for command, why in (
        (["psql"], "not found in $PATH"),
        (["cat", "/app"], "cannot simulate"),
        (["/x"], "no such file"),
    ):
        refused = stream(
            core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=command, _preload_content=False, **run
        )
        refused.run_forever(timeout=60)
        status = json.loads(refused.read_channel(3))
        assert (status["reason"], status["code"]) == ("InternalError", 500)
        (cause,) = status["details"]["causes"]
        assert status["message"] == f"Internal error occurred: {cause['message']}"
        assert why in status["message"] and f"{PREFIX}exec.c" in status["message"]
        assert (refused.read_stdout(), refused.read_stderr()) == ("", "")
        refused.close()


def test_exec_without_a_command_fails(kcm_namespace, core, pod):
    assert "args must not be empty" in error_of(core, kcm_namespace, pod("a", ("sh", "-c", "echo a; sleep 600")))


def test_logs_can_read_volumes(kcm_namespace, core, pod):
    core.create_namespaced_config_map(kcm_namespace, {"metadata": {"name": "settings"}, "data": {"color": "blue\n"}})
    volumes = {"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}
    name = pod("a", ("sh", "-c", "cat /v/color /v/none; echo on $HOSTNAME"), more=volumes)
    assert core.read_namespaced_pod_log(name, kcm_namespace) == (
        "blue\ncat: /v/none: No such file or directory\non a\n"
    )
    core.patch_namespaced_config_map("settings", kcm_namespace, {"data": {"none": "new\n"}})
    assert core.read_namespaced_pod_log(name, kcm_namespace) == "blue\nnew\non a\n"


def test_logs_of_a_restarted_container(kcm_sandbox, kcm_namespace, core):
    script = "if [ -e /data/f ]; then echo again; exit 0; fi; echo first > /data/f; cat < /data/f; exit 1"
    mounts = [{"name": "data", "mountPath": "/data"}]
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "volumeMounts": mounts}
    volumes = [{"name": "data", "emptyDir": {}}]
    spec = {"restartPolicy": "OnFailure", "containers": [container], "volumes": volumes}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})
    kcm_sandbox.wait(lambda: core.read_namespaced_pod("a", kcm_namespace).status.phase == "Succeeded")
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "again\n"
    assert core.read_namespaced_pod_log("a", kcm_namespace, previous=True) == "first\n"


def test_logs_and_commands_use_files_and_hooks(kcm_sandbox, kcm_namespace, core):
    mounts = [{"name": "data", "mountPath": "/data"}]
    init = {
        "name": "i",
        "image": "i",
        "command": ["sh", "-c", r"echo COLOR=\'blue\' > /data/env"],
        "volumeMounts": mounts,
    }
    variable = {"name": "MINE", "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "env", "key": "COLOR"}}}
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo hook $MINE > /tmp/hook"]}}}
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "env | grep MINE; cat /tmp/hook; sleep 900"]}
    container |= {"env": [variable], "lifecycle": hook, "volumeMounts": mounts}
    spec = {"initContainers": [init], "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})
    kcm_sandbox.wait(lambda: core.read_namespaced_pod("a", kcm_namespace).status.phase == "Running")
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "MINE=blue\nhook blue\n"
    assert executed(core, kcm_namespace, "a", "sh", "-c", "echo $MINE; cat /tmp/hook") == (b"blue\nhook blue\n", b"", 0)


def test_variables_stay_as_they_were_when_the_container_started(kcm_sandbox, kcm_namespace, core):
    """As the tutorials about ConfigMaps and Services show: only a restart finds their changes."""
    core.create_namespaced_config_map(kcm_namespace, {"metadata": {"name": "m"}, "data": {"fruit": "apples"}})
    core.create_namespaced_secret(kcm_namespace, {"metadata": {"name": "s"}, "stringData": {"word": "old"}})
    script = 'echo "$FRUIT $MINE"; sleep 9000'
    env = [
        {"name": "FRUIT", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "fruit"}}},
        {"name": "MINE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['mine']"}}},
    ]
    mounts = [
        {"name": "v", "mountPath": "/part", "subPath": "fruit"},
        {"name": "v", "mountPath": "/whole"},
        {"name": "v", "mountPath": "/expanded", "subPathExpr": "$(PART)"},
    ]
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "volumeMounts": mounts}
    container |= {"env": [*env, {"name": "PART", "value": "fruit"}], "envFrom": [{"secretRef": {"name": "s"}}]}
    spec = {"containers": [container], "volumes": [{"name": "v", "configMap": {"name": "m"}}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a", "labels": {"mine": "one"}}, "spec": spec})

    def started(count: int) -> bool:
        (status,) = core.read_namespaced_pod("a", kcm_namespace).status.container_statuses or [None]
        return status is not None and bool(status.ready) and status.restart_count == count

    def seen() -> bytes:
        command = "echo $FRUIT $word $MINE ${WEB_SERVICE_HOST:+web}; cat /part /expanded /whole/fruit"
        return executed(core, kcm_namespace, "a", "sh", "-c", command)[0]

    kcm_sandbox.wait(lambda: started(0))
    assert seen() == b"apples old one\napplesapplesapples"
    core.patch_namespaced_config_map("m", kcm_namespace, {"data": {"fruit": "kiwis"}})
    core.patch_namespaced_secret("s", kcm_namespace, {"stringData": {"word": "new"}})
    core.patch_namespaced_pod("a", kcm_namespace, {"metadata": {"labels": {"mine": "two"}}})
    core.create_namespaced_service(kcm_namespace, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    assert seen() == b"apples old one\napplesappleskiwis"
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "apples one\n"
    core.delete_namespaced_secret("s", kcm_namespace)
    assert seen() == b"apples old one\napplesappleskiwis"
    core.create_namespaced_secret(kcm_namespace, {"metadata": {"name": "s"}, "stringData": {"word": "third"}})
    executed(core, kcm_namespace, "a", "kill", "1")
    kcm_sandbox.wait(lambda: started(1))
    assert seen() == b"kiwis third two web\nkiwiskiwiskiwis"
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "kiwis two\n"
    assert core.read_namespaced_pod_log("a", kcm_namespace, previous=True) == "apples one\n"


def test_commands_find_what_a_hook_wrote_beside_a_program_of_an_image(kcm_sandbox, kcm_namespace, core):
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo hello > /usr/share/message"]}}}
    spec = {"containers": [{"name": "c", "image": "nginx", "lifecycle": hook}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})
    kcm_sandbox.wait(lambda: core.read_namespaced_pod("a", kcm_namespace).status.phase == "Running")
    assert executed(core, kcm_namespace, "a", "cat", "/usr/share/message") == (b"hello\n", b"", 0)


def test_a_container_that_never_ran_has_no_logs(kcm_sandbox, kcm_namespace, core):
    container = {"name": "c", "image": "i", "command": ["echo", "hello"]}
    spec = {"activeDeadlineSeconds": 5, "restartPolicy": "Never", "containers": [container]}
    annotations = {f"{PREFIX}pull-error": "no"}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a", "annotations": annotations}, "spec": spec})
    kcm_sandbox.advance(10)
    assert core.read_namespaced_pod("a", kcm_namespace).status.reason == "DeadlineExceeded"
    for previous, why in ((False, 'container "c" in pod "a" is terminated'), (True, "previous terminated container")):
        with pytest.raises(kubernetes.client.ApiException) as raised:
            core.read_namespaced_pod_log("a", kcm_namespace, previous=previous)
        assert json.loads(raised.value.body)["message"].startswith(why)


def test_commands_read_files_of_volumes(kcm_sandbox, kcm_namespace, core, pod):
    core.create_namespaced_secret(kcm_namespace, {"metadata": {"name": "s"}, "data": {"key": "AP8="}})
    name = pod("a", more={"volumes": [{"name": "v", "secret": {"secretName": "s"}}]})

    def ran(*command: str) -> tuple[bytes, bytes, int]:
        return executed(core, kcm_namespace, name, *command)

    assert ran("cat", "/v/key") == (b"\0\xff", b"", 0)
    assert ran("cat", "/v/none") == (b"", b"cat: /v/none: No such file or directory\n", 1)
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    assert ran("cat", f"{account}/namespace") == (kcm_namespace.encode(), b"", 0)
    token, _, _ = ran("cat", f"{account}/token")
    assert ran("cat", f"{account}/token")[0] == token
    review = {"spec": {"token": token.decode()}}
    user = kubernetes.client.AuthenticationV1Api(core.api_client).create_token_review(review).status.user
    assert user.username == f"system:serviceaccount:{kcm_namespace}:default"
    assert user.extra["authentication.kubernetes.io/pod-name"] == [name]
    core.patch_namespaced_secret("s", kcm_namespace, {"stringData": {"key": "new"}})
    assert ran("cat", "/v/key") == (b"new", b"", 0)


def test_containers_share_an_emptydir(kcm_sandbox, kcm_namespace, core, pod):
    mounts = [{"name": "v", "mountPath": "/w"}]
    more = {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [
            {"name": "i", "image": "i", "command": ["sh", "-c", "echo hi > /w/page"], "volumeMounts": mounts}
        ],
    }
    script = "cat /v/page; echo a > /v/now; sleep 60; echo b >> /v/now; sleep 3600"
    name = pod("a", ("sh", "-c", script), ("c", "d"), more=more)
    assert core.read_namespaced_pod_log(name, kcm_namespace, container="d") == "hi\n"
    assert executed(core, kcm_namespace, name, "cat", "/v/now", container="d") == (b"a\n", b"", 0)
    kcm_sandbox.advance(120, patience=0.01)
    assert executed(core, kcm_namespace, name, "cat", "/v/now", container="d") == (b"a\nb\n", b"", 0)
    assert executed(core, kcm_namespace, name, "sh", "-c", "echo mine > /v/now") == (b"", b"", 0)
    assert executed(core, kcm_namespace, name, "cat", "/v/now", container="d") == (b"mine\n", b"", 0)


def test_commands_find_files_of_the_current_run_of_a_container(kcm_sandbox, kcm_namespace, core):
    mounts = [{"name": "v", "mountPath": "/v"}]
    script = "if [ -e /v/runs ]; then echo second >> /v/runs; sleep 3600; fi; echo first > /v/runs; exit 1"
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "volumeMounts": mounts}
    beside = {"name": "d", "image": "i", "command": ["sleep", "3600"], "volumeMounts": mounts}
    spec = {"containers": [container, beside], "volumes": [{"name": "v", "emptyDir": {}}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})

    def running() -> bool:
        statuses = core.read_namespaced_pod("a", kcm_namespace).status.container_statuses or ()
        return [(each.restart_count, each.ready) for each in statuses] == [(1, True), (0, True)]

    kcm_sandbox.advance_until(running, 60)
    for name in ("c", "d"):
        assert executed(core, kcm_namespace, "a", "cat", "/v/runs", container=name) == (b"first\nsecond\n", b"", 0)


def test_probes_find_files_that_commands_wrote(kcm_sandbox, kcm_namespace, core):
    """A container has files outside of its volumes, too, until it starts again."""
    script = "mkdir -p /srv; echo hi > /srv/index.html; echo up > /tmp/alive; sleep 3600"
    container = {"name": "c", "image": "x", "command": ["sh", "-c", script]}
    container["readinessProbe"] = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    container["livenessProbe"] = {"exec": {"command": ["cat", "/tmp/alive"]}, "periodSeconds": 2, "failureThreshold": 1}
    served = {"name": "d", "image": "httpd", "readinessProbe": {"httpGet": {"path": "/index.html", "port": 80}}}
    served["readinessProbe"] |= {"periodSeconds": 1, "failureThreshold": 1}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": {"containers": [container, served]}})

    def statuses() -> list[tuple[bool, int]]:
        kcm_sandbox.advance(3, patience=0.01)
        found = core.read_namespaced_pod_status("a", kcm_namespace).status.container_statuses
        return [(each.ready, each.restart_count) for each in found]

    def ran(*command: str, container: str = "c") -> tuple[bytes, bytes, int]:
        return executed(core, kcm_namespace, "a", *command, container=container)

    assert statuses() == [(False, 0), (True, 0)]
    assert ran("cat", "/srv/index.html") == (b"hi\n", b"", 0)
    assert ran("touch", "/tmp/ready") == (b"", b"", 0)
    assert ran("mv", "/srv/www/index.html", "/tmp/", container="d") == (b"", b"", 0)
    assert statuses() == [(True, 0), (False, 0)]
    assert ran("sh", "-c", "test -f /srv/www/index.html", container="d")[2] == 1
    assert ran("mv", "/tmp/index.html", "/srv/www/", container="d") == (b"", b"", 0)
    assert statuses() == [(True, 0), (True, 0)]
    assert ran("rm", "/tmp/alive") == (b"", b"", 0)
    assert statuses() == [(False, 1), (True, 0)]
    assert ran("ls", "/tmp/alive", "/tmp/ready")[2] == 1


def test_files_that_commands_wrote_are_reset(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a", more={"volumes": [{"name": "v", "emptyDir": {}}]})

    def ran(script: str) -> tuple[bytes, bytes, int]:
        return executed(core, kcm_namespace, name, "sh", "-c", script)

    assert ran("echo before > /v/f") == (b"", b"", 0)
    before = kcm_sandbox.snapshot()
    assert ran("echo after > /v/f; touch /v/g") == (b"", b"", 0)
    kcm_sandbox.reset(before)
    assert ran("ls /v; cat /v/f") == (b"f\nbefore\n", b"", 0)


def test_files_of_deleted_pods_are_dropped_first(kcm_sandbox, kcm_namespace, core, pod, monkeypatch):
    monkeypatch.setattr(commands, "_MOST_PODS", 2)
    monkeypatch.setattr(commands, "_MOST_OF_POD", 100)
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}]}

    def ran(name: str, script: str) -> int:
        return executed(core, kcm_namespace, name, "sh", "-c", script)[2]

    for name in ("a", "b", "c"):
        assert ran(pod(name, more=volumes), f"echo {'x' * 40} > /v/f") == 0
        if name == "b":
            core.delete_namespaced_pod("b", kcm_namespace, grace_period_seconds=0)
    assert (ran("a", "[ -f /v/f ]"), ran("c", "[ -f /v/f ]")) == (0, 0)
    assert ran("a", f"echo {'y' * 80} > /v/g; cat /v/f") == 0
    assert ran("a", "[ -f /v/g ]") == 0
    assert "too many to be kept" in error_of(core, kcm_namespace, "a", "sh", "-c", f"touch /v/{'z' * 100}")
    assert ran("a", f"[ -f /v/{'z' * 100} ]") == 1
    assert "nothing runs in the containers" in error_of(core, kcm_namespace, "a", "cat", "/v/g")


def test_content_of_files_is_limited_of_a_pod_and_in_all(kcm_namespace, core, pod, monkeypatch):
    monkeypatch.setattr(commands, "_MOST_OF_POD", 60_000)
    monkeypatch.setattr(commands, "_MOST", 100_000)
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}]}
    lines = b"".join(b"%d\n" % number for number in range(1, 10_001))

    def ran(name: str, script: str) -> tuple[bytes, bytes, int]:
        return executed(core, kcm_namespace, name, "sh", "-c", script)

    for name in ("a", "b", "c"):
        assert ran(pod(name, more=volumes), "seq 10000 > /v/f") == (b"", b"", 0)
        assert ran(name, "cat /v/f") == (lines, b"", 0)
    assert [ran(name, "[ -f /v/f ]")[2] for name in ("a", "b", "c")] == [1, 0, 0]
    assert ran("c", "seq 2 10000 > /v/f; cat /v/f") == (lines[2:], b"", 0), "what was replaced does not count"
    assert ran("c", "cat /v/f") == (lines[2:], b"", 0)


class Upgraded:
    """An upgraded connection."""

    def __init__(self, sandbox, method: str, path: str, upgrade: str) -> None:
        where = urlsplit(sandbox.url)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(socket.create_connection((where.hostname, where.port), 10))
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {sandbox.token}\r\nConnection: Upgrade"
        self.socket.sendall(f"{head}\r\n{upgrade}\r\n\r\n".encode())
        self.answer = b""
        while b"\r\n\r\n" not in self.answer:
            self.answer += self.exactly(1)
        assert self.answer.startswith(b"HTTP/1.1 101 "), self.answer

    def exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self.socket.recv(size - len(found))
            assert more, found
            found += more
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class Spdy(Upgraded):
    """A client as client-go was before WebSockets."""

    def __init__(self, sandbox, path: str, protocol: str) -> None:
        super().__init__(sandbox, "POST", path, f"Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {protocol}")
        assert f"X-Stream-Protocol-Version: {protocol}".encode() in self.answer
        self.writer = zlib.compressobj(zdict=spdy._DICTIONARY)

    def open(self, stream: int, **headers: str) -> None:
        self.socket.sendall(syn_stream(self.writer, stream, headers))

    def send(self, stream: int, data: bytes, *, end: bool = False) -> None:
        self.socket.sendall(spdy.Session.data(stream, data, end=end))

    def until_ended(self, *streams: int) -> dict[int, bytes]:
        """All that comes on these streams until they are closed."""
        found = dict.fromkeys(streams, b"")
        open_ = set(streams)
        rest = b""
        while open_:
            rest += self.socket.recv(65536)
            while len(rest) >= 8:
                first, second = int.from_bytes(rest[:4], "big"), int.from_bytes(rest[4:8], "big")
                size = second & 0xFFFFFF
                if len(rest) < 8 + size:
                    break
                if not first >> 31 and first in found:
                    found[first] += rest[8 : 8 + size]
                    if second >> 24 & 1:
                        open_.discard(first)
                rest = rest[8 + size :]
        return found


def test_a_client_that_speaks_spdy(kcm_sandbox, kcm_namespace, pod):
    pod("a")
    kcm_sandbox.answer_exec(f"{kcm_namespace}/a", lambda call: Output(call.stdin[::-1], "err", 4))
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=rev&stdin=true&stdout=true&stderr=true"
    with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
        for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            client.open(stream_, streamType=name)
        client.send(3, b"abc", end=True)
        found = client.until_ended(1, 5, 7)
    assert (found[5], found[7]) == (b"cba", b"err")
    assert json.loads(found[1])["details"]["causes"] == [{"reason": "ExitCode", "message": "4"}]


def test_a_shell_ends_with_exit(kcm_sandbox, kcm_namespace, pod):
    pod("a")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=sh&stdin=True&stdout="
    with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
        for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout")):
            client.open(stream_, streamType=name)
        client.send(3, b"echo hi\n")
        received = b""
        while not received.endswith(b"hi\n"):
            received += client.socket.recv(4096)
        client.send(3, b"echo there; exit\n")
        client.send(3, b"exit\n")
        assert client.until_ended(1, 5)[5] == b"there\n"


def test_a_shell_answers_an_unknown_command_at_once(kcm_sandbox, kcm_namespace, pod):
    pod("a")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=sh&stdin=true&stdout=true&stderr=true"
    with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
        for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            client.open(stream_, streamType=name)
        for line, heard in ((b"foobar\n", b"sh: foobar: not found\n"), (b"echo $?\n", b"127\n")):
            client.send(3, line)
            received = b""
            while not received.endswith(heard):
                received += client.socket.recv(4096)


@pytest.mark.parametrize(
    "command", [["sh"], ["/bin/bash", "-l"], ["sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"]]
)
def test_a_shell_on_a_terminal(kcm_sandbox, kcm_namespace, core, pod, command):
    name = pod("a")
    shell = stream(
        core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=command,
        stdout=True, stderr=True, stdin=True, tty=True, _preload_content=False,
    )  # fmt: skip
    talk = [
        ("", "/ # "),
        ("echox\x7f hi\r", "echox\b \b hi\r\nhi\r\n/ # "),
        ("cd /tmp\r", "cd /tmp\r\n/tmp # "),
        ("if foo\r", "if foo\r\n> "),
        ("\x03", "^C\r\n/tmp # "),
        ("sleep 1h\r", "sleep 1h\r\n"),
        ("\x03", "^C\r\n/tmp # "),
        ("\x1b[Aecho $?\r", "echo $?\r\n130\r\n/tmp # "),
        ("exit 3\r", "exit 3\r\n"),
    ]
    for typed, seen in talk:
        shell.write_stdin(typed)
        heard = ""
        while len(heard) < len(seen):
            more = shell.read_stdout(timeout=10)
            assert more or shell.is_open()
            heard += more
        assert heard == seen
    shell.run_forever(timeout=60)
    shell.close()
    assert shell.returncode == 3


@pytest.mark.parametrize(("command", "shown"), [(["sleep", "1h"], "^C\r\n"), (["cat"], "x\r\nx\r\n^C\r\n")])
def test_a_key_interrupts_a_command_on_a_terminal(kcm_namespace, core, pod, command, shown):
    found = stream(
        core.connect_get_namespaced_pod_exec, pod("a"), kcm_namespace, command=command,
        stdout=True, stderr=True, stdin=True, tty=True, _preload_content=False,
    )  # fmt: skip
    found.write_stdin("x\r")
    found.write_stdin("\x03")
    found.run_forever(timeout=60)
    found.close()
    assert (found.read_stdout(), found.returncode) == (shown, 130)


def test_a_command_ends_the_container(kcm_sandbox, kcm_namespace, core):
    trap = "trap 'exit 7' TERM; while true; do sleep 1; done"
    spec = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i", "command": ["sh", "-c", trap]}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})

    def statuses():
        return core.read_namespaced_pod("a", kcm_namespace).status.container_statuses or ()

    kcm_sandbox.wait(lambda: [each.ready for each in statuses()] == [True, True])
    for command in (("kill", "-0", "1"), ("kill", "-9", "1"), ("sh", "-c", "kill -HUP 1")):
        assert executed(core, kcm_namespace, "a", *command) == (b"", b"", 0)
    assert [each.restart_count for each in statuses()] == [0, 0]
    assert executed(core, kcm_namespace, "a", "kill", "1") == (b"", b"", 0)
    assert executed(core, kcm_namespace, "a", "sh", "-c", "kill 1", container="d") == (b"", b"", 0)
    kcm_sandbox.wait(lambda: [each.restart_count for each in statuses()] == [1, 1])
    assert [each.last_state.terminated.exit_code for each in statuses()] == [0, 7]


def test_a_long_input_is_read(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a")
    for size, code in ((9 << 20, 0), (3 << 20, 0)):
        client = stream(
            core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=["sh", "-c", "cat > /tmp/x; echo done"],
            stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False,
        )  # fmt: skip
        client.sock.send(b"\0" + b"x" * size, 2)
        client.sock.send(b"\xff\0", 2)
        client.run_forever(timeout=60)
        client.close()
        assert (client.read_stdout(), client.returncode) == ("done\n", code)
    assert executed(core, kcm_namespace, name, "cat", "/tmp/x") == (b"x" * (3 << 20), b"", 0)


def test_a_function_gets_all_of_a_long_input(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a")
    kcm_sandbox.answer_exec(f"{kcm_namespace}/a", lambda call: str(len(call.stdin)))
    for size, output in ((3 << 20, str(3 << 20)), (9 << 20, "")):
        client = stream(
            core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=["psql"], stdin=True, stdout=True,
            stderr=True, tty=False, _preload_content=False,
        )  # fmt: skip
        client.sock.send(b"\0" + b"x" * size, 2)
        client.sock.send(b"\xff\0", 2)
        client.run_forever(timeout=60)
        assert client.read_stdout() == output
        client.close()
    assert "the input has more than 8 MiB" in client.read_channel(3)


@pytest.mark.parametrize(
    "command", [("head", "-c", "5"), ("sh", "-c", "exec 3>&1; mkdir -p /tmp/d && head -c 5 | tee /tmp/d/f")]
)
def test_a_command_ends_when_it_has_read_its_bytes(kcm_namespace, core, pod, command):
    """Clients with older protocols cannot close the input (kubernetes/kubernetes#89899), so that they say its size."""
    client = stream(
        core.connect_get_namespaced_pod_exec, pod("a"), kcm_namespace, command=list(command), stdin=True, stdout=True,
        stderr=True, tty=False, _preload_content=False,
    )  # fmt: skip
    client.write_stdin(b"abc")
    client.write_stdin(b"de")
    client.run_forever(timeout=30)
    assert (client.read_stdout(), client.returncode) == ("abcde", 0)


def test_a_shell_waits_for_the_rest_of_a_line(kcm_sandbox, kcm_namespace, core, pod):
    pod("a")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=sh&stdin=true&stdout=true"
    with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
        for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout")):
            client.open(stream_, streamType=name)
        client.send(3, b"echo a \\\n")
        core.read_namespaced_pod("a", kcm_namespace)  # the first line has arrived when this is answered
        client.send(3, b"b\n", end=True)
        assert client.until_ended(1, 5)[5] == b"a b\n"


@pytest.mark.parametrize(
    ("command", "sent", "output", "errors", "code"),
    [
        ("cat", b"abc\ndef\n", b"abc\ndef\n", b"", 0),
        ("/bin/sh", b"echo abc\nexit 3\n", b"abc\n", b"", 3),
        ("sh&command=-c&command=cat", b"abc", b"abc", b"", 0),
        ("tee&command=/tmp/f", b"abc", b"abc", b"", 0),
        ("sh&command=-c&command=cat+>+/tmp/f%3B+grep+-c+.+/tmp/f", b"a\nb\n", b"2\n", b"", 0),
        ("sh", b"if true; then\necho a\nfi\nX=1\n\necho $X\n", b"a\n1\n", b"", 0),
        ("sh", b"curl x\n", b"", b"sh: curl: not found\n", 127),
        ("sh", b"curl x\ncat /app/x; echo no\necho $?\n", b"126\n", b"sh: curl: not found\nsh: the sandbox cannot", 0),
        ("sh", b"echo a\nif then\necho b\n", b"a\n", b"sh: syntax error: unexpected", 2),
        ("sh", b"cd /tmp\nX=5\nf() {\n echo $X $PWD $1\n}\nf b\ntrap 'echo bye' EXIT\n", b"5 /tmp b\nbye\n", b"", 0),
        ("sh", b"echo a 'b\nc'\ncat <<E\nd\nE\n", b"a b\nc\nd\n", b"", 0),
    ],
)
def test_input_of_a_command(kcm_sandbox, kcm_namespace, pod, command, sent, output, errors, code):
    pod("a")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command={command}&stdin=true&stdout=true&stderr=true"
    with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
        for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            client.open(stream_, streamType=name)
        client.send(3, sent[:4])
        client.send(3, sent[4:], end=True)
        found = client.until_ended(1, 5, 7)
    assert found[5] == output
    assert found[7].startswith(errors) and bool(found[7]) == bool(errors)
    status = json.loads(found[1])
    causes = status.get("details", {}).get("causes", [{"message": "0"}])
    assert [cause["message"] for cause in causes] == [str(code)]


def test_a_client_that_closes_the_connection_after_its_input(kcm_sandbox, kcm_namespace, core, pod):
    name, packed = pod("a"), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo("g")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"def"))

    def send(data: bytes, *command: str):
        client = stream(
            core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=list(command), stdin=True, stdout=True,
            stderr=True, tty=False, _preload_content=False,
        )  # fmt: skip
        client.write_stdin(data)
        return client

    send(b"abc", "sh", "-c", "cat > /tmp/f").close()
    unpacked = send(packed.getvalue(), "tar", "xmf", "-", "-C", "/tmp")
    unpacked.run_forever(timeout=60)
    assert unpacked.returncode == 0
    kcm_sandbox.wait(lambda: executed(core, kcm_namespace, name, "cat", "/tmp/f", "/tmp/g") == (b"abcdef", b"", 0))


@pytest.fixture
def attach(kcm_sandbox, kcm_namespace):
    """Attaches with an input to the container of the pod ``a``: the output, the errors and the Status."""

    def attach(sent: bytes) -> tuple[bytes, bytes, str]:
        path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/attach?stdin=true&stdout=true&stderr=true"
        with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
            for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
                client.open(stream_, streamType=name)
            client.send(3, sent, end=True)
            found = client.until_ended(1, 5, 7)
        return found[5], found[7], json.loads(found[1])["status"]

    return attach


@pytest.mark.parametrize(
    ("command", "sent", "output", "errors", "code"),
    [
        (("cat",), b"a\nb", b"a\nb", b"", 0),
        (("sh",), b"echo a; foo\nexit 3\necho b\n", b"a\n", b"sh: foo: not found\n", 3),
        ((), b"echo a\n", b"a\n", b"", 0),
        (("sh", "-c", "wc -c; exit 4"), b"abc", b"3\n", b"", 4),
    ],
    ids=["cat", "shell", "image", "script"],
)
def test_an_attached_program_ends_with_its_input(
    kcm_sandbox, kcm_namespace, core, attach, command, sent, output, errors, code
):
    """As of ``kubectl run -i --rm``."""
    container = {"name": "c", "image": "i", "stdin": True, "stdinOnce": True, "command": list(command)}
    spec = {"restartPolicy": "Never", "containers": [container]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})

    def phase():
        return core.read_namespaced_pod("a", kcm_namespace).status.phase

    kcm_sandbox.wait(lambda: phase() == "Running")
    assert core.read_namespaced_pod_log("a", kcm_namespace) == ""
    assert attach(sent) == (output, errors, "Success")
    kcm_sandbox.wait(lambda: phase() == ("Failed" if code else "Succeeded"))
    (status,) = core.read_namespaced_pod("a", kcm_namespace).status.container_statuses
    assert status.state.terminated.exit_code == code
    assert core.read_namespaced_pod_log("a", kcm_namespace) == (output + errors).decode()


@pytest.mark.parametrize(("sent", "code"), [(b"echo a\n(exit 3)\n", 3), (b"echo a; sleep 30; exit 4\n", 4)])
def test_an_attached_program_ends_when_its_client_has_gone(kcm_sandbox, kcm_namespace, core, sent, code):
    """As of ``kubectl run -i`` that is killed."""
    container = {"name": "c", "image": "i", "stdin": True, "stdinOnce": True, "command": ["sh"]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})

    def phase():
        return core.read_namespaced_pod("a", kcm_namespace).status.phase

    kcm_sandbox.wait(lambda: phase() == "Running")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/attach?stdin=true&stdout=true"
    with Spdy(kcm_sandbox, path, "v4.channel.k8s.io") as client:
        for stream_, name in ((1, "error"), (3, "stdin"), (5, "stdout")):
            client.open(stream_, streamType=name)
        client.send(3, sent)
        heard = b""
        while not heard.endswith(b"a\n"):
            heard += client.exactly(1)
    kcm_sandbox.advance_until(lambda: phase() == "Failed", 60)
    (status,) = core.read_namespaced_pod("a", kcm_namespace).status.container_statuses
    assert status.state.terminated.exit_code == code


def test_a_program_with_an_open_input_goes_on_when_a_client_detaches(kcm_sandbox, kcm_namespace, core, attach):
    spec = {"containers": [{"name": "c", "image": "i", "stdin": True, "command": ["sh"]}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})

    def statuses():
        return core.read_namespaced_pod("a", kcm_namespace).status.container_statuses or ()

    kcm_sandbox.wait(lambda: [each.ready for each in statuses()] == [True])
    assert attach(b"echo a\n") == (b"a\n", b"", "Success")
    assert attach(b"echo b\n") == (b"b\n", b"", "Success")
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "a\nb\n"
    assert [each.restart_count for each in statuses()] == [0]
    assert attach(b"exit 2\n") == (b"", b"", "Success")
    kcm_sandbox.wait(lambda: [each.restart_count for each in statuses()] == [1])
    assert core.read_namespaced_pod_log("a", kcm_namespace) == ""
    assert core.read_namespaced_pod_log("a", kcm_namespace, previous=True) == "a\nb\n"


def test_what_an_attached_client_causes_is_followed(kcm_sandbox, kcm_namespace, core, attach):
    container = {"name": "c", "image": "i", "stdin": True, "stdinOnce": True, "command": ["sh"]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})
    kcm_sandbox.wait(lambda: core.read_namespaced_pod("a", kcm_namespace).status.phase == "Running")
    found = core.read_namespaced_pod_log("a", kcm_namespace, follow=True, _preload_content=False)
    beside = attached(core, kcm_namespace, "a")
    assert attach(b"echo a; echo b\nprintf c\n") == (b"a\nb\nc", b"", "Success")
    assert found.read() == b"a\nb\nc"
    beside.run_forever(timeout=60)
    assert (beside.read_stdout(), beside.returncode) == ("a\nb\nc", 0)


def test_what_attached_programs_wrote_is_reset(kcm_sandbox, kcm_namespace, core, attach):
    spec = {"containers": [{"name": "c", "image": "i", "stdin": True, "command": ["sh"]}]}
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "a"}, "spec": spec})
    kcm_sandbox.wait(lambda: core.read_namespaced_pod("a", kcm_namespace).status.phase == "Running")
    assert attach(b"echo a\n") == (b"a\n", b"", "Success")
    before = kcm_sandbox.snapshot()
    assert attach(b"echo b\n") == (b"b\n", b"", "Success")
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "a\nb\n"
    kcm_sandbox.reset(before)
    assert core.read_namespaced_pod_log("a", kcm_namespace) == "a\n"


@pytest.fixture
def echo():
    """A server that returns its input in capitals; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(one: socket.socket) -> None:
            with one:
                while data := one.recv(65536):
                    one.sendall(data.upper())

        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(one,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_ports_over_the_channels_of_a_websocket(kcm_sandbox, kcm_namespace, pod, echo):
    pod("a", forward=f"81=127.0.0.1:{echo}")
    kcm_sandbox.forward(f"{kcm_namespace}/a", 80, echo)
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward?ports=80&ports=81,82"
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: v4.channel.k8s.io"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        for channel in (0, 2):
            client.socket.sendall(masked(2, bytes([channel]) + b"hello"))
        heard: dict[int, bytes] = {}
        while len(heard.get(0, b"")) < 7 or len(heard.get(2, b"")) < 7 or len(heard.get(5, b"")) < 3:
            head = client.exactly(2)
            size = head[1] if head[1] < 126 else int.from_bytes(client.exactly(2), "big")
            message = client.exactly(size)
            heard[message[0]] = heard.get(message[0], b"") + message[1:]
    ports = {channel: int.from_bytes(data[:2], "little") for channel, data in heard.items()}
    assert ports == {0: 80, 1: 80, 2: 81, 3: 81, 4: 82, 5: 82}
    assert (heard[0][2:], heard[2][2:]) == (b"HELLO", b"HELLO")
    assert f"{PREFIX}forward: 82=PORT".encode() in heard[5]


@pytest.fixture
def talker():
    """A server that writes for ever; yields its port, and Events that are set when a client has come, and gone."""
    came, gone = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)  # else a client that never comes, or never reads, is awaited for ever

        def serve() -> None:
            try:
                one, _ = server.accept()
            except OSError:
                return
            came.set()
            with one:
                one.settimeout(60)
                try:
                    while not gone.wait(0.01):
                        one.sendall(b"more")
                except OSError:
                    gone.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], came, gone
        gone.set()
        thread.join()


@pytest.mark.parametrize("ending", ["end", "reset"])
def test_a_connection_ends_with_its_client(kcm_sandbox, kcm_namespace, pod, talker, ending):
    port, came, gone = talker
    pod("a", forward=f"80={port}")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward"
    with Spdy(kcm_sandbox, path, "portforward.k8s.io") as client:
        client.open(1, streamType="error", port="80", requestID="0")
        client.open(3, streamType="data", port="80", requestID="0")
        assert came.wait(30)
        client.send(3, b"hello", end=ending == "end")
        if ending == "reset":
            client.socket.sendall(struct.pack(">HHIII", 0x8003, 3, 8, 3, 5))
        assert client.until_ended(1) == {1: b""}
        assert gone.wait(30)


def test_a_connection_ends_with_its_pod(kcm_sandbox, kcm_namespace, core, pod, talker, echo):
    port, came, gone = talker
    pod("a", forward=f"80={port}")
    with Spdy(kcm_sandbox, f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward", "portforward.k8s.io") as client:
        client.open(1, streamType="error", port="80", requestID="0")
        client.open(3, streamType="data", port="80", requestID="0")
        assert came.wait(30)  # else its port may be gone first
        core.patch_namespaced_pod("a", kcm_namespace, {"metadata": {"annotations": {f"{PREFIX}forward": f"81={echo}"}}})
        client.open(5, streamType="error", port="81", requestID="1")
        client.open(7, streamType="data", port="81", requestID="1")
        client.send(7, b"hello", end=True)
        assert client.until_ended(5, 7) == {5: b"", 7: b"HELLO"}, "a target that was set meanwhile"
        core.delete_namespaced_pod("a", kcm_namespace, grace_period_seconds=0)
        assert client.until_ended(1) == {1: b""}
        assert gone.wait(30)
        client.open(9, streamType="error", port="81", requestID="2")
        client.open(11, streamType="data", port="81", requestID="2")
        assert client.until_ended(9) == {9: f'pod not found ("a_{kcm_namespace}")'.encode()}


def test_a_command_is_killed_with_its_container(kcm_sandbox, kcm_namespace, core, pod):
    name = pod("a")
    found = stream(
        core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=["sh", "-c", "echo a; sleep 3600"],
        stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False,
    )  # fmt: skip
    while not found.peek_stdout(timeout=10):
        assert found.is_open()
    core.delete_namespaced_pod(name, kcm_namespace, grace_period_seconds=0)
    found.run_forever(timeout=60)
    assert (found.read_stdout(), found.returncode) == ("a\n", 137)


def test_a_function_that_ends_its_container_goes_on_in_real_time(kcm_sandbox, kcm_namespace, core, pod, monkeypatch):
    monkeypatch.setattr(server, "_KILLED_S", 30.0)
    begun, work = threading.Event(), []

    async def answer(_: Asked) -> str:
        work.extend((asyncio.get_running_loop(), asyncio.Event()))
        begun.set()
        await work[1].wait()
        return "bye"

    name = pod("a")
    kcm_sandbox.answer_exec(f"{kcm_namespace}/a", answer)
    found = stream(
        core.connect_get_namespaced_pod_exec, name, kcm_namespace, command=["x"], stdout=True, stderr=True, stdin=False,
        tty=False, _preload_content=False,
    )  # fmt: skip
    assert begun.wait(10)
    core.delete_namespaced_pod(name, kcm_namespace, grace_period_seconds=0)
    journey = threading.Thread(target=kcm_sandbox.advance, args=(60,))
    journey.start()
    for _ in range(200):  # turns in which time could pass
        kcm_sandbox.run(lambda: None)
    work[0].call_soon_threadsafe(work[1].set)
    found.run_forever(timeout=60)
    journey.join(30)
    assert (found.read_stdout(), found.returncode) == ("bye", 0)


def test_a_websocket_ends_with_the_connections_of_its_ports(kcm_sandbox, kcm_namespace, pod):
    with socket.create_server(("127.0.0.1", 0)) as server:
        pod("a", forward=f"80={server.getsockname()[1]}")
        path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward?ports=80,81"
        upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: v4.channel.k8s.io"
        with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
            one, _ = server.accept()
            with one:
                one.sendall(b"bye")
            found = messages_of(client)
    assert (0, b"bye") in [(message[0], message[1:]) for message in found]


def test_a_websocket_for_ports_ends_with_its_client(kcm_sandbox, kcm_namespace, pod, talker):
    port, _, gone = talker
    pod("a", forward=f"80={port}")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward?ports=80"
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: v4.channel.k8s.io"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        client.socket.sendall(masked(8, b""))
        messages_of(client)
        assert gone.wait(30)


def messages_of(client: Upgraded) -> list[bytes]:
    """The messages that a client gets until the server closes."""
    found = []
    while True:
        first, size = client.exactly(2)
        size = int.from_bytes(client.exactly({126: 2, 127: 8}[size]), "big") if size > 125 else size
        data = client.exactly(size)
        if first & 0x0F == 8:
            assert data == (1000).to_bytes(2, "big")
            return found
        found.append(data)


@pytest.mark.parametrize("error", [False, True])
def test_output_comes_in_messages_of_a_size_that_clients_read(kcm_sandbox, kcm_namespace, pod, error):
    """Clients have limits for a message: that of aiohttp is 4 MiB."""
    pod("a")
    text = b"x" * 100_000
    kcm_sandbox.answer_exec(f"{kcm_namespace}/a", lambda _: Output(b"" if error else text, text if error else b""))
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=x&stdout=true&stderr=true"
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: v4.channel.k8s.io"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        found = messages_of(client)
    assert b"".join(message[1:] for message in found if message[0] == 1 + error) == text
    assert max(map(len, found)) == 1 + (32 << 10)


def test_a_long_log_over_a_websocket_comes_in_messages_of_a_size_that_clients_read(kcm_sandbox, kcm_namespace, pod):
    pod("a")
    text = "x" * 100_000
    kcm_sandbox.set_logs(f"{kcm_namespace}/a", text)
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/log"
    with Upgraded(kcm_sandbox, "GET", path, "Upgrade: websocket\r\nSec-WebSocket-Key: a") as client:
        found = messages_of(client)
    assert b"".join(found) == text.encode() + b"\n"
    assert max(map(len, found)) == 32 << 10


@pytest.mark.parametrize(
    ("protocol", "kind", "text"),
    [("", 2, b"one\ntwo\n"), ("binary.k8s.io", 2, b"one\ntwo\n"), ("base64.binary.k8s.io", 1, b"b25lCnR3bwo=")],
)
def test_logs_over_a_websocket(kcm_sandbox, kcm_namespace, pod, protocol, kind, text):
    pod("a", logs="one\ntwo")
    offered = f"\r\nSec-WebSocket-Protocol: {protocol}" if protocol else ""
    upgrade = f"Upgrade: websocket\r\nSec-WebSocket-Key: a{offered}"
    with Upgraded(kcm_sandbox, "GET", f"/api/v1/namespaces/{kcm_namespace}/pods/a/log", upgrade) as client:
        frames = []
        while not frames or frames[-1][0] != 8:
            head = client.exactly(2)
            frames.append((head[0] & 0x0F, client.exactly(head[1])))
    assert frames == [(kind, b""), (kind, text), (8, (1000).to_bytes(2, "big"))]


def test_logs_that_are_followed_over_a_websocket_end_with_their_client(kcm_sandbox, kcm_namespace, pod):
    pod("a", logs="one")
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a"
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/log?follow=true"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        assert (client.exactly(2), client.exactly(2 + 4)) == (b"\x82\x00", b"\x82\x04one\n")
        client.socket.sendall(masked(8, b""))
        assert client.socket.recv(1) == b""


def frames_of(client: Upgraded, *, until: bytes, kind: int = 0x81) -> list[bytes]:
    """The messages that a client gets, until one begins so."""
    found = [b""]
    while not found[-1].startswith(until):
        first, size = client.exactly(2)
        assert first == kind
        found.append(client.exactly(int.from_bytes(client.exactly(2), "big") if size == 126 else size))
    return found[1:]


@pytest.mark.parametrize("protocol", ["v4.base64.channel.k8s.io", "base64.channel.k8s.io"])
def test_commands_over_messages_in_text(kcm_sandbox, kcm_namespace, pod, protocol):
    """The protocol of terminals in browsers."""
    pod("a")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=cat&stdin=true&stdout=true"
    upgrade = f"Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: {protocol}"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        client.socket.sendall(masked(1, b"0aGVsbG8="))
        assert frames_of(client, until=b"1aGVsbG8=") == [b"1", b"1aGVsbG8="]


@pytest.mark.parametrize(
    ("protocol", "kind", "close", "sent", "heard"),
    [
        ("v4.channel.k8s.io", 2, b"\xff\0", b"\0hello", b"\1hello"),
        ("v4.base64.channel.k8s.io", 1, b"/AA==", b"0aGVsbG8=", b"1aGVsbG8="),
    ],
)
def test_older_protocols_cannot_close_the_input(kcm_sandbox, kcm_namespace, pod, protocol, kind, close, sent, heard):
    pod("a")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/exec?command=cat&stdin=true&stdout=true"
    upgrade = f"Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: {protocol}"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        client.socket.sendall(masked(kind, close) + masked(kind, sent))
        assert frames_of(client, until=heard, kind=0x80 | kind) == [heard[:1], heard]


def test_a_port_over_messages_in_text(kcm_sandbox, kcm_namespace, pod, echo):
    pod("a", forward=f"80={echo}")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward?ports=80"
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: v4.base64.channel.k8s.io"
    with Upgraded(kcm_sandbox, "GET", path, upgrade) as client:
        client.socket.sendall(masked(1, b"0aGVsbG8="))
        assert frames_of(client, until=b"0SEVMTE8=") == [b"0UAA=", b"1UAA=", b"0SEVMTE8="]


@pytest.mark.parametrize("query", ["", "?ports=0"])
def test_a_websocket_for_no_port_is_refused(kcm_sandbox, kcm_namespace, pod, query):
    pod("a")
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: v4.channel.k8s.io"
    with pytest.raises(AssertionError, match="HTTP/1.1 400"):
        Upgraded(kcm_sandbox, "GET", f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward{query}", upgrade)


@pytest.mark.parametrize(("protocol", "most"), [("v4.channel.k8s.io", 128), ("v4.base64.channel.k8s.io", 40)])
def test_a_websocket_for_more_ports_than_channels_is_refused(kcm_sandbox, kcm_namespace, pod, protocol, most):
    pod("a")
    upgrade = f"Upgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Protocol: {protocol}"
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward?ports="
    with Upgraded(kcm_sandbox, "GET", path + ",".join(["80"] * most), upgrade) as client:
        assert client.exactly(1) in (b"\x81", b"\x82")
    with pytest.raises(AssertionError, match="HTTP/1.1 400"):
        Upgraded(kcm_sandbox, "GET", path + ",".join(["80"] * (most + 1)), upgrade)


def test_ports_over_spdy(kcm_sandbox, kcm_namespace, pod, echo):
    pod("a", forward=f"80={echo},81=10.244.0.7:80")
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/a/portforward"
    with Spdy(kcm_sandbox, path, "portforward.k8s.io") as client:
        for stream_, (port, request) in ((1, ("80", "0")), (5, ("81", "1"))):
            client.open(stream_, streamType="error", port=port, requestID=request)
            client.open(stream_ + 2, streamType="data", port=port, requestID=request)
        client.send(3, b"hello", end=True)
        found = client.until_ended(1, 3, 5, 7)
    assert (found[1], found[3]) == (b"", b"HELLO")
    assert b"10.244.0.7 is an address of the sandbox, where nothing listens" in found[5]


class Web(http.server.BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_GET(self):
        size = int(self.headers.get("Content-Length") or 0)
        told = {name: self.headers.get(name) for name in ("Authorization", "X-Mine", "X-Forwarded-Uri")}
        body = json.dumps([self.command, self.path, self.rfile.read(size).decode(), told]).encode()
        self.send_response(418 if self.path == "/tea" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Theirs", "yes")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_POST = do_DELETE = do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_proxies_of_pods_and_services(kcm_sandbox, kcm_namespace, core, web):
    spec = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}]}
    annotations = {f"{PREFIX}forward": f"8080={web}"}
    metadata = {"name": "a", "labels": {"app": "a"}, "annotations": annotations}
    core.create_namespaced_pod(kcm_namespace, {"metadata": metadata, "spec": spec})
    core.create_namespaced_pod(kcm_namespace, {"metadata": {"name": "b", "labels": {"app": "b"}}, "spec": spec})
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    for name in ("a", "b", "none"):
        service = {"selector": {"app": name}, "ports": ports}
        core.create_namespaced_service(kcm_namespace, {"metadata": {"name": name}, "spec": service})
    routed = {"name": "r", "annotations": {f"{PREFIX}route": str(web)}}
    core.create_namespaced_service(kcm_namespace, {"metadata": routed, "spec": {"ports": ports}})
    base = f"/api/v1/namespaces/{kcm_namespace}"

    def there():
        *found, _ = [core.read_namespaced_endpoints(name, kcm_namespace).subsets for name in ("a", "b", "none")]
        return all(subsets and subsets[0].addresses for subsets in found)

    kcm_sandbox.wait(there, ignoring=(AssertionError, LookupError, kubernetes.client.ApiException))

    def ask(path: str, method: str = "GET", body: str = "") -> tuple[int, dict, bytes]:
        where = urlsplit(kcm_sandbox.url)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(where.hostname, where.port, context=context, timeout=30)
        headers = {"Authorization": f"Bearer {kcm_sandbox.token}", "X-Mine": "1"}
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        connection.close()
        return found

    for named in (
        "pods/a",
        "pods/a:8080",
        "pods/http:a:8080",
        "services/a",
        "services/a:80",
        "services/a:web",
        "services/r:80",
    ):
        if named == "services/a":
            continue  # a port with a name has to be named
        status, headers, body = ask(f"{base}/{named}/proxy/x/y?q=1&r=a+b")
        told = {"Authorization": None, "X-Mine": "1", "X-Forwarded-Uri": f"{base}/{named}/proxy/x/y"}
        assert (status, json.loads(body)) == (200, ["GET", "/x/y?q=1&r=a+b", "", told]), named
        assert headers["x-theirs"] == "yes"
    assert json.loads(ask(f"{base}/pods/a/proxy/", "POST", "data")[2])[:3] == ["POST", "/", "data"]
    assert ask(f"{base}/pods/a/proxy/tea")[0] == 418
    assert ask(f"{base}/pods/a/proxy/x", "HEAD")[::2] == (200, b"")
    for path, message in (
        ("pods/b", "error trying to reach service: port 8080: nothing runs in the containers of a sandbox; forward it"),
        ("pods/a:99", "error trying to reach service: port 99: nothing runs"),
        ("services/b:web", "error trying to reach service: port 8080: nothing runs"),
        ("services/none:80", 'no endpoints available for service "none"'),
        ("services/a:81", 'no service port 81 found for service "a"'),
    ):
        status, _, body = ask(f"{base}/{path}/proxy/")
        found = json.loads(body)
        assert (status, found["reason"]) == (503, "ServiceUnavailable"), path
        assert found["message"].startswith(message), path
    core.patch_namespaced_pod("a", kcm_namespace, {"metadata": {"annotations": {f"{PREFIX}forward": "8080=1"}}})
    status, _, body = ask(f"{base}/pods/a/proxy/")
    assert status == 503 and "dial tcp 127.0.0.1:1: connect: connection refused" in json.loads(body)["message"]

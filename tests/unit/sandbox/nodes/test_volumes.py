"""The volumes and variables of containers."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import Service
from kcm_cli.machinery import codec
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.nodes.container_program import program_of
from kcm_cli.sandbox.nodes.downward import resource_of
from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs
from kcm_cli.sandbox.nodes.environment import known_env, of_service, of_services
from kcm_cli.sandbox.nodes.objects import CachedObjects
from kcm_cli.sandbox.nodes.volumes import ReadOnce, UnknownContent, Volumes
from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.views import ResourceFieldRef, SimulatedPod, TokenSource

CERT = b"\x00\xffbinary"


class Objects:
    variables: Mapping[str, str] = {}

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        if (namespace, name) != ("ns", "settings"):
            return None
        return {"color": b"blue", "size": b"XL"} | ({"cert": CERT} if binary else {})

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return {"user": b"me"} if (namespace, name) == ("ns", "login") else None

    def allocatable(self, node: str) -> Mapping[str, str]:
        return {"cpu": "32", "memory": "1Gi"} if node == "node-1" else {}

    def services(self, namespace: str, *, links: bool) -> Mapping[str, str]:
        return self.variables if links else {}

    def token(self, pod: SimulatedPod, source: TokenSource) -> bytes:
        return f"for {source.audience or 'all'}".encode()


def pod_of(volumes: list[Any], mounts: list[Any], **container: Any) -> SimulatedPod:
    metadata = {"name": "web-0", "namespace": "ns", "labels": {"b": 'a "b"', "a": "1"}, "annotations": {"k": "v"}}
    whole = {"name": "c", "volumeMounts": mounts, **container}
    spec = {"containers": [whole], "volumes": volumes, "nodeName": "node-1", "serviceAccountName": "robot"}
    status = {"podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]}
    return codec.decode(codec.encode({"metadata": metadata, "spec": spec, "status": status}), SimulatedPod)


def volumes_of(source: dict[str, Any], **mount: Any) -> Volumes:
    pod = pod_of([{"name": "v", **source}], [{"name": "v", "mountPath": "/v", **mount}])
    return Volumes(pod, pod.spec.containers[0], {"DIR": "deep"}, Objects())


def test_config_maps() -> None:
    found = volumes_of({"configMap": {"name": "settings"}})
    assert found.names("/v") == ["cert", "color", "size"]
    assert (found.read("/v/color"), found.read("/v/../v//cert"), found.read("/v/..data/size")) == (b"blue", CERT, b"XL")
    for path, error in (
        ("/v/none", FileNotFoundError),
        ("/v", IsADirectoryError),
        ("/etc/passwd", UnknownContent),
        ("v", UnknownContent),
    ):
        with pytest.raises(error):
            found.read(path)
    with pytest.raises(NotADirectoryError):
        found.names("/v/color")
    with pytest.raises(FileNotFoundError):
        found.names("/v/none")


def test_chosen_keys_and_optional_objects() -> None:
    items = [{"key": "color", "path": "deep/er/c"}, {"key": "none", "path": "n"}]
    found = volumes_of({"configMap": {"name": "settings", "items": items, "optional": True}})
    assert (found.names("/v"), found.names("/v/deep"), found.read("/v/deep/er/c")) == (["deep"], ["er"], b"blue")
    assert volumes_of({"secret": {"secretName": "none", "optional": True}}).names("/v") == []


def test_secrets_and_the_pod_itself() -> None:
    assert volumes_of({"secret": {"secretName": "login"}}).read("/v/user") == b"me"
    fields = {"labels": "metadata.labels", "a": "metadata.labels['a']", "none": "metadata.annotations['x']"}
    resources = {"cpu": ("limits.cpu", "1"), "memory": ("limits.memory", "1Mi"), "asked": ("requests.memory", "0")}
    items: list[Any] = [{"path": path, "fieldRef": {"fieldPath": field}} for path, field in fields.items()]
    for path, (name, divisor) in resources.items():
        ref = {"containerName": "c", "resource": name, "divisor": divisor}
        items.append({"path": path, "resourceFieldRef": ref})
    found = volumes_of({"downwardAPI": {"items": items}})
    read = {name: found.read(f"/v/{name}").decode() for name in found.names("/v")}
    assert read == {
        "labels": 'a="1"\nb="a \\"b\\""', "a": "1", "none": "", "cpu": "32", "memory": "1024", "asked": "0",
    }  # fmt: skip


def test_projected_volumes() -> None:
    sources = [
        {"secret": {"name": "login"}},
        {"configMap": {"name": "settings", "items": [{"key": "color", "path": "user"}]}},
        {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        {"serviceAccountToken": {"path": "token", "audience": "vault"}},
    ]
    found = volumes_of({"projected": {"sources": sources}})
    assert {name: found.read(f"/v/{name}") for name in found.names("/v")} == {
        "user": b"blue", "ns": b"ns", "token": b"for vault",
    }  # fmt: skip


def test_parts_of_volumes() -> None:
    items = [{"key": "color", "path": "deep/c"}]
    assert volumes_of({"configMap": {"name": "settings"}}, subPath="color").read("/v") == b"blue"
    found = volumes_of({"configMap": {"name": "settings", "items": items}}, subPathExpr="$(DIR)")
    assert found.read("/v/c") == b"blue"
    with pytest.raises(UnknownContent):
        volumes_of({"configMap": {"name": "settings"}}, subPathExpr="$(NOBODY)").read("/v")


@pytest.mark.parametrize("source", [{"emptyDir": {}}, {"hostPath": {"path": "/"}}, {"projected": {"sources": [{}]}}])
def test_files_of_other_volumes_are_unknown(source: dict[str, Any]) -> None:
    with pytest.raises(UnknownContent):
        volumes_of(source).read("/v/x")


def test_the_innermost_mount_applies() -> None:
    volumes = [{"name": "a", "configMap": {"name": "settings"}}, {"name": "b", "secret": {"secretName": "login"}}]
    mounts = [{"name": "a", "mountPath": "/etc"}, {"name": "b", "mountPath": "/etc/app/"}]
    pod = pod_of(volumes, mounts)
    found = Volumes(pod, pod.spec.containers[0], {}, Objects())
    assert (found.read("/etc/color"), found.read("/etc/app/user")) == (b"blue", b"me")


@pytest.mark.parametrize("path", ["v", "/v", "//v"])
def test_a_path_of_a_mount_is_absolute(path: str) -> None:
    pod = pod_of([{"name": "v", "configMap": {"name": "settings"}}], [{"name": "v", "mountPath": path}])
    found = Volumes(pod, pod.spec.containers[0], {}, Objects())
    assert "v" in found.names("/") and "" not in found.names("/") and "color" in found.names("/v")


def test_variables() -> None:
    env = [
        {"name": "USER", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}},
        {"name": "HELLO", "value": "hello $(USER)"},
        {"name": "DB", "value": "$(DB_SERVICE_HOST):5432"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}},
        {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "none", "optional": True}}},
        {"name": "S_size", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "none", "optional": True}}},
        {"name": "S_color", "valueFrom": {"secretKeyRef": {"name": "none", "key": "none", "optional": True}}},
    ]
    from_ = [{"prefix": "S_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "none", "optional": True}}]
    pod = pod_of([], [], env=env, envFrom=from_, resources={"requests": {"cpu": "0.25"}})
    objects = Objects()
    objects.variables = {"DB_SERVICE_HOST": "10.0.0.9", "USER": "of a service"}
    assert known_env(pod.spec.containers[0], pod, objects) == {
        "S_color": "blue", "S_size": "XL", "USER": "me", "HELLO": "hello me", "IP": "10.0.0.7",
        "CPU": "250", "DB_SERVICE_HOST": "10.0.0.9", "DB": "10.0.0.9:5432",
    }  # fmt: skip
    assert known_env(pod.spec.containers[0], pod, None).keys() == {"HELLO", "IP", "DB"}


def test_services_are_variables() -> None:
    ports = [{"name": "http-api", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    services = [
        {"metadata": {"name": "my-db"}, "spec": {"clusterIP": "10.0.0.9", "ports": ports}},
        {"metadata": {"name": "v6"}, "spec": {"clusterIP": "fd00::1", "ports": [{"port": 1}]}},
        {"metadata": {"name": "headless"}, "spec": {"clusterIP": "None", "ports": ports}},
        {"metadata": {"name": "external"}, "spec": {"type": "ExternalName"}},
    ]
    found = of_services(of_service(codec.decode(codec.encode(each), Service)) for each in services)
    assert found == {
        "MY_DB_SERVICE_HOST": "10.0.0.9", "MY_DB_SERVICE_PORT": "80", "MY_DB_PORT": "tcp://10.0.0.9:80",
        "MY_DB_SERVICE_PORT_HTTP_API": "80", "MY_DB_SERVICE_PORT_DNS": "53",
        "MY_DB_PORT_80_TCP": "tcp://10.0.0.9:80", "MY_DB_PORT_80_TCP_PROTO": "tcp",
        "MY_DB_PORT_80_TCP_PORT": "80", "MY_DB_PORT_80_TCP_ADDR": "10.0.0.9",
        "MY_DB_PORT_53_UDP": "udp://10.0.0.9:53", "MY_DB_PORT_53_UDP_PROTO": "udp",
        "MY_DB_PORT_53_UDP_PORT": "53", "MY_DB_PORT_53_UDP_ADDR": "10.0.0.9",
        "V6_SERVICE_HOST": "fd00::1", "V6_SERVICE_PORT": "1", "V6_PORT": "tcp://[fd00::1]:1",
        "V6_PORT_1_TCP": "tcp://[fd00::1]:1", "V6_PORT_1_TCP_PROTO": "tcp", "V6_PORT_1_TCP_PORT": "1",
        "V6_PORT_1_TCP_ADDR": "fd00::1",
    }  # fmt: skip
    name = "n" * 63
    long = (
        {"metadata": {"name": f"{name}{i}"}, "spec": {"clusterIP": "::", "ports": [{"port": 1}]}} for i in range(5000)
    )
    assert of_services(of_service(codec.decode(codec.encode(each), Service)) for each in long) == {}, (
        "more than Linux allows"
    )


HOSTS = "/etc/hosts", "/etc/hostname"


@pytest.mark.parametrize(
    ("spec", "hostname", "line"),
    [
        ({}, "web-0", "web-0"),
        ({"subdomain": "web"}, "web-0", "web-0.web.ns.svc.cluster.local\tweb-0"),
        ({"hostname": "a", "subdomain": "b"}, "a", "a.b.ns.svc.cluster.local\ta"),
        (
            {"subdomain": "b", "setHostnameAsFQDN": True},
            "web-0.b.ns.svc.cluster.local",
            "web-0.b.ns.svc.cluster.local\tweb-0",
        ),
        ({"hostname": "a", "subdomain": "b", "hostnameOverride": "x.y"}, "x.y", "x.y"),
    ],
)  # fmt: skip
def test_names_of_the_host(spec: dict[str, Any], hostname: str, line: str) -> None:
    script = "echo $(hostname) `hostname -s` $(hostname -f); hostname"
    command: dict[str, Any] = {"command": ["sh", "-c", script]}
    pod = with_spec(pod_of([], [], **command), hostAliases=[{"ip": "1.2.3.4", "hostnames": ["p", "q"]}], **spec)
    found = Volumes(pod, pod.spec.containers[0], {}, Objects())
    hosts, name = (found.read(path).decode() for path in HOSTS)
    assert name == f"{hostname}\n"
    assert hosts.endswith(f"ip6-allrouters\n10.0.0.7\t{line}\n\n# Entries added by HostAliases.\n1.2.3.4\tp\tq\n")
    outcome = program_of(pod.spec.containers[0], pod, Objects()).outcome((), {})
    assert outcome is not None
    full = line.split("\t")[0]
    assert "".join(each.text for each in outcome.output) == (
        f"{hostname} {hostname.partition('.')[0]} {full}\n{hostname}\n"
    )


def test_files_that_the_kubelet_writes_are_copied_as_others() -> None:
    pod = pod_of(
        [], [], command=["sh", "-c", "tar cf - /etc/hosts | tar xf - -C /w; cat /w/etc/hosts; ls /etc/hostname"]
    )
    pod = with_spec(pod, volumes=[{"name": "w", "emptyDir": {}}])
    program = program_of(pod.spec.containers[0], pod, Objects())
    known = program.among(There({}, ("/w",)))
    assert known is not None
    hosts = Volumes(pod, pod.spec.containers[0], {}, Objects()).read("/etc/hosts").decode()
    assert "".join(each.text for each in known.output) == f"{hosts}/etc/hostname\n"


def test_a_root_that_cannot_be_written() -> None:
    command: dict[str, Any] = {"command": ["/bin/sh", "-c", "echo a > /file; echo a > /w/f; cat /w/f"]}
    context = {"readOnlyRootFilesystem": True}
    mounts = [{"name": "w", "mountPath": "/w"}]
    pod = pod_of([{"name": "w", "emptyDir": {}}], mounts, securityContext=context, **command)
    program = program_of(pod.spec.containers[0], pod, Objects())
    known = program.outcome(program.scratch, {})
    assert known is not None
    assert [each.text for each in known.output] == ["/bin/sh: can't create /file: Read-only file system\n", "a\n"]


@pytest.mark.parametrize(
    "script", ["X=$(date); sleep ${X:-2}", "rm /etc/passwd", "rm -i /w/a", "rm -rf /w", "rm -f /v/color"]
)
def test_what_is_removed_or_set_in_other_ways_is_unknown(script: str) -> None:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("v", "w")]
    pod = pod_of([*SETTINGS, {"name": "w", "emptyDir": {}}], mounts, command=["sh", "-c", script])
    program = program_of(pod.spec.containers[0], pod, Objects())
    assert program.outcome(program.scratch, {}) is None


def test_files_of_names_that_are_not_the_kubelets() -> None:
    pod = with_spec(pod_of([], []), hostNetwork=True)
    with pytest.raises(UnknownContent):
        Volumes(pod, pod.spec.containers[0], {}, Objects()).read("/etc/hosts")
    own = volumes_of({"configMap": {"name": "settings"}}, mountPath="/etc/hosts", subPath="color")
    assert own.read("/etc/hosts") == b"blue"


CLUSTER = "search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
NODE = "search .\nnameserver 127.0.0.1\n"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, CLUSTER),
        ({"dnsPolicy": "ClusterFirst"}, CLUSTER),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, NODE),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, CLUSTER),
        ({"dnsPolicy": "Default"}, NODE),
        ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}}, "nameserver 1.1.1.1\n"),
        (
            {
                "dnsConfig": {
                    "nameservers": ["10.0.0.10", "1.1.1.1"],
                    "searches": ["a.b", "cluster.local"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
                }
            },
            CLUSTER.replace("cluster.local\n", "cluster.local a.b\n")
            .replace("0.10\n", "0.10\nnameserver 1.1.1.1\n")
            .replace("ndots:5", "ndots:2 edns0"),
        ),
        (
            {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3"], "searches": ["a" * 253, "b" * 254, "c"]}},
            CLUSTER.replace("cluster.local\n", f"cluster.local {'a' * 253} c\n").replace(
                "0.10\n", "0.10\nnameserver 1.1.1.1\nnameserver 1.1.1.2\n"
            ),
        ),
        (
            {"dnsConfig": {"searches": [str(number) for number in range(32)]}},
            CLUSTER.replace("cluster.local\n", f"cluster.local {' '.join(map(str, range(29)))}\n"),
        ),
        (
            {"dnsConfig": {"searches": [f"{number}{'a' * 249}" for number in range(8)]}},
            CLUSTER.replace(
                "cluster.local\n", f"cluster.local {' '.join(f'{number}' + 'a' * 249 for number in range(7))}\n"
            ),
        ),
    ],
)
def test_the_configuration_of_the_resolver(spec: dict[str, Any], text: str) -> None:
    pod = with_spec(pod_of([], []), **spec)
    found = Volumes(pod, pod.spec.containers[0], {}, Objects())
    assert found.read("/etc/resolv.conf").decode() == text


def with_spec(pod: SimulatedPod, **spec: Any) -> SimulatedPod:
    doc = {**msgspec.to_builtins(pod), "spec": {**msgspec.to_builtins(pod.spec), **spec}}
    return codec.decode(codec.encode(doc), SimulatedPod)


SETTINGS = [{"name": "v", "configMap": {"name": "settings"}}]


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.parametrize(
    ("container", "home"),
    [
        ({}, "/root"),
        ({"securityContext": {"runAsUser": 1000}}, "/"),
        ({"env": [{"name": "HOME", "value": "/data"}]}, "/data"),
    ],
)
def test_home_is_that_of_the_user(container: dict[str, Any], home: str) -> None:
    pod = pod_of([], [], command=["env"], **container)
    assert program_of(pod.spec.containers[0], pod, Objects()).env["HOME"] == home


@pytest.mark.parametrize(
    ("script", "output", "code"),
    [
        ("cat /v/color /v/none; echo $?", "blue!cat: /v/none: No such file or directory\n1\n", 0),
        ("cat /v/none || exit 4", "!cat: /v/none: No such file or directory\n", 4),
        ("cat /v 2>/dev/null", "", 1),
        ("cat /v/none 2>&1 >/dev/null", "cat: /v/none: No such file or directory\n", 1),
        ("cat /v/c*", "\x00\udcffbinaryblue", 0),
        ("ls /hidden; cat /hidden/*; cat /hidden/.s*", "!cat: /hidden/*: No such file or directory\nXL", 0),
        ("cat size; cd /v && cat color; cd ..; cat ./v/size; ls v/size", "XLblueXLv/size\n", 0),
        ("echo no > /v/color; cat /v/color", "!sh: can't create /v/color: Read-only file system\nblue", 0),
        ("touch /v/new", "!touch: /v/new: Read-only file system\n", 1),
        ("cd /w; echo x > /w/../w/./a; cat a /w//a", "x\nx\n", 0),
        ("mkdir /w/d && mkdir -p /w/d && mkdir /w/d", "!mkdir: /w/d: File exists\n", 1),
        ("echo a > /w/f; rm /w/f; cat /w/f", "!cat: /w/f: No such file or directory\n", 1),
        ("mkdir /w/d; touch /w/d/x; rm /w/d; ls /w; rm -rf /w/d; ls /w", "!rm: /w/d: is a directory\nd\n", 0),
        ("touch /w/a /w/b; rm /w/*; rm -f /w/a; rm /w/b", "!rm: can't remove '/w/b': No such file or directory\n", 1),
        ("touch /tmp/a; rm -rf /tmp/a; [ -e /tmp/a ] || echo gone", "gone\n", 0),
        ('echo ${GREETING:-no} ${NONE:-a/b} ${NONE-c}"${GREETING-}"', "a; exit 9 a/b ca; exit 9\n", 0),
        ("echo x > /w/no/f", "!sh: can't create /w/no/f: No such file or directory\n", 1),
        ("cat /w/inner/color; [ -f /w/inner/size ] && ls /w/inner/size", "blue/w/inner/size\n", 0),
        ("ls /v; ls /v/color", "cert\ncolor\nsize\n/v/color\n", 0),
        ("touch /new; ls / | grep -E '^new$|^tmp$|^v$'", "new\ntmp\nv\n", 0),
        ("echo the $(cat /v/color) `cat /v/size`", "the blue XL\n", 0),
        ("[ -f /v/color ] && [ -d /v ] && [ ! -e /v/none ] && [ -s /v/size ] || exit 1", "", 0),
        ("[ $(cat /v/color) = red ] && exit 1; exit 2", "", 2),
        ("echo a > /tmp/f; echo b >> /tmp/f; cat /tmp/f; echo c > /tmp/f; cat /tmp/f", "a\nb\nc\n", 0),
        ("echo oh >&2", "!oh\n", 0),
        ('echo $LINES; echo "$LINES"', "a b\na\n  b\n", 0),
        ("env", f"PATH={PATH}\nHOSTNAME=web-0\nGREETING=a; exit 9\nLINES=a\n  b\nHOME=/root\n", 0),
        ("HOME=/x; echo $HOME ${PATH:-none}", f"/x {PATH}\n", 0),
        ("echo $GREETING && printenv GREETING; hostname", "a; exit 9\na; exit 9\nweb-0\n", 0),
    ],
)
def test_scripts_that_read(script: str, output: str, code: int) -> None:
    command, env = (
        ["sh", "-c", script],
        [{"name": "GREETING", "value": "a; exit 9"}, {"name": "LINES", "value": "a\n  b"}],
    )
    hidden = {"name": "h", "configMap": {"name": "settings", "items": [{"key": "size", "path": ".size"}]}}
    places = {"v": ("/v", "/w/inner"), "h": ("/hidden",), "w": ("/w",)}
    mounts = [{"name": name, "mountPath": path} for name, paths in places.items() for path in paths]
    volumes = [*SETTINGS, hidden, {"name": "w", "emptyDir": {}}]
    pod = pod_of(volumes, mounts, command=command, env=env, workingDir="/v")
    program = program_of(pod.spec.containers[0], pod, Objects())
    known = program.outcome(program.scratch, {})
    assert known is not None
    assert ("".join(f"!{each.text}" if each.error else each.text for each in known.output), known.code) == (
        output,
        code,
    )


def test_emptydirs() -> None:
    mounts = [{"name": "v", "mountPath": "/v/"}, {"name": "v", "mountPath": "/part", "subPathExpr": "$(NAME)/b"}]
    script = (
        "mkdir -p /part/d; echo x > /part/d/f; [ -d /part/d ] && [ -d /v/web-0/b ] && [ -e /v ] && [ ! -d /v/c ] "
        "|| exit 1; ls /part; cat /part; cat /part/none"
    )
    env = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    pod = pod_of([{"name": "v", "emptyDir": {}}], mounts, command=["sh", "-c", script], env=env)
    program = program_of(pod.spec.containers[0], pod, Objects())
    made = EmptyDirs()
    known = program.outcome(program.scratch, made.seen_by(program.own))
    assert known is not None
    assert [each.text for each in known.output] == [
        "d\n", "cat: /part: Is a directory\n", "cat: /part/none: No such file or directory\n",
    ]  # fmt: skip
    made.put(program.own, known.files)
    again = program_of(
        pod.spec.containers[0], pod, Objects(), ("sh", "-c", "cat /v/web-0/b/d/f; ls /v; ls /v/web-0/b/d")
    )
    known = again.outcome(again.scratch, made.seen_by(again.own))
    assert known is not None
    assert [each.text for each in known.output] == ["x\n", "web-0\n", "f\n"]


def test_growing_files_and_later_files_in_emptydirs() -> None:
    script = "echo a > /v/f; touch /v/g; while true; do echo b >> /v/f; sleep 10; done"
    pod = pod_of([{"name": "v", "emptyDir": {}}], [{"name": "v", "mountPath": "/v"}], command=["sh", "-c", script])
    program = program_of(pod.spec.containers[0], pod, Objects())
    known = program.outcome(program.scratch, {})
    assert known is not None and known.files == {"/v/f": None, "/v/g": ""}
    known = program_of(pod.spec.containers[0], pod, None, ("sh", "-c", "touch /v/a; sleep 5; touch /v/b")).outcome(
        ("/v",), {}, 3.0
    )
    assert known is not None and known.files == {"/v/a": ""}


@pytest.mark.parametrize(
    "script",
    [
        "cat f",
        "cd app; cat f",
        "cd /v; cd -; cat color",
        "mkdir -m 700 /w/x",
        "cat /etc/passwd",
        "ls",
        "ls -l /v",
        "date > /tmp/f; cat /tmp/f",
        "cat $F",
        "env x",
    ],
)
def test_scripts_with_unknown_results(script: str) -> None:
    pod = pod_of(SETTINGS, [{"name": "v", "mountPath": "/v"}], command=["sh", "-c", script])
    program = program_of(pod.spec.containers[0], pod, Objects())
    assert program.outcome(program.scratch, {}) is None


def test_variables_are_bounded_as_in_linux() -> None:
    """Each could be ten times as long as the previous one."""
    env = [{"name": "A0", "value": "x" * 1000}]
    env += [{"name": f"A{each}", "value": f"$(A{each - 1})" * 10} for each in range(1, 12)]
    pod = pod_of([], [], env=env, command=["echo", "$(A2)" * 10])
    known = known_env(pod.spec.containers[0], pod, None)
    assert len(known["A2"]) == 100_000 and "A3" not in known and max(map(len, known.values())) < 1 << 17
    assert program_of(pod.spec.containers[0], pod, Objects()).outcome((), {}) is None
    many = pod_of([], [], env=[env[0], *({"name": f"B{each}", "value": "$(A0)" * 100} for each in range(100))])
    assert sum(map(len, known_env(many.spec.containers[0], many, None).values())) <= 2 << 20


def test_objects_are_decoded_once() -> None:
    """For any number of variables."""

    class Counted(Objects):
        times = 0

        def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
            self.times += 1
            return super().secret(namespace, name)

    ref = {"secretKeyRef": {"name": "login", "key": "user"}}
    pod = pod_of([], [], env=[{"name": f"A{each}", "valueFrom": ref} for each in range(50)])
    counted = Counted()
    assert len(known_env(pod.spec.containers[0], pod, ReadOnce(counted))) == 50
    assert counted.times == 1


BIG = {"name": "BIG", "value": "a ;" * 40_000}


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", 'echo "$BIG"' * 400],
        ["sh", "-c", "for i in $(seq 900); do : " + "$BIG" * 20 + "; done"],
        ["sh", "-c", '$A"' * 40_000],
        ["sh", "-c", "echo " + "$(" * 50_000],
        ["sh", "-c", "for i in $(seq 900); do sh -c '" + "$(" * 1_900 + "'; done"],
        ["sh", "-c", "echo $BIG $BIG $BIG | sort -u" + "; sort -u /dev/null" * 3000],
    ],
)
def test_what_takes_too_long_is_unknown(command: list[str]) -> None:
    pod = pod_of([], [], command=command, env=[BIG, {"name": "A", "value": "a b"}])
    program = program_of(pod.spec.containers[0], pod, Objects())
    assert program.outcome((), {}) is None


def test_folders_of_many_files_are_found_at_once() -> None:
    class Many(Objects):
        def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
            return {f"{each}": b"" for each in range(2000)}

    items = [{"key": f"{each}", "path": f"{'ab'[each % 2]}/{each}/c"} for each in range(2000)]
    pod = pod_of([{"name": "v", "configMap": {"items": items}}], [{"name": "v", "mountPath": "/v"}])
    found = Volumes(pod, pod.spec.containers[0], {}, Many())
    assert found.names("/v") == ["a", "b"]
    assert found.names("/v/a") == sorted(f"{each}" for each in range(0, 2000, 2))
    assert found.names("/v/b/7") == ["c"]


def test_output_is_bounded() -> None:
    pod = pod_of([], [], command=["sh", "-c", "for i in $(seq 1900); do echo $LONG; done"], env=[
        {"name": "LONG", "value": "x" * 10000}
    ])  # fmt: skip
    program = program_of(pod.spec.containers[0], pod, Objects())
    assert program.outcome(program.scratch, {}) is None


def test_namespaces_without_services_share_the_variables_of_the_api_server() -> None:
    informer = SimpleNamespace(store=Store[Any](), listen=lambda **_: None)
    informers: Any = SimpleNamespace(get=lambda _: informer)
    objects = CachedObjects(informers)
    assert objects.services("a", links=True) is objects.services("b", links=True)


def test_a_pod_level_limit_replaces_one_of_a_container() -> None:
    limits = {"cpu": "1250m", "ephemeral-storage": "1Gi"}
    pod = codec.convert({"spec": {"containers": [{"name": "c"}], "resources": {"limits": limits}}}, SimulatedPod)
    node = {"cpu": "32", "memory": "1Gi", "ephemeral-storage": "9"}
    found = [
        resource_of(pod, pod.spec.containers[0], ResourceFieldRef(resource=f"limits.{name}"), node)
        for name in ("cpu", "memory", "ephemeral-storage")
    ]
    assert found == ["2", str(1 << 30), "9"]

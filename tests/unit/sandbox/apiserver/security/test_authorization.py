"""Authorization: rules of roles, bindings, immediate changes, escalation, impersonation, reviews."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kcm_cli.sandbox.apiserver.security import bindings
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.security.rules import Rule, uncovered
from kcm_cli.sandbox.apiserver.types import RequestInfo, User
from tests.kit.api import Answer, Api
from tests.kit.growth import grows_less
from tests.kit.places import REFERENCE

Tree = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"


def rule(*verbs: str, on: str = "", groups: str = "", names: tuple[str, ...] = (), urls: tuple[str, ...] = ()) -> Tree:
    if urls:
        return {"verbs": list(verbs), "nonResourceURLs": list(urls)}
    named = {"resourceNames": list(names)} if names else {}
    return {"verbs": list(verbs), "apiGroups": groups.split(","), "resources": on.split(","), **named}


class Grants:
    """Grants permissions to new users."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.count = 0

    async def user(self, *rules: Tree, namespace: str = "", groups: tuple[str, ...] = ()) -> User:
        """A user with these permissions, in the cluster or in one namespace."""
        self.count += 1
        name = f"u{self.count}"
        kind, plural = ("Role", "roles") if namespace else ("ClusterRole", "clusterroles")
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        binding = "rolebindings" if namespace else "clusterrolebindings"
        await self.api.make(f"{where}/{plural}", {"metadata": {"name": name}, "rules": list(rules)})
        subject = {"apiGroup": GROUP, "kind": "User", "name": name}
        ref = {"apiGroup": GROUP, "kind": kind, "name": name}
        await self.api.make(f"{where}/{binding}", {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]})
        return User(name, groups=("system:authenticated", *groups))


@pytest.fixture
def grants(api: Api) -> Grants:
    return Grants(api)


def may(api: Api, user: User, verb: str, plural: str, **more: Any) -> bool:
    more.setdefault("version", "v1")
    info = RequestInfo(verb, "", True, plural=plural, **more)
    return api.server.api.core.security.authorizer.authorize(user, info).allowed


@pytest.mark.parametrize(
    ("granted", "asked", "allowed"),
    [
        pytest.param(rule("get", on="pods"), {"verb": "get", "plural": "pods"}, True, id="exact"),
        pytest.param(rule("get", on="pods"), {"verb": "list", "plural": "pods"}, False, id="other verb"),
        pytest.param(rule("get", on="pods"), {"verb": "get", "plural": "pods", "group": "x"}, False, id="other group"),
        pytest.param(rule("*", on="*", groups="*"), {"verb": "v", "plural": "p", "group": "g"}, True, id="everything"),
        pytest.param(
            rule("get", on="pods"), {"verb": "get", "plural": "pods", "subresource": "log"}, False, id="subresource"
        ),
        pytest.param(
            rule("get", on="pods/log"),
            {"verb": "get", "plural": "pods", "subresource": "log"},
            True,
            id="its own right",
        ),
        pytest.param(
            rule("get", on="*/log"), {"verb": "get", "plural": "pods", "subresource": "log"}, True, id="of any kind"
        ),
        pytest.param(
            rule("get", on="pods/*"), {"verb": "get", "plural": "pods", "subresource": "log"}, False, id="no such star"
        ),
        pytest.param(
            rule("get", on="pods", names=("a",)), {"verb": "get", "plural": "pods", "name": "a"}, True, id="by name"
        ),
        pytest.param(
            rule("get", on="pods", names=("a",)), {"verb": "get", "plural": "pods", "name": "b"}, False, id="another"
        ),
        pytest.param(rule("list", on="pods", names=("a",)), {"verb": "list", "plural": "pods"}, False, id="nameless"),
    ],
)
async def test_rules(api: Api, grants: Grants, granted: Tree, asked: Tree, allowed: bool) -> None:
    user = await grants.user(granted)
    assert may(api, user, **asked) is allowed
    assert may(api, user, **asked, namespace="default") is allowed


async def test_a_right_in_a_namespace_ends_there(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("get", on="pods"), namespace=(namespace := await api.namespace()))
    assert may(api, user, "get", "pods", namespace=namespace)
    assert not may(api, user, "get", "pods", namespace="default")
    assert not may(api, user, "get", "pods")


@pytest.mark.parametrize(
    ("path", "allowed"), [("/healthz", True), ("/logs/a/b", True), ("/logs", False), ("/secret", False)]
)
async def test_urls(api: Api, grants: Grants, path: str, allowed: bool) -> None:
    user = await grants.user(rule("get", urls=("/healthz", "/logs/*")))
    info = RequestInfo("get", path, False)
    assert api.server.api.core.security.authorizer.authorize(user, info).allowed is allowed


async def test_changes_count_at_once(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("get", on="pods"))
    path = f"{RBAC}/clusterroles/{user.name}"
    assert (await api.merge(path, {"rules": [rule("get", on="secrets")]})).status == 200
    assert (may(api, user, "get", "pods"), may(api, user, "get", "secrets")) == (False, True)
    await api.delete(path)
    answer = await api.get("/api/v1/secrets", user=user)
    assert answer.message == (
        f'secrets is forbidden: User "{user.name}" cannot list resource "secrets" in API group "" at the cluster '
        f'scope: RBAC: clusterrole.rbac.authorization.k8s.io "{user.name}" not found'
    )
    await api.delete(f"{RBAC}/clusterrolebindings/{user.name}")
    assert not (await api.get("/api/v1/secrets", user=user)).message.endswith("not found")


async def test_changes_count_before_and_after_the_first_question(api: Api, grants: Grants) -> None:
    first, second = [await grants.user(rule("get", on="pods")) for _ in range(2)]
    await api.merge(f"{RBAC}/clusterroles/{second.name}", {"rules": [rule("get", on="secrets")]})
    await api.delete(f"{RBAC}/clusterrolebindings/{first.name}")
    assert [may(api, user, "get", "pods") for user in (first, second)] == [False, False]
    assert may(api, second, "get", "secrets")
    third = await grants.user(rule("get", on="pods"), namespace="default")
    assert may(api, third, "get", "pods", namespace="default")
    await api.delete(f"{RBAC}/namespaces/default/rolebindings/{third.name}")
    await api.delete(f"{RBAC}/clusterrolebindings/{second.name}")
    assert not may(api, third, "get", "pods", namespace="default")
    assert not may(api, second, "get", "secrets")


async def test_service_accounts_and_groups_are_subjects_too(api: Api) -> None:
    await api.make(f"{RBAC}/clusterroles", {"metadata": {"name": "seer"}, "rules": [rule("get", on="pods")]})
    subjects = [
        {"kind": "ServiceAccount", "namespace": "ns", "name": "robot"},
        {"apiGroup": GROUP, "kind": "Group", "name": "people"},
    ]
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "seer"}
    binding = {"metadata": {"name": "seer"}, "roleRef": ref, "subjects": subjects}
    await api.make(f"{RBAC}/clusterrolebindings", binding)
    assert may(api, User("system:serviceaccount:ns:robot"), "get", "pods")
    assert may(api, User("x", groups=("people",)), "get", "pods")
    assert not may(api, User("system:serviceaccount:other:robot"), "get", "pods")


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        pytest.param("GET", "/version", 200, "", id="version is for all"),
        pytest.param("GET", "/readyz", 200, "", id="health, too"),
        pytest.param(
            "GET", "/api", 403, 'forbidden: User "system:anonymous" cannot get path "/api"', id="discovery is not"
        ),
        pytest.param(
            "DELETE",
            "/api/v1/namespaces/default/pods/p",
            403,
            'pods "p" is forbidden: User "system:anonymous" cannot delete resource "pods" in API group "" in the '
            'namespace "default"',
            id="an object",
        ),
        pytest.param(
            "GET",
            "/apis/apps/v1/deployments",
            403,
            'deployments.apps is forbidden: User "system:anonymous" cannot list resource "deployments" in API group '
            '"apps" at the cluster scope',
            id="a list",
        ),
    ],
)
async def test_anonymous_requests(api: Api, method: str, path: str, status: int, message: str) -> None:
    anonymous = User("system:anonymous", groups=("system:unauthenticated",))
    answer = await api.call(method, path, user=anonymous)
    assert (answer.status, answer.message) == (status, message)


# Escalation


async def grant(api: Api, user: User, role: str, *rules: Tree) -> Answer:
    return await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": list(rules)}, user=user)


async def test_granting_requires_the_granted_permissions(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("create,update", on="clusterroles", groups=GROUP), rule("get", on="pods"))
    writer = await grants.user(rule("create", on="clusterroles", groups=GROUP), rule("get", on="pods"))
    assert (await grant(api, writer, "fine", rule("get", on="pods"))).status == 201
    answer = await grant(api, writer, "more", rule("get", "list", on="pods,secrets"))
    assert user.name != writer.name
    assert (answer.status, answer.message) == (
        403,
        f'clusterroles.rbac.authorization.k8s.io "more" is forbidden: user "{writer.name}" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
    )


async def test_a_rule_of_very_many_permissions_has_to_be_held_as_a_whole(api: Api, grants: Grants) -> None:
    lists = [",".join(f"{word}{number}" for number in range(300)) for word in ("r", "g")]
    most = rule(*(f"v{number}" for number in range(300)), on=lists[0], groups=lists[1])
    writer = await grants.user(rule("create", on="clusterroles", groups=GROUP))
    answer = await grant(api, writer, "most", most)
    assert answer.status == 403 and "more RBAC permissions than can be checked" in answer.message
    holder = await grants.user(rule("create", on="clusterroles", groups=GROUP), most)
    assert (await grant(api, holder, "most", most)).status == 201


async def test_rules_that_cannot_cover_a_permission_do_not_count_as_compared(api: Api, grants: Grants) -> None:
    lists = [",".join(f"{word}{number}" for number in range(20)) for word in ("r", "g")]
    halves = [rule(verb, on=lists[0], groups=lists[1]) for verb in ("get", "list")]
    others = [rule("get", "list", on=lists[0], groups=f"other{number}") for number in range(200)]
    writer = await grants.user(rule("create", on="clusterroles", groups=GROUP), *halves, *others)
    assert (await grant(api, writer, "both", rule("get", "list", on=lists[0], groups=lists[1]))).status == 201
    answer = await grant(api, writer, "more", rule("get", "put", on=lists[0], groups=lists[1]))
    assert answer.status == 403 and '{APIGroups:["g0"], Resources:["r0"], Verbs:["put"]}' in answer.message


def test_a_comparison_takes_as_long_with_a_long_rule() -> None:
    def prepare(size: int) -> Callable[[], object]:
        verbs, groups, resources = (tuple(f"{word}{number}" for number in range(size)) for word in "vgr")
        wanted = [Rule((*verbs[:10], "more"), groups[:10], resources[:10])]
        return lambda: uncovered([Rule(verbs, groups, resources)], wanted)

    assert grows_less(prepare, 300, 4)


async def test_a_rule_of_very_many_permissions_takes_no_more_memory_than_its_lists(api: Api, grants: Grants) -> None:
    many = [f"n{number}" for number in range(300)]
    wide = {"apiGroups": ["", *many], "resources": ["pods", "*/status", *many], "resourceNames": ["a"]}
    user = await grants.user({"verbs": ["get", *many], **wide})
    assert may(api, user, "get", "pods", name="a") and may(api, user, "n1", "n299", group="n2", name="a")
    assert may(api, user, "get", "nodes", subresource="status", name="a")
    for verb, plural, more in (("list", "pods", {}), ("get", "nodes", {}), ("get", "pods", {"group": "apps"})):
        assert not may(api, user, verb, plural, name="a", **more)
    assert not may(api, user, "get", "pods", name="b")
    found = api.server.api.core.security.authorizer._bindings.grants(user, "")
    assert len(msgspec.structs.asdict(found)["_resources"]) < 100


async def test_escalate_and_bind_are_rights_of_their_own(api: Api, grants: Grants) -> None:
    escalating = await grants.user(rule("create", "escalate", on="clusterroles", groups=GROUP))
    assert (await grant(api, escalating, "lifted", rule("*", on="*", groups="*"))).status == 201
    bindings = rule("create", on="clusterrolebindings", groups=GROUP)
    plain, binding = (
        await grants.user(bindings),
        await grants.user(bindings, rule("bind", on="clusterroles", groups=GROUP)),
    )
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "lifted"}
    doc = {"metadata": {"name": "lift"}, "roleRef": ref, "subjects": []}
    assert (await api.post(f"{RBAC}/clusterrolebindings", doc, user=plain)).status == 403
    assert (await api.post(f"{RBAC}/clusterrolebindings", doc, user=binding)).status == 201


async def test_a_binding_to_a_missing_role_is_not_found(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("create", on="rolebindings", groups=GROUP))
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "none"}
    doc = {"metadata": {"name": "lift"}, "roleRef": ref, "subjects": []}
    answer = await api.post(f"{RBAC}/namespaces/default/rolebindings", doc, user=user)
    assert (answer.status, answer.message) == (404, 'rolebindings.rbac.authorization.k8s.io "none" not found')


# Impersonation


CONSTRAINED = "authentication.k8s.io"
_NODE = "system:node:x"


async def whoami(api: Api, asking: User, /, **headers: str) -> Answer:
    named = {f"impersonate_{key}": value for key, value in headers.items()}
    return await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user=asking, **named)


async def test_masters_may_impersonate_any_user(api: Api) -> None:
    master = User("root", groups=("system:masters",))
    answer = await whoami(api, master, user="jane", group="dev\nops", uid="7", **{"extra-scopes": "a\nb"})
    assert answer.doc["status"]["userInfo"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["dev", "ops", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
    }
    named = await whoami(api, master, user="jürgen".encode().decode("latin-1"), group="日本".encode().decode("latin-1"))
    assert named.doc["status"]["userInfo"]["username"] == "jürgen"
    assert named.doc["status"]["userInfo"]["groups"][0] == "日本"
    robot = (await whoami(api, master, user="system:serviceaccount:ns:robot")).doc["status"]["userInfo"]
    assert robot["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]


@pytest.mark.parametrize(
    ("headers", "resource"),
    [
        pytest.param({"user": "jane"}, None, id="allowed"),
        pytest.param({"user": "joe"}, f'resource "users" in API group "{CONSTRAINED}"', id="another user"),
        pytest.param({"user": "jane", "group": "g"}, f'resource "groups" in API group "{CONSTRAINED}"', id="a group"),
        pytest.param({"user": "jane", "uid": "1"}, 'resource "uids" in API group "authentication.k8s.io"', id="a uid"),
        pytest.param(
            {"user": "jane", "extra-acme.io%2ffoo": "y"},
            'resource "userextras/acme.io/foo" in API group "authentication.k8s.io"',
            id="extra",
        ),
    ],
)
async def test_permissions_for_impersonation(
    api: Api, grants: Grants, headers: dict[str, str], resource: str | None
) -> None:
    on = rule("impersonate-on:user-info:create", on="*", groups="*")
    user = await grants.user(on, rule("impersonate:user-info", on="users", groups=CONSTRAINED, names=("jane",)))
    answer = await whoami(api, user, **headers)
    if resource is None:
        assert answer.status == 201
    else:
        assert answer.status == 403
        assert f'User "{user.name}" cannot impersonate:user-info {resource}' in answer.message


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("scopes", '"scopes": must be a domain-prefixed path (such as "acme.io/foo")'),
        ("acme..io%2ffoo", '"acme..io": a lowercase RFC 1123 subdomain'),
        ("acme.io%2ff%20o", '"f o": Invalid path (regex used for validation is'),
    ],
)
async def test_keys_of_impersonated_extra_are_paths(api: Api, grants: Grants, key: str, why: str) -> None:
    on = rule("impersonate-on:user-info:create", on="*", groups="*")
    user = await grants.user(on, rule("impersonate:user-info", on="users", groups=CONSTRAINED, names=("jane",)))
    answer = await whoami(api, user, user="jane", **{f"extra-{key}": "y"})
    text = "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "
    assert text + why in answer.message


async def test_the_old_impersonation_permission_suffices(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("impersonate", on="users", names=("jane",)))
    answer = await whoami(api, user, user="joe")
    assert f'User "{user.name}" cannot impersonate-on:user-info:create resource' in answer.message, "the first refusal"
    assert (await whoami(api, user, user="jane")).status == 201


async def test_the_last_successful_impersonation_mode_is_tried_first(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("impersonate", on="users", names=("jane",)))
    assert (await whoami(api, user, user="jane")).status == 201
    answer = await whoami(api, user, user="joe")
    assert f'User "{user.name}" cannot impersonate resource "users"' in answer.message
    master = User("superuser", groups=("system:masters",))
    groups = [
        (await whoami(api, master, user=name)).doc["status"]["userInfo"]["groups"] for name in (_NODE, "jane", _NODE)
    ]
    assert groups == [["system:nodes", "system:authenticated"], ["system:authenticated"], groups[0]]
    await whoami(api, master, user="jane", group="system:masters")  # which only the old mode allows
    assert (await whoami(api, master, user=_NODE)).doc["status"]["userInfo"]["groups"] == ["system:authenticated"]


async def test_impersonating_groups_requires_a_user(api: Api) -> None:
    answer = await whoami(api, User("root", groups=("system:masters",)), group="g")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (answer.status, answer.message) == (
        400,
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without '
        "impersonating a user name",
    )


# Reviews


async def review(api: Api, kind: str, spec: Tree, *, namespace: str = "", user: User | None = None) -> Answer:
    where = f"/namespaces/{namespace}" if namespace else ""
    options = {} if user is None else {"user": user}
    return await api.post(f"/apis/authorization.k8s.io/v1{where}/{kind}", {"spec": spec}, **options)


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_access_reviews_agree_with_the_authorizer(api: Api, grants: Grants, verb: str) -> None:
    user = await grants.user(rule("get", on="pods"))
    attributes = {"verb": verb, "resource": "pods", "namespace": "default"}
    expected = verb == "get"
    of_other = await review(api, "subjectaccessreviews", {"user": user.name, "resourceAttributes": attributes})
    own = await review(api, "selfsubjectaccessreviews", {"resourceAttributes": attributes}, user=user)
    local = await review(
        api, "localsubjectaccessreviews", {"user": user.name, "resourceAttributes": attributes}, namespace="default"
    )
    for answer in (of_other, own, local):
        assert answer.status == 201, answer.message
        assert answer.doc["status"]["allowed"] is expected
    if expected:
        assert own.doc["status"]["reason"] == (
            f'RBAC: allowed by ClusterRoleBinding "{user.name}" of ClusterRole "{user.name}" to User "{user.name}"'
        )


async def test_reviews_have_managed_fields(api: Api) -> None:
    made = (await review(api, "subjectaccessreviews", {"user": "x", "resourceAttributes": {"verb": "get"}})).doc
    owned = {"f:spec": {"f:resourceAttributes": {".": {}, "f:verb": {}}, "f:user": {}}}
    assert [entry["fieldsV1"] for entry in made["metadata"]["managedFields"]] == [owned]


async def test_a_review_is_of_the_namespace_of_its_path(api: Api) -> None:
    doc = {"metadata": {"namespace": "other"}, "spec": {"user": "x", "nonResourceAttributes": {"path": "/"}}}
    base = "/apis/authorization.k8s.io/v1"
    assert (await api.post(f"{base}/subjectaccessreviews", doc)).status == 201
    answer = await api.post(f"{base}/namespaces/default/localsubjectaccessreviews", doc)
    assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_rules_reviews_list_all_rules(api: Api, grants: Grants) -> None:
    user = await grants.user(rule("get", on="pods"), rule("get", urls=("/mine",)))
    status = (await review(api, "selfsubjectrulesreviews", {"namespace": "default"}, user=user)).doc["status"]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]
    assert {"verbs": ["get"], "nonResourceURLs": ["/mine"]} in status["nonResourceRules"]
    assert status["incomplete"] is False


# Bootstrap


def account(entry: Tree) -> User:
    namespace, name = entry["namespace"], entry["service_account"]
    return User(
        f"system:serviceaccount:{namespace}:{name}",
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"),
    )


async def test_controllers_have_the_permissions_of_upstreams_roles(api: Api) -> None:
    wanted = json.loads((REFERENCE / "controller-roles.json").read_text())
    authorizer = api.server.api.core.security.authorizer
    missing: list[str] = []
    for entry in wanted:
        if "feature_gate" in entry:
            continue
        name = entry.get("service_account", "")
        user = User(entry["user"], groups=("system:authenticated",)) if "user" in entry else account(entry)
        for granted in entry["rules"]:
            where = granted.get("scope", "")
            for group in granted.get("apiGroups", ()):
                for resource in granted["resources"]:
                    for verb in granted["verbs"]:
                        plural, _, sub = resource.partition("/")
                        for named in granted.get("resourceNames", ("",)):
                            info = RequestInfo(verb, "", True, group, "v1", plural, sub, where, named)
                            if not authorizer.authorize(user, info).allowed:
                                missing.append(f"{name}: {verb} {group}/{resource} {where} {named}")
    assert not missing


async def test_bootstrap_objects(api: Api) -> None:
    for path in (
        "/api/v1/namespaces/kube-node-lease",
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt",
        f"{RBAC}/clusterroles/cluster-admin",
        f"{RBAC}/namespaces/kube-system/roles/extension-apiserver-authentication-reader",
    ):
        assert (await api.get(path)).status == 200, path


async def test_long_names_and_paths_are_not_kept(api: Api) -> None:
    server: Any = api.server.api
    caches = server._flows._known, server.core.security.authorizer._bindings._grants
    stranger = User("stranger", groups=("system:authenticated",))
    paths = [f"/{'x' * 5000}", f"/api/v1/namespaces/{'n' * 5000}/pods", "/api/v1/namespaces/unknown/pods"]
    users = [stranger, User("u" * 5000), User("u", groups=("g" * 5000,))]
    for user in users:
        assert [(await api.get(path, user=user)).status for path in paths] == [403] * 3
    kept = [str(key) for cache in caches for key in cache]
    assert any("stranger" in key for key in kept)
    assert max(map(len, kept)) < 5000
    assert not any(namespace == "unknown" for namespace, _ in caches[1])


async def test_the_permissions_of_all_users_that_are_kept_are_limited(
    api: Api, grants: Grants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "_MOST_KEPT", 1000)
    many = [f"n{number}" for number in range(300)]
    users = [await grants.user(rule("get", on=",".join([f"r{number}", *many]))) for number in range(10)]
    known = api.server.api.core.security.authorizer._bindings
    for _ in range(2):
        for number, user in enumerate(users):
            assert may(api, user, "get", f"r{number}") and may(api, user, "get", "n1")
            assert not may(api, user, "get", f"r{number + 1}")
            assert known._size == sum(each.size for each in known._grants.values()) <= 1000
    assert len(known._grants) > 1


@pytest.mark.parametrize(
    ("modes", "user", "reason"),
    [
        (("RBAC", "AlwaysAllow"), "system:kube-scheduler", "RBAC: allowed by ClusterRoleBinding"),
        (("RBAC", "AlwaysAllow"), "joe", ""),
        (("AlwaysAllow", "RBAC"), "system:kube-scheduler", ""),
        (("AlwaysAllow",), "joe", ""),
        (("RBAC",), "joe", None),
        (("AlwaysDeny",), "joe", None),
    ],
)
async def test_several_modes(modes: tuple[str, ...], user: str, reason: str | None, api: Api) -> None:
    authorizer = Authorizer(api.server.store, modes)
    decision = authorizer.authorize(
        User(user, groups=("system:authenticated",)), RequestInfo("get", "", True, plural="pods")
    )
    assert decision.allowed == (reason is not None)
    assert reason is None or (decision.reason.startswith(reason) and bool(decision.reason) == bool(reason))
    rules, _ = authorizer.rules(User("joe"), "")
    assert any(rule.verbs == ("*",) for rule in rules) == ("AlwaysAllow" in modes)

"""The names of images, as container runtimes report them."""

import pytest

from kcm_cli.sandbox.nodes.containers import full_image, image_id
from kcm_cli.sandbox.nodes.images import Images

DIGEST = f"sha256:{'1' * 64}"


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1", "docker.io/library/nginx:1"),
        ("org/app", "docker.io/org/app:latest"),
        ("docker.io/nginx", "docker.io/library/nginx:latest"),
        ("index.docker.io/org/app:2", "docker.io/org/app:2"),
        ("localhost/app", "localhost/app:latest"),
        ("registry:5000/app", "registry:5000/app:latest"),
        ("registry:5000/a/b:1", "registry:5000/a/b:1"),
        (f"nginx@{DIGEST}", f"docker.io/library/nginx@{DIGEST}"),
        (f"ghcr.io/org/app:1.25@{DIGEST}", f"ghcr.io/org/app@{DIGEST}"),
    ],
)
def test_the_full_name_of_an_image(image: str, full: str) -> None:
    assert full_image(image) == full == full_image(full)


def test_an_image_with_a_digest_has_it_as_its_id() -> None:
    assert image_id(full_image(f"nginx:1@{DIGEST}")) == f"docker.io/library/nginx@{DIGEST}"
    tagged = image_id(full_image("registry:5000/app"))
    assert tagged.startswith("registry:5000/app@sha256:") and len(tagged) == len("registry:5000/app@sha256:") + 64


def test_the_names_of_images_on_a_node() -> None:
    images = Images()
    for image in ("nginx:1", f"nginx@{DIGEST}"):
        images.use(image, "IfNotPresent")
    names = sorted(each["names"] for each in images.docs())
    assert [f"docker.io/library/nginx@{DIGEST}"] in names
    assert ["docker.io/library/nginx:1"] in [each[1:] for each in names]


def test_a_node_does_not_remember_images_for_ever() -> None:
    images = Images()
    for number in range(5000):
        images.use("nginx:1", "IfNotPresent")
        images.use(f"app:{number}", "IfNotPresent")
    assert images.has("nginx:1") and images.has("app:4999") and not images.has("app:0")

from kcm_cli.runtime.tasks import innermost


def test_the_first_error_of_nested_groups() -> None:
    error = ValueError("x")
    assert innermost(ExceptionGroup("a", [ExceptionGroup("b", [error])])) is error

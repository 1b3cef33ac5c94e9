import pytest

from cake.diag import (
    Catalogue,
    Code,
    Severity,
    UnknownCodeError,
    all_codes,
    define,
    explain,
    lookup,
)


def define_in(catalogue: Catalogue, **changes: str) -> Code:
    fields = {
        "code": "CK001",
        "name": "syntax-error",
        "stage": "parse",
        "summary": "The text is not valid.",
        "page": "Write valid text.",
    }
    return catalogue.define(severity=Severity.ERROR, **(fields | changes))


def test_define_returns_the_entry_that_lookup_finds_by_code_and_by_name_in_any_case() -> None:
    catalogue = Catalogue()
    entry = define_in(catalogue)
    spellings = ("CK001", "ck001", "syntax-error", "Syntax-Error")
    assert [catalogue.lookup(text) for text in spellings] == [entry] * 4


def test_all_codes_are_in_ascending_order() -> None:
    assert [entry.code for entry in all_codes()] == ["CK340", "CK412", "CK901"]


@pytest.mark.parametrize("changes", [{"name": "other-name"}, {"code": "CK002"}, {}])
def test_a_code_or_name_defined_twice_is_refused(changes: dict[str, str]) -> None:
    catalogue = Catalogue()
    define_in(catalogue)
    with pytest.raises(ValueError, match=r"clashes with CK001 \(syntax-error\)"):
        define_in(catalogue, **changes)


def test_a_refused_definition_leaves_nothing_behind() -> None:
    catalogue = Catalogue()
    define_in(catalogue)
    with pytest.raises(ValueError, match="clashes"):
        define_in(catalogue, code="CK002")
    with pytest.raises(UnknownCodeError):
        catalogue.lookup("CK002")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("code", "CK1"),
        ("code", "ck001"),
        ("code", "CK0001"),
        ("name", "Syntax Error"),
        ("name", "syntax--error"),
        ("summary", " "),
        ("summary", "two\nlines"),
        ("page", "\n"),
    ],
)
def test_a_malformed_entry_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"CK|ck"):
        define_in(Catalogue(), **{field: value})


def test_lookup_of_an_undefined_code_raises() -> None:
    with pytest.raises(UnknownCodeError, match="no finding has the code or name `CK999`"):
        lookup("CK999")


def test_explain_shows_code_name_severity_summary_and_page() -> None:
    assert explain("CK412") == (
        "# CK412: ring-reuse-before-release\n"
        "\n"
        "Error, reported by stage `verify`.\n"
        "\n"
        "A slot of a ring is written while a consumer may still read it.\n"
        "\n"
        "A ring hands slots round.\n"
        "\n"
        "Release a slot only after its last read.\n"
    )


def test_explain_finds_a_page_by_name() -> None:
    assert explain("ring-reuse-before-release") == explain("CK412")


def test_explain_does_not_repeat_a_summary_that_opens_the_page() -> None:
    define(
        code="CK001",
        name="syntax-error",
        severity=Severity.ERROR,
        stage="parse",
        summary="The text is not valid.",
        page="""The text is not valid.

        Bad and good:

            x = = 1
        """,
    )
    assert explain("CK001") == (
        "# CK001: syntax-error\n"
        "\n"
        "Error, reported by stage `parse`.\n"
        "\n"
        "The text is not valid.\n"
        "\n"
        "Bad and good:\n"
        "\n"
        "    x = = 1\n"
    )


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("CK413", "CK412"),
        ("412", "CK412"),
        ("ring-reuse", "CK412"),
        ("ring-reuse-befor-release", "CK412"),
        ("bank-conflicts", "CK340"),
        ("no driver", "CK901"),
    ],
)
def test_an_unknown_code_names_the_nearest(text: str, best: str) -> None:
    with pytest.raises(UnknownCodeError) as caught:
        explain(text)
    assert caught.value.suggestions[0].code == best
    assert f"nearest: {best} (" in str(caught.value)


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    with pytest.raises(UnknownCodeError) as caught:
        explain("zzzz")
    assert caught.value.suggestions == ()
    assert "nearest" not in str(caught.value)

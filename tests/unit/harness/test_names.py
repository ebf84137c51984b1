"""Names and texts in messages."""

from __future__ import annotations

import pytest

from rackloop.names import file_name, in_one_line


def test_a_text_is_put_in_one_line_and_cut_where_it_is_long() -> None:
    assert in_one_line(" two\n  words\t", 9) == "two words"
    assert in_one_line("two\nwords more", 9) == "two wo..."


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("fabric/identity::identity", "fabric-identity-identity"),
        ("load::random_reads[4096-x_1.5]", "load-random_reads-4096-x_1.5"),
        ("fabric/identity::TestIt::it[1]", "fabric-identity-TestIt-it-1"),
    ],
)
def test_the_files_of_a_test_are_named_by_it(test: str, name: str) -> None:
    assert file_name(test) == name


def test_each_test_has_files_of_its_own_however_it_is_called() -> None:
    parameters = ["", " ", "<", ">", ">=", "a/b", "a-b", "a b", "a::b", "b", "-b", "b-", "\udc80", "x" * 300, "x" * 301]
    names = {file_name(f"load::reads[{parameter}]") for parameter in parameters}
    assert len(names) == len(parameters)
    assert all(len(f"{name}.{'x' * 40}") < 200 and name[0] not in ".-" for name in names)

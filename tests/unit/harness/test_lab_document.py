"""YAML as text with places: nothing is guessed, nothing crashes, everything knows where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import DescriptionError
from rackloop.lab import check_files
from rackloop.lab.yaml import compose, compose_file
from rackloop.lab.yaml._document import DEEPEST_NESTING, LARGEST_FILE_BYTES, MOST_NODES, Plain


@pytest.mark.parametrize(
    "text", ["00123456", "5000e500", "no", "1e3", "0o7", "null", "~", "2026-01-01", "0x1F", "1:30", ".5"]
)
def test_plain_scalars_stay_text(text: str) -> None:
    assert compose(f"key: {text}\n", "f").value == {"key": text}


def test_an_empty_value_is_none_and_an_empty_text_is_a_text() -> None:
    assert compose("a:\nb: ''\nc: {d, e}\n", "f").value == {"a": None, "b": "", "c": {"d": None, "e": None}}


WRONG_YAML = [
    ("a: [1\nb: 2\n", "f:2:2: not YAML", "close the bracket"),
    ("a:\n\t- b\n", "f:2:1: not YAML", "indent with spaces"),
    ("a: b: c\n", "f:1:5: not YAML", "quote a text that contains ': '"),
    ("a: 'x\n", "f:2:1: not YAML", "close the quote"),
    ("a: *b\n", "f:1:4: not YAML", "define the anchor"),
    ("a: 1\n---\nb: 2\n", "f:2:1: not YAML", "one document"),
    ("a: 1\nb: \0\n", "f:2:4: the character U+0000", "delete it"),
    ("", "f:1:1: the file is empty", "labs/"),
    ("# only a comment\n", "f:1:1: the file is empty", "labs/"),
    ("- a\n- b\n", "f:1:1: expected a mapping", "found a list"),
    ("hello\n", "f:1:1: expected a mapping", "found a single text"),
    ("a: " + "[" * 40 + "]" * 40, "f:1:3", "nested more than 32 deep"),
    ("a: " + "{b: " * 200_000, "f:1:", "nested more than 32 deep"),
]


@pytest.mark.parametrize(("text", "start", "words"), WRONG_YAML)
def test_what_is_not_yaml_is_one_problem(text: str, start: str, words: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        compose(text, "f")
    [problem] = caught.value.problems
    assert str(problem).startswith(start)
    assert words in problem.message


WRONG_CONTENT = [
    ("a: 1\nb: 2\na: 3\n", "f:3:1: the key 'a' is given twice, first at f:1:1"),
    ("x:\n  a: 1\n  a: 2\n", "f:3:3: the key 'a' is given twice, first at f:2:3"),
    ("a: !!int 5\n", "f:1:4: the tag 'tag:yaml.org,2002:int' is not supported"),
    ("a: !vault x\n", "f:1:4: the tag '!vault' is not supported"),
    ("? [a]\n: b\n", "f:1:3: a key must be a text"),
    ("a: &a [*a]\n", "f:1:4: an alias inside its own anchor never ends"),
    ("a: &a {<<: *a, b: 1}\n", "f:1:4: an alias inside its own anchor never ends"),
    ("a: {<<: x}\n", "f:1:9: '<<' merges mappings"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG_CONTENT)
def test_what_yaml_allows_and_a_description_does_not(text: str, problem: str) -> None:
    document = compose(text, "f")
    assert [str(found).startswith(problem) for found in document.problems] == [True]


def test_aliases_repeat_and_merge_keys_give_defaults() -> None:
    document = compose("a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}\nd: {<<: [{x: 8}, *a]}\n", "f")
    assert document.value == {
        "a": {"x": "1", "y": "2"},
        "b": {"x": "1", "y": "2"},
        "c": {"x": "1", "y": "3"},
        "d": {"x": "8", "y": "2"},
    }
    assert (document.place(("c", "x")).line, document.place(("c", "x")).column) == (1, 11)
    assert (document.place(("c", "y")).line, document.place(("c", "y")).column) == (3, 16)
    assert document.place(("b", "nothing")).path == "b.nothing"


def test_aliases_may_not_expand_without_measure() -> None:
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20))
    with pytest.raises(DescriptionError, match=f"over {MOST_NODES:,} values"):
        compose(laughs, "f")
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5000))
    with pytest.raises(DescriptionError, match=f"nested more than {DEEPEST_NESTING} deep"):
        compose(chain, "f")


def test_a_file_that_is_not_utf_8_is_refused_where_it_stops_being(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: a\n# caf\xc3\xa9\nnote: \xe9t\xe9\n")
    with pytest.raises(DescriptionError) as caught:
        compose_file(path)
    assert str(caught.value) == f"{path}:3:7: byte 0xE9 is not UTF-8; save the file as UTF-8"


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfname: a\n")
    assert compose_file(tmp_path / "bom.yaml").value == {"name": "a"}


def test_what_cannot_be_read_is_a_problem_of_that_file(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"1:1: cannot be read: Is a directory"):
        compose_file(tmp_path)
    (tmp_path / "big.yaml").write_bytes(b"#" * (LARGEST_FILE_BYTES + 1))
    with pytest.raises(DescriptionError, match=r"1:1: larger than 1 MiB"):
        compose_file(tmp_path / "big.yaml")


WRITABLE = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff\ufffe\uffff")
SCALARS = st.text(WRITABLE, max_size=12)
KEYS = SCALARS.filter(lambda key: key != "<<")
NODES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
TREES = st.dictionaries(KEYS, NODES, min_size=1, max_size=4)


@given(TREES)
def test_what_yaml_writes_is_read_back_as_it_was(tree: dict[str, Plain]) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True, default_style='"')
    assert compose(text, "f").value == tree


@given(st.text())
def test_no_text_ends_in_a_traceback(text: str) -> None:
    try:
        sound = isinstance(compose(text, "f").value, dict)
    except DescriptionError as error:
        sound = len(error.problems) == 1
    assert sound


MOCK_TEXT = (Path(__file__).parents[3] / "labs" / "mock.yaml").read_text(encoding="utf-8")


@given(st.data())
def test_no_edit_of_a_lab_description_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(MOCK_TEXT)))
    length = data.draw(st.integers(0, 60))
    put = data.draw(
        st.text(max_size=20) | st.sampled_from(["{", "]", "\n", ": ", "[a]", "1", "d01", "{p0: d01}", "~", "''"])
    )
    path = tmp_path_factory.mktemp("edited") / "mock.yaml"
    path.write_text(MOCK_TEXT[:start] + put + MOCK_TEXT[start + length :], encoding="utf-8", errors="replace")
    [(_, found)] = check_files([path])
    if isinstance(found, DescriptionError):
        assert found.problems
        assert all(problem.line >= 1 and problem.column >= 1 for problem in found.problems)

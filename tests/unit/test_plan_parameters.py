"""What a test file declares of a parameter, and what is said of a value that it may not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.lab import load_lab
from rackloop.parameters import Parameter, choice, declared_by, default_of, flag, number, part, size, stack, text, whole
from rackloop.plan import PlanEntry, load_plan, override, require_parts
from rackloop.plan._testplans import read_declared
from rackloop_fixtures import code_of

REMAPS = whole(400, "map changes", most=1000)
BLOCKS = size([4096], "how large", least=512, most=1 << 20, multiple=512)
PAUSE_MS = number(20.0, "how long", least=1, most=60_000, unit="ms")
NAMES = text("x", "a name", pattern="[a-z]+")
DRIVES = part([""], "which", of="drive")


def read(parameter: Parameter, written: Any) -> Any:
    problems: dict[tuple[int, ...], str] = {}
    value = parameter.read(written, problems)
    return problems or value


@pytest.mark.parametrize(
    ("parameter", "written", "value"),
    [
        (REMAPS, "1", 1),
        (REMAPS, "1000", 1000),
        (BLOCKS, ["4 KiB", "512"], [4096, 512]),
        (PAUSE_MS, "20", 20.0),
        (PAUSE_MS, "1.5 s", 1500.0),
        (flag(False, "whether"), "yes", True),
        (NAMES, "abc", "abc"),
        (DRIVES, [""], [""]),
        (size(1, "how fast", most=10**9, unit="B/s"), "280 MB/s", 280_000_000),
    ],
)
def test_a_text_becomes_a_value_of_the_type_that_is_declared(parameter: Parameter, written: Any, value: Any) -> None:
    found = read(parameter, written)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("parameter", "written", "problems"),
    [
        (REMAPS, "0", {(): "expected a whole number from 1 to 1000, found '0'"}),
        (REMAPS, "-1", {(): "expected a whole number from 1 to 1000, found '-1'"}),
        (REMAPS, "1001", {(): "expected a whole number from 1 to 1000, found '1001'"}),
        (REMAPS, "4 KiB", {(): "expected a whole number from 1 to 1000, found '4 KiB'"}),
        (REMAPS, ["1"], {(): "expected a whole number from 1 to 1000, found a list"}),
        (REMAPS, None, {(): "expected a whole number from 1 to 1000, found nothing"}),
        (PAUSE_MS, "nan", {(): "expected a time from 1 ms to 60 s, found 'nan'"}),
        (PAUSE_MS, "1e999", {(): "expected a time from 1 ms to 60 s, found '1e999'"}),
        (BLOCKS, [], {(): "is empty; give at least one entry"}),
        (BLOCKS, "4 KiB", {(): "expected a list such as [4 KiB], found '4 KiB'"}),
        (
            BLOCKS,
            ["4 KiB", "513", {}],
            {
                (1,): "expected a size from 512 B to 1 MiB, a multiple of 512 B, found '513'",
                (2,): "expected a size from 512 B to 1 MiB, a multiple of 512 B, found a mapping",
            },
        ),
        (BLOCKS, ["512"] * 1001, {(): "has 1001 entries, at most 1000 are allowed"}),
        (NAMES, "", {(): "expected a text such as x, found ''"}),
        (NAMES, "A", {(): "expected a text such as x, found 'A'"}),
        (text("", "any"), "x" * 201, {(): f"expected a text of at most 200 characters, found '{'x' * 57}...'"}),
        (text("", "any"), "\x1b[2J", {(): "expected a text of at most 200 characters, found '\\x1b[2J'"}),
        (
            choice("move", "what", among=["move", "rebuild"]),
            "moves",
            {(): "expected one of move, rebuild, found 'moves'; did you mean 'move'?"},
        ),
        (
            stack("vanilla", "which"),
            "comrest",
            {
                (): "expected one of vanilla, no_timeouts, warm_port, comreset, "
                "found 'comrest'; did you mean 'comreset'?"
            },
        ),
    ],
)
def test_what_a_parameter_may_not_be_is_told_where_it_stands(
    parameter: Parameter, written: Any, problems: dict[tuple[int, ...], str]
) -> None:
    assert read(parameter, written) == problems


def test_a_plain_default_declares_its_type_alone() -> None:
    assert read(declared_by(4), "-7") == -7
    assert read(declared_by([4096]), ["4 KiB"]) == [4096]
    assert default_of(REMAPS) == 400
    given = default_of(BLOCKS)
    given.append(1)
    assert default_of(BLOCKS) == [4096]


TEST_FILE = """
from rackloop.parameters import part, size as bytes_of, whole

KIB = 1 << 10
PARAMETERS = {
    "remaps": whole(400, "map changes", most=10 * KIB),
    "blocks": bytes_of([4 * KIB], "how large", most=1 << 20),
    "drive": part("", "which", of="drive"),
    "rounds": 3,
}
MEASURES = {"a.b": "1"}


def test_x(): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A testplans folder whose file declares its parameters, and a plan that selects it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "test_x.py").write_text(TEST_FILE)
    (tmp_path / "p.yaml").write_text("plan: p\npurpose: y\ntests:\n  - test: a/x\n    with: {drive: d99}\n")
    return tmp_path


def test_a_declaration_is_read_without_running_the_file(root: Path) -> None:
    declared = read_declared(root / "a" / "test_x.py").parameters
    assert declared["remaps"] == whole(400, "map changes", most=10240)
    assert declared["rounds"] == 3


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        ('whole(0, "x", most=9)', "line 2: the default is none of the values allowed: expected a whole number from 1"),
        ('whole(1, "x")', "line 2: whole() missing"),
        ('part("", "x", of="drives")', "line 2: a lab has no drives; did you mean 'drive'?"),
        ('whole([], "x", most=9)', "line 2: is empty; give at least one entry"),
    ],
)
def test_a_declaration_that_cannot_be_is_told_with_its_line(declaration: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        f'from rackloop.parameters import part, whole\nPARAMETERS = {{"a": {declaration}}}\n'
    )
    with pytest.raises(ValueError, match="PARAMETERS is not a dictionary of constants") as caught:
        read_declared(tmp_path / "t.py")
    assert why in str(caught.value)


def test_a_part_that_the_lab_does_not_have_is_told_where_it_was_said(root: Path) -> None:
    plan, lab = load_plan(root / "p.yaml", root), load_lab("mock")
    with pytest.raises(BadInput) as caught:
        require_parts(plan, lab, root)
    assert str(caught.value).startswith(f"{root}/p.yaml:5:19: drive: lab mock has no drive 'd99'; did you mean 'd")
    with pytest.raises(BadInput, match="--set drive=d98: drive: lab mock has no drive 'd98'"):
        require_parts(override(plan, ["drive=d98"], root), lab, root)
    require_parts(override(plan, ["drive=d01"], root), lab, root)
    require_parts(override(plan, ["drive="], root), lab, root)


def test_what_was_set_of_an_entry_is_said_with_its_place(root: Path) -> None:
    (entry,) = override(load_plan(root / "p.yaml", root), ["remaps=7"], root).tests
    assert entry.said_by == f"{root}/p.yaml:4:5, --set remaps=7"
    assert PlanEntry("a/x").said_by == "a/x"


def test_a_code_is_k_and_m() -> None:
    assert code_of("246+9") == (246, 9)


@pytest.mark.parametrize("written", ["", "246", "246+", "+9", "6x2", "0+2", "6+0", "-6+2", "6+2+1"])
def test_what_is_no_code_is_named_with_what_one_looks_like(written: str) -> None:
    with pytest.raises(BadInput, match=r"codes: expected k\+m, such as 246\+9, found"):
        code_of(written)

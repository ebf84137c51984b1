"""The summary at the end of a run."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from rackloop_reports.record import read_run
from rackloop_reports.sentences import run_sentence
from rackloop_reports.summary import summarize
from rackloop_reports.terminal import print_summary, short_name
from tests.unit.reports.example_stream import ExampleRun, smoke_run

RED = "\x1b[1;31m"
SAMPLES = [index / 1000 for index in range(1, 401)]


def shown(run_dir: Path, width: int = 80, *, terminal: bool = False, everything: bool = False) -> str:
    text = io.StringIO()
    console = Console(width=width, file=text, force_terminal=terminal, color_system="standard" if terminal else None)
    print_summary(summarize(read_run(run_dir)), console, everything=everything)
    return text.getvalue()


def line_of(text: str, begins: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(begins)]
    return line


def measured_run(run_dir: Path, verdict: str = "pass", reason: str | None = None) -> Path:
    """A run of one test with a limit that is kept, a closer one, one of nothing at all, and perhaps one that is not."""
    example = ExampleRun(run_dir, lab_kind="physical")
    example.start("fabric/io::io", "measure", headlines=["io.rate"])
    example.clock.advance(8)
    example.measure("fabric/io::io", "io.stall", "s", [0.00735] * 400, maximum=1.0)
    example.measure("fabric/io::io", "io.wait", "s", [0.5] * 400, {"server": "srv1"}, maximum=0.6)
    example.measure("fabric/io::io", "io.errors", "1", [0.0] * 400, maximum=0.0)
    example.measure("fabric/io::io", "io.rate", "B/s", [1e6 * sample for sample in SAMPLES])
    if verdict != "pass":
        example.measure("fabric/io::io", "io.missed", "s", SAMPLES, maximum=1e-6)
    example.finish("fabric/io::io", verdict, "product" if verdict == "fail" else None, reason)
    return example.close(verdict, 0)


def test_a_pass_is_a_line_with_its_time_its_limits_and_the_closest(tmp_path: Path) -> None:
    measured_run(tmp_path)
    line = line_of(shown(tmp_path), "PASS")
    assert line == "PASS fabric/io  8 s  3 limits kept, closest: io.wait (server=srv1) p50 500 ms of 600 ms"


def test_limits_of_nothing_at_all_are_counted_and_never_the_closest(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "measure")
    example.measure("a/b", "io.errors", "1", [0.0] * 400, maximum=0.0)
    example.finish("a/b")
    example.close()
    assert line_of(shown(tmp_path), "PASS").endswith("1 limit kept")


def test_a_pass_that_measured_nothing_says_so(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    for test in ("provisioning", "own::nothing"):
        example.start(test, "look")
        example.finish(test)
    example.close()
    assert line_of(shown(tmp_path), "PASS own").endswith("nothing measured")
    assert "nothing" not in line_of(shown(tmp_path), "PASS prov").replace("own::nothing", "")


def test_provisioning_is_not_counted_as_a_test(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    for test, verdict in (
        ("provisioning", "pass"),
        ("provisioning-gw1", "fail"),
        ("a/b::c", "pass"),
        ("a/d::e", "fail"),
    ):
        example.start(test, "look")
        example.finish(test, verdict)
    run = read_run(example.close("fail", 1))
    assert ", 2 tests and provisioning, " in line_of(shown(tmp_path), "verdict")
    assert run_sentence(run) == "FAIL: 1 of 2 tests passed, 1 failed, provisioning-gw1 fail."


@pytest.mark.parametrize("terminal", [True, False])
def test_what_was_said_does_not_steer_the_terminal(tmp_path: Path, *, terminal: bool) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b::c", "look")
    example.finish("a/b::c", "unknown", "lab", "the drive said \x1b]0;mine\x07, \x9b2J\nand no more")
    example.close("unknown", 3)
    text = shown(tmp_path, 200, terminal=terminal)
    assert r"the drive said \x1b]0;mine\x07, \x9b2J and no more" in text


def test_a_run_that_was_killed_says_so_and_counts_the_tests_it_had(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b::c", "look")
    example.finish("a/b::c")
    example.log.close()
    run = read_run(tmp_path)
    assert run_sentence(run) == "UNKNOWN: 1 of 1 test passed, the run was killed."
    assert ", 1 test, " in line_of(shown(tmp_path), "verdict")


def test_headlines_are_shown_and_the_rest_where_everything_is_asked_for(tmp_path: Path) -> None:
    measured_run(tmp_path)
    text = shown(tmp_path)
    assert "    io.rate p50 200 kB/s, p99 " in text
    assert "io.stall" not in text
    assert "io.stall p50 7.35 ms" in shown(tmp_path, everything=True)


def test_the_headline_of_what_is_judged_by_its_mean_is_the_mean(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "measure", headlines=["fairness.jain"])
    example.measure("a/b", "fairness.jain", "1", [0.5, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75], is_mean=True)
    example.finish("a/b")
    example.close()
    assert "    fairness.jain mean 0.719\n" in shown(tmp_path)


def test_what_was_missed_is_told_in_full_and_red(tmp_path: Path) -> None:
    measured_run(tmp_path, "fail", "the stall was seen by the oracle")
    text = shown(tmp_path)
    assert line_of(text, "FAIL").endswith("1 limit missed, 3 kept, closest: io.wait (server=srv1) p50 500 ms of 600 ms")
    assert "    product: io.missed p50 200 ms [180 ms to 221 ms], limit max 1 us: fail\n" in text
    assert "    the stall was seen by the oracle\n" in text
    coloured = shown(tmp_path, terminal=True)
    assert f"{RED}FAIL" in coloured
    assert f"{RED}    product: io.missed" in coloured


@pytest.mark.parametrize("width", [30, 40, 53, 61, 80])
def test_a_terminal_never_parts_a_number_from_its_unit(tmp_path: Path, width: int) -> None:
    measured_run(
        tmp_path, "fail", "io.missed: p50 is 200 ms, 95 % interval 178 ms to 222 ms, outside the limit max 1 us"
    )
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown(tmp_path, width, terminal=True))
    assert not re.search(r"\d\n +\S", plain), plain


def test_a_pipe_gets_whole_lines_without_padding(tmp_path: Path) -> None:
    smoke_run(tmp_path, remaps=3)
    text = shown(tmp_path, width=20)
    assert "UNKNOWN tenancy/share  " in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "    simulated product: block 8192 of d02 holds generation 4, expected 5: stale data\n" in text


def test_every_test_has_its_verdict_and_reason(tmp_path: Path) -> None:
    text = shown(smoke_run(tmp_path, remaps=3))
    for test in read_run(tmp_path).tests:
        assert line_of(text, f"{test.verdict.upper()} {test.id} ")
    assert "SKIPPED fabric/expander  lab mock has no expander\n" in text
    assert "verdict fail, 10 tests" in text
    assert text.count("(simulated)") == 2


def test_square_brackets_in_names_are_text(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b[red]", "measure")
    example.finish("a/b[red]")
    example.close()
    assert "a/b[red]" in shown(tmp_path)


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("fabric/io::io", "fabric/io"),
        ("fabric/io::io[2]", "fabric/io[2]"),
        ("fabric/io::io[a::b]", "fabric/io[a::b]"),
        ("fabric/io::reads", "fabric/io::reads"),
        ("provisioning", "provisioning"),
    ],
)
def test_a_file_with_one_test_lends_it_its_name(test: str, name: str) -> None:
    assert short_name(test) == name

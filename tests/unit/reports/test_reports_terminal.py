"""The list at the end of a run."""

import io
from pathlib import Path

from rich.console import Console

from rackloop_reports.record import read_run
from rackloop_reports.summary import summarize
from rackloop_reports.terminal import render
from tests.unit.reports.example_stream import ExampleRun, smoke_run


def shown(run_dir: Path, width: int = 160) -> str:
    text = io.StringIO()
    Console(width=width, file=text).print(render(summarize(read_run(run_dir))))
    return text.getvalue()


def test_every_test_has_its_verdict_and_reason(tmp_path: Path) -> None:
    text = shown(smoke_run(tmp_path, remaps=3))
    for test in read_run(tmp_path).tests:
        assert any(test.id in line and test.verdict in line for line in text.splitlines())
    assert "product: block 8192 of d02 holds generation 4" in text
    assert "verdict fail, 10 tests" in text
    assert text.count("(simulated)") == 2


def test_the_measurement_with_a_limit_is_the_key_one(tmp_path: Path) -> None:
    text = shown(smoke_run(tmp_path, remaps=400))
    (line,) = [line for line in text.splitlines() if "remap.latency (stack=comreset) p99 1.3" in line]
    assert "limit max 2 ms: pass" in line
    assert "vanilla" not in text
    assert "and 4 more" in text


def test_the_worst_judged_measurement_stands_first(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path, lab_kind="physical")
    example.start("a/b", "measure")
    for name, maximum in (("kept.limit", 1.0), ("missed.limit", 1e-6), ("straddled.limit", 0.2)):
        example.measure("a/b", name, "s", [index / 1000 for index in range(1, 401)], maximum=maximum)
    example.finish("a/b", "fail", "product", "missed.limit is outside")
    example.close("fail", 1)
    text = shown(tmp_path)
    assert text.index("missed.limit p50") < text.index("straddled.limit p50") < text.index("kept.limit p50")
    assert "simulated" not in text


def test_square_brackets_in_names_are_text(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b[red]", "measure")
    example.finish("a/b[red]")
    example.close()
    assert "a/b[red]" in shown(tmp_path)


def test_an_interval_without_width_is_not_shown(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "measure")
    example.measure("a/b", "identity.wrong", "1", [0.0] * 400, maximum=0.0)
    example.finish("a/b")
    example.close()
    assert "identity.wrong p50 0, limit max 0: pass" in shown(tmp_path)


def test_a_name_is_never_broken_by_a_narrow_terminal(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("fabric/switched_throughput::switched_throughput", "measure")
    example.finish("fabric/switched_throughput::switched_throughput")
    example.close()
    assert "pass     fabric/switched_throughput::switched_throughput" in shown(tmp_path, width=80)

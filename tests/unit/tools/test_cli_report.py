"""Reports of the command line on a machine without Node.js."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rackloop_reports
from tests.unit.reports.example_stream import small_run


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No Node.js on PATH, and the reports installed where no checkout has one."""
    package = Path(rackloop_reports.__file__).parent
    shutil.copytree(package, tmp_path / "installed" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    kept = {name: value for name, value in os.environ.items() if name not in {"RACKLOOP_NODE", "RACKLOOP_ALLURE"}}
    return kept | {
        "PATH": str(tmp_path),
        "PYTHONPATH": str(tmp_path / "installed"),
        "RACKLOOP_STATE_HOME": str(tmp_path / "state"),
    }


def carried_out(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run((sys.executable, "-c", code), env=environment, capture_output=True, text=True, check=False)


def test_report_says_what_is_missing(tmp_path: Path, environment: dict[str, str]) -> None:
    run_dir = small_run(tmp_path / "run")
    code = f"import sys; from rackloop_cli.main import main; sys.exit(main(['report', {str(run_dir)!r}]))"
    done = carried_out(code, environment)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("rackloop: no Node.js for the HTML report: `node` is not on PATH; install Node.js")
    assert (run_dir / "summary.json").is_file()


def test_a_run_keeps_its_status_and_prints_its_table(tmp_path: Path, environment: dict[str, str]) -> None:
    run_dir = small_run(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from rackloop.lab import load_lab; "
        "from rackloop_cli.run import _report; "
        f"sys.exit(_report(Path({str(run_dir)!r}), load_lab('mock'), 1, True))"
    )
    done = carried_out(code, environment)
    assert done.returncode == 1, done.stderr
    assert "rackloop: no Node.js for the HTML report" in done.stderr
    assert f"Results: {run_dir}" in done.stdout

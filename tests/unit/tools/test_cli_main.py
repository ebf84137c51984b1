"""The command line's start, and what it makes of errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rackloop.errors import EXIT_LAB_FAILED, LabError
from rackloop_cli.main import main, tell
from rackloop_cli.shared.options import milliseconds, seconds

# Typer itself loads pydantic where a number has bounds.
HEAVY = ("allure", "matplotlib", "numpy", "pytest", "scipy", "sqlite3", "yaml")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom rackloop_cli.main import main\n"
        f"status = main({arguments!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] 0"


def test_numpy_has_no_threads_of_its_own() -> None:
    code = (
        "import os\nfrom rackloop_cli.main import main\nmain(['--version'])\nimport numpy\n"
        "print(len(os.listdir('/proc/self/task')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"


@pytest.mark.parametrize(
    "arguments",
    [["run", "--help"], ["demo", "--help"], ["heal", "--help"], ["report", "--help"], ["lab", "up", "--help"],
     ["lab", "check", "--help"], ["fabric", "mock", "map", "--help"]],
    ids=" ".join,
)  # fmt: skip
def test_every_verb_explains_itself(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage: rackloop" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["lab", "check", "nowhere.yaml"], 2, "rackloop: there is no lab description at nowhere.yaml"),
        (["report", "nowhere"], 2, "give the output directory of a run"),
        (["no-such-verb"], 2, "No such command"),
        (["lab", "up"], 2, "Missing argument"),
    ],
)
def test_errors_are_one_message_and_a_status(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    assert said in capsys.readouterr().err


def test_a_second_ctrl_c_while_python_ends_changes_nothing() -> None:
    code = (
        "import signal, sys\nfrom rackloop_cli.main import app, main\n"
        "@app.command()\ndef stopped() -> None: signal.raise_signal(signal.SIGINT)\n"
        "status = main(['stopped'])\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "rackloop: interrupted\n")


def test_a_mistake_of_the_program_is_not_the_status_of_a_product_that_failed() -> None:
    code = (
        "import sys\nfrom rackloop_cli.main import app, main\n"
        "@app.command()\ndef mistaken() -> None: raise ZeroDivisionError('a mistake')\n"
        "sys.exit(main(['mistaken']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_LAB_FAILED
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: a mistake\n")


def test_usage_names_what_is_required_as_the_documents_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "mock", "show", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: rackloop fabric LAB show [OPTIONS]\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fabric", "mock", "drop", "srv1.p0", "--ms", "soon"], "Try 'rackloop fabric LAB drop --help' for help."),
        (["fabric", "mock", "drop", "srv1.p0", "--ms", "soon"], "a number of milliseconds, found 'soon'"),
        (["run", "smoke", "--lab", "mock", "--wait", "-3"], "expected a time of 0 or more, found '-3'"),
        (["trace", "make", "x.iolog", "--duration", "8 furlongs"], "expected a time such as 90s or 5min"),
        (["lab", "lease", "mock", "--for", "1e999"], "expected a time of 100 years at most, found '1e999'"),
        (["lab", "lease", "mock", "--for", "1h", "--wait", "1e300"], "expected a time of 100 years at most"),
        (["console", "mock", "srv1", "--for", "999999999999999h"], "expected a time of 100 years at most"),
        (["fabric", "mock", "drop", "srv1.p0", "--ms", "1e-9"], "--ms 1e-09 is not between 1 us and an hour"),
        (["lab", "provision", "mock", "--timeout-s", "inf"], "less than or equal to 86400"),
        (
            ["lab", "maintain", "mock", "d01", "--reason", "x", "--until", "9999-12-31T23:59-05:00"],
            "not a date or time",
        ),
        (["trace", "make", "x.iolog", "--sizes", "4KiB:inf"], "expected weights above 0, at most 1e9"),
        (["trace", "make", "x.iolog", "--period", "1e-320"], "a period of 1 ms or longer"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_expected(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "seconds_of_it", "milliseconds_of_it"),
    [("5min", 300.0, 300_000.0), ("50 ms", 0.05, 50.0), ("8s", 8.0, 8000.0), ("50", 50.0, 50.0), (2.5, 2.5, 2.5)],
)
def test_a_time_is_read_with_its_unit_or_as_a_number_of_the_options_own(
    written: str | float, seconds_of_it: float, milliseconds_of_it: float
) -> None:
    assert seconds(written) == pytest.approx(seconds_of_it)
    assert milliseconds(written) == pytest.approx(milliseconds_of_it)


def test_fixed_cabling_is_not_drawn_as_an_empty_map(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "mock-direct", "show"]) == 2
    assert "the rack mock-direct has fixed cabling and no switch" in capsys.readouterr().err


def test_profiles_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "list", "--json"]) == 0
    assert "sata-hdd" in {profile["name"] for profile in json.loads(capsys.readouterr().out)["profiles"]}


def test_what_else_went_wrong_is_said_below_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    error = LabError("the lease was stolen by eve")
    error.add_note("/tmp/of-run cannot be removed")
    assert tell(error) == error.exit_code
    told = ["rackloop: the lease was stolen by eve", "rackloop: /tmp/of-run cannot be removed"]
    assert capsys.readouterr().err.splitlines() == told

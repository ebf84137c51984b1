"""The command line's start, and what it makes of errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rackloop_cli.main import main

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


def test_usage_names_what_is_required_as_the_documents_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "mock", "show", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: rackloop fabric LAB show [OPTIONS]\n")


def test_profiles_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "list", "--json"]) == 0
    assert "sata-hdd" in {profile["name"] for profile in json.loads(capsys.readouterr().out)["profiles"]}

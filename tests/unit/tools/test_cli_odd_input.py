"""Whatever stands on the command line ends in a sentence and the exit status of bad input."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from rackloop.errors import EXIT_BAD_INPUT, EXIT_LAB_FAILED, BadInput, LabError
from rackloop.names import guess, printable
from rackloop_cli.main import app, main
from rackloop_cli.shared.options import names_in
from rackloop_cli.shared.os_errors import as_refusal
from rackloop_cli.shared.output import say, write_files

PATHLIKE = {"LAB", "PLAN", "DIR", "FILE", "TRACE", "SCHEDULE", "RUN", "IN", "OUT", "STORE"}
NOBODY = 65_534
# More than Python reads as one number.
DIGITS = "9" * 5000


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Each command that does something: the words to call it by, arguments of groups in braces, and its parameters."""
    if getattr(command, "commands", None) is None:
        yield words, command.params
        return
    groups = tuple(f"{{{each.metavar}}}" for each in command.params if each.param_type_name == "argument")
    for name, child in command.commands.items():
        yield from leaves(child, (*words, *groups, name))


def cases() -> Iterator[tuple[str, list[str]]]:
    """Command lines with ``BAD`` at each place where a path may stand, other required values being plausible."""
    for words, params in leaves(get_command(app)):
        arguments = [each for each in params if each.param_type_name == "argument"]
        if "{LAB}" in words:
            yield " ".join(words), ["BAD" if word == "{LAB}" else word for word in words] + ["1"] * len(arguments)
            continue
        for at, argument in enumerate(arguments):
            if str(argument.metavar).strip("[].") in PATHLIKE:
                values = ["BAD" if place == at else "mock" for place in range(len(arguments))]
                needed = [
                    v for each in params if each.required and each not in arguments for v in (each.opts[0], "mock")
                ]
                yield f"{' '.join(words)} {argument.metavar}", [*words, *values, *needed]
    for option in ("--out", "--testplans", "--lab"):
        lab = [] if option == "--lab" else ["--lab", "mock"]
        quick = "--no-report" if option == "--out" else "--dry-run"
        yield f"run {option}", ["run", "smoke", *lab, option, "BAD", quick]


CASES = list(cases())


@contextmanager
def somebody_else() -> Iterator[None]:
    """Whom permissions bind; root may enter every folder."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


def bad_paths(folder: Path) -> dict[str, str]:
    (folder / "file").write_text("x")
    (folder / "closed").mkdir(mode=0o700)
    (folder / "closed").chmod(0)
    (folder / "circle").symlink_to("circle")
    return {
        "a name over 255 bytes": str(folder / ("x" * 300)),
        "a name of two bytes a letter": "\u00e9" * 200,
        "below a file": str(folder / "file" / "x.yaml"),
        "in a folder one may not enter": str(folder / "closed" / "x.yaml"),
        "a link that leads to itself": str(folder / "circle"),
        "a folder one may not enter": str(folder / "closed"),
    }


def test_a_link_that_leads_to_itself_is_a_problem_of_a_folder_of_labs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "circle.yaml").symlink_to("circle.yaml")
    assert main(["lab", "check", str(tmp_path)]) == EXIT_BAD_INPUT
    assert "circle.yaml:1:1: cannot be read: Too many levels of symbolic links" in capfd.readouterr().err


def test_there_are_commands_with_paths() -> None:
    assert len(CASES) >= 38


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=[name for name, _ in CASES])
def test_a_path_that_cannot_be_used_is_bad_input_in_a_sentence(
    name: str,
    arguments: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("bad")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    (folder / "state").mkdir()
    (folder / "state").chmod(0o777)
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(folder / "state"))
    monkeypatch.chdir(folder)
    paths = bad_paths(folder)
    # What is imported late is so as root, who may read it wherever it lies; a path that root cannot use either.
    main([paths["below a file"] if argument == "BAD" else argument for argument in arguments])
    capfd.readouterr()
    for what, path in paths.items():
        written = [path if argument == "BAD" else argument for argument in arguments]
        with somebody_else():
            status = main(written)
        said = capfd.readouterr()
        assert status == EXIT_BAD_INPUT, f"{what}: {said.err}"
        assert "Traceback" not in said.err, what
        assert said.err.strip(), what


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "smoke", "--lab", "mock", "--servers", ""],
        ["run", "smoke", "--lab", "mock", "--servers="],
        ["run", "smoke", "--lab", "mock", "--servers", ","],
        ["run", "smoke", "--lab", "mock", "--servers", "srv1,,srv2"],
        ["run", "smoke", "--lab", "mock", "--lease", ""],
        ["run", "smoke", "--lab", "mock", "-k", ""],
        ["run", "smoke", "--lab", "mock", "--out", ""],
        ["run", "smoke", "--lab", "mock", "-n", "100000"],
        ["run", "smoke", "--lab", "mock", "--set", "remaps=0"],
        ["run", "characterize", "--lab", "mock", "--dry-run", "--set", "drive="],
        ["run", "characterize", "--lab", "mock", "--dry-run", "--set=drive="],
        ["demo", "--set", "trace="],
        ["lab", "lease", "mock", "--for", "1 min", "--servers", ""],
        ["heal", ""],
    ],
)
def test_an_empty_value_is_not_all_there_is(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == EXIT_BAD_INPUT
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["fabric", "mock", "map", f"{DIGITS}=5"],
        ["fabric", "mock", "unmap", DIGITS],
        ["lab", "quarantine", "mock", "--retest", f"pdu1/{DIGITS}"],
    ],
)
def test_a_number_of_thousands_of_digits_is_no_port(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == EXIT_BAD_INPUT
    said = capfd.readouterr().err
    assert len(said) < 500, said


def test_options_of_pytest_that_no_shell_could_read_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k 'one")
    assert main(["run", "smoke", "--lab", "mock", "--out", str(tmp_path / "out")]) == EXIT_BAD_INPUT
    said = "rackloop: PYTEST_ADDOPTS cannot be split into options of pytest: No closing quotation\n"
    assert capfd.readouterr().err == said
    assert not (tmp_path / "out").exists()


def test_what_people_write_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    say("firmware [old] :smile:")
    assert capsys.readouterr().out == "firmware [old] :smile:\n"


def test_a_list_of_names_has_names() -> None:
    assert names_in(None) == ()
    assert names_in("srv1, srv2") == ("srv1", "srv2")
    with pytest.raises(BadInput, match="expected names such as srv1,srv2, found ','"):
        names_in(",")


def test_what_steers_a_terminal_is_shown_and_not_sent() -> None:
    assert printable("firmware 2.4, \u00fcber Nacht") == "firmware 2.4, \u00fcber Nacht"
    assert printable("\x1b]0;owned\x07\x1b[2J\u202eabc\n") == r"\x1b]0;owned\x07\x1b[2J\u202eabc\n"


def test_a_box_without_its_outlet_is_not_taken_for_another_box() -> None:
    outlets = [f"pdu{box}/{outlet}" for box in (1, 2, 3) for outlet in (1, 2)]
    assert guess("pdu1", outlets) == "did you mean 'pdu1/1'?"


@pytest.mark.parametrize(("written", "words"), [("help", "Exit codes:"), ("hepl", "Did you mean 'help'")])
def test_help_is_no_mistyped_heal(written: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    main([written])
    said = capfd.readouterr()
    assert words in said.out + said.err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (OSError(errno.EACCES, "Permission denied", "/x"), EXIT_BAD_INPUT, "cannot use '/x': Permission denied; check"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), EXIT_LAB_FAILED, "cannot write '/x': No space left"),
        (OSError(errno.ENOSPC, "No space left on device"), EXIT_LAB_FAILED, "cannot write: No space left on device"),
    ],
)
def test_what_the_system_refuses_is_said_in_a_sentence(error: OSError, status: int, words: str) -> None:
    refusal = as_refusal(error)
    assert isinstance(refusal, BadInput | LabError)
    assert refusal.exit_code == status
    assert words in str(refusal)


def test_a_full_disk_below_a_directory_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "figures.csv").symlink_to("/dev/full")
    with pytest.raises(BadInput, match="cannot write into it: No space left on device"):
        write_files(tmp_path, {"figures.csv": "1,2\n"}, "figures", None)


def test_what_no_argument_causes_keeps_its_traceback() -> None:
    assert as_refusal(OSError(errno.EBADF, "Bad file descriptor")) is None
    assert as_refusal(OSError(errno.EACCES, "Permission denied")) is None

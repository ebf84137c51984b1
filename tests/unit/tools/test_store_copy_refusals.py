"""What `rackloop store put` and `get` refuse before they look for the lab, which is not up here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackloop_cli.main import main


@pytest.fixture(autouse=True)
def _no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (made / "file").write_bytes(b"content")
    (made / "name").mkdir()
    os.mkfifo(made / "pipe")
    return made


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("none/", "/none/ cannot be written: there is no folder"),
        ("none/file", "/none/file cannot be written: there is no folder"),
        ("file/", "/file is no folder"),
        ("file/below", "/file is no folder"),
        ("pipe", "/pipe is neither a file nor a folder; give one of these, or - for standard output"),
        ("", "/name is a folder; give another name for the file"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_a_target_that_cannot_be_written(
    folder: Path, target: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "mock", "get", "d01", "name", f"{folder}/{target}"]) == 2
    assert said in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"file", "name", "pipe"}


def test_no_link_is_followed_where_a_file_is_written_first(folder: Path) -> None:
    (folder / f".rackloop-get-{os.getpid()}.half").symlink_to(folder / "file")
    assert main(["store", "mock", "get", "d01", "name", f"{folder}/copy"]) == 3
    assert (folder / "file").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none"], "none cannot be read: No such file or directory"),
        (["name"], "name cannot be read: Is a directory"),
        (["file/"], "file/ cannot be read: Not a directory"),
        (["-"], "what comes from standard input has no name; give one with --name"),
        (["file", "--name", ""], "an argument after --name is empty"),
        (["file", "--name", "a//b"], "a file's name has 1 to 255 bytes"),
        (["file", "--name", ".."], "a file's name has 1 to 255 bytes"),
        (["file", "--name", ".rackloop-put.half"], "a file of a store cannot be called '.rackloop-put.half'"),
    ],
)
def test_a_source_that_cannot_be_put(
    folder: Path,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert main(["store", "mock", "put", "d01", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_closed_standard_input_is_no_empty_file() -> None:
    put = [sys.executable, "-m", "rackloop_cli.main", "store", "mock", "put", "d01", "-", "--name", "results.tar"]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *put], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"rackloop: standard input cannot be read: it is closed\n")


def test_what_may_be_done_asks_for_the_lab_and_leaves_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "mock", "get", "d01", "other", str(folder)]) == 3
    assert main(["store", "mock", "put", "d01", str(folder / "file")]) == 3
    assert capsys.readouterr().err.count("lab mock is not up") == 2
    assert {path.name for path in folder.iterdir()} == {"file", "name", "pipe"}
    assert main(["store", "mock", "format", "d20"]) == 2
    assert "drive d20 may not be written: the description does not mark it scratch" in capsys.readouterr().err

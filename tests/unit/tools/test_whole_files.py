"""Files that verbs write as a whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackloop_cli.shared.output import write_whole

ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from rackloop_cli.main import main
from rackloop_cli.shared.output import write_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
if sys.argv[1] == "new":
    sys.exit(main(["new", "test", "pull"]))
try:
    write_whole(Path("file"), "more than fits", replacing=True)
except OSError as error:
    print(error.strerror)
"""


def on_a_full_disk(what: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = [sys.executable, "-c", ON_A_FULL_DISK, what]
    return subprocess.run(code, cwd=folder, capture_output=True, text=True, check=False)


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    assert on_a_full_disk("over", tmp_path).stdout == "File too large\n"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "before")]


def test_a_full_disk_leaves_no_half_test(tmp_path: Path) -> None:
    done = on_a_full_disk("new", tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "rackloop: cannot write test_pull.py: File too large; choose another folder\n",
    )
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_replaced_only_where_that_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "one", replacing=False)
    with pytest.raises(FileExistsError):
        write_whole(file, "two", replacing=False)
    assert file.read_text() == "one"
    write_whole(file, "two", replacing=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "two")]


def test_a_link_and_a_mode_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("one")
    file.chmod(0o600)
    link.symlink_to(file)
    write_whole(link, "two", replacing=True)
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "two", 0o600)


def test_what_is_no_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "text", replacing=True)
    said = os.read(reading, 9)
    os.close(reading)
    assert said == b"text"
    assert (tmp_path / "pipe").is_fifo()

"""Files of reports."""

from __future__ import annotations

from pathlib import Path

from rackloop_reports._files import write_atomically


def test_a_path_that_is_not_utf_8_is_written_as_python_writes_it(tmp_path: Path) -> None:
    write_atomically(tmp_path / "page", "rackloop run \udcff.yaml, n\u00e4chtlich")
    assert (tmp_path / "page").read_bytes() == b"rackloop run \\udcff.yaml, n\xc3\xa4chtlich"

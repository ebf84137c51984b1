"""The job files and reports of fio in a test, packed to be attached."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from rackloop.names import file_name

FOLDER = "fio"
#: What is packed into more stays in the run's directory alone, for a report has to be sent on.
MOST_BYTES = 8 << 20
_NO_DATE = (1980, 1, 1, 0, 0, 0)


def fio_archive(run_dir: Path, test: str) -> bytes | None:
    """All that fio was told and answered in ``test``, as a ZIP file, the same for the same files; None where it was
    not used, or answered too much."""  # noqa: D205, D209
    folder = run_dir / FOLDER / file_name(test)
    files = sorted(path for path in folder.glob("*") if path.is_file())
    if not files:
        return None
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.writestr(zipfile.ZipInfo(path.name, _NO_DATE), path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = packed.getvalue()
    return data if len(data) <= MOST_BYTES else None

"""blobload on the exports of running storage switches."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rackloop.native import find_binary
from tests.storageswitch_process import RunningSwitch

WITHIN_S = 60.0
RECORDS = 2000


@contextmanager
def running(text: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[dict[str, Any]]]]:
    """A run and the lines that it prints; it has ended afterwards."""
    command = [str(find_binary("blobload"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(text)
        process.stdin.close()
        yield process, map(json.loads, process.stdout)


def document(switches: Sequence[RunningSwitch], **changes: Any) -> str:
    """A database so small that memtables are flushed within a few hundred puts."""
    drives = [
        {"uri": switch.uri("a"), "control": str(switch.control), "tenant": "a", "in_box": number}
        for number, switch in enumerate(switches)
    ]
    tree = {"memtable_bytes": 256 << 10, "table_bytes": 256 << 10, "level_base_bytes": 1 << 20, "cache_bytes": 0}
    layout = {"unit_bytes": 1 << 20, "blob_bytes": 128 << 10}
    whole = {"schema": 1, "mix": "a", "records": RECORDS, "depth": 8, "operations": 2000, "seed": 1, "drives": drives}
    return json.dumps(whole | {"layout": layout, "tree": tree} | changes)


def blobload(text: str) -> subprocess.CompletedProcess[str]:
    """A whole run."""
    return subprocess.run(
        [str(find_binary("blobload"))], input=text, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )

"""rackprobe is delivered as one file that needs no other on the server it runs on."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rackloop.native import find_binary


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_rackprobe_needs_no_library_and_no_loader() -> None:
    binary = find_binary("rackprobe")
    said = subprocess.run(
        ("readelf", "--wide", "--program-headers", "--dynamic", str(binary)), capture_output=True, text=True, check=True
    ).stdout
    needed = [line for line in said.splitlines() if "(NEEDED)" in line or "INTERP" in line]
    assert "LOAD" in said
    assert not needed, f"{binary} runs only where these are: build it with native/build, not with cargo build: {needed}"

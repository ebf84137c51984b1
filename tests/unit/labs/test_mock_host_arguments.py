"""Whatever is typed, an emulated tool answers as a program does: with output or a message, and a status."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.transcripts.guest import run

NVME_WORDS = [
    *("list", "list-subsys", "id-ctrl", "id-ns", "smart-log", "error-log", "reset", "subsystem-reset", "version"),
    *("help", "-o", "json", "xml", "--output-format=json", "-n", "1", "-1", "0x", "-e", "-v", "-H", "--", "-", ""),
    *("/dev/nvme0", "/dev/nvme0n1", "/dev/nvme9", "/dev/sda", "nvme0", "/dev/disk/by-path/", "--help", "-Z"),
]
SMARTCTL_WORDS = [
    *("-a", "-x", "-i", "-H", "-A", "-c", "-j", "--json", "--json=c", "--json=", "--json=z", "--scan", "--scan-open"),
    *("-l", "error", "sasphy", "sataphy", "xerror", "-lssd", "--log=devstat", "--log", "-d", "sat", "nvme", "frob"),
    *("-f", "brief", "-f=", "/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/nvme0", "/dev/nope", "-t", "--", "-", "", "-V"),
]


@given(st.lists(st.sampled_from(NVME_WORDS), max_size=5))
def test_nvme_always_answers(argv: list[str]) -> None:
    answer = run("nvme", *argv)
    assert answer.status in {0, 1}
    if answer.status:
        assert answer.stderr or answer.stdout


@given(st.lists(st.sampled_from(SMARTCTL_WORDS), max_size=6))
def test_smartctl_always_answers(argv: list[str]) -> None:
    answer = run("smartctl", *argv)
    assert answer.status in {0, 1, 2, 4}
    if answer.status:
        assert answer.stdout

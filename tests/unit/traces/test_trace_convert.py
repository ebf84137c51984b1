"""`rackloop trace convert`: what it writes, what it says, and that nothing half done is left."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from rackloop_cli.main import main
from rackloop_traces import open_trace
from tests.deadlines import soon

SPC = "".join(f"0,{8 * nth},4096,{'rw'[nth % 2]},{nth / 1000:.6f}\n" for nth in range(1000))


@pytest.fixture
def spc(tmp_path: Path) -> Path:
    path = tmp_path / "trace.spc"
    path.write_text(SPC)
    return path


def convert(*arguments: str | Path) -> int:
    return main(["trace", "convert", *map(str, arguments)])


def test_a_trace_is_converted_and_summed_up(spc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = spc.with_name("out.iolog")
    assert convert(spc, out) == 0
    assert out.read_text().splitlines()[:4] == [
        "fio version 3 iolog",
        "1 0 add",
        "1 0 open",
        "1 0 read 0 4096",
    ]
    said = capsys.readouterr()
    assert f"{spc}: SPC trace file 1.0.1, 1,000 requests\n" in said.out
    assert re.search(rf"{out}: fio iolog version 3, 1,000 requests in \d+\.\d s, [\d,]+/s", said.out)
    assert said.err == ""


@pytest.mark.parametrize(("suffix", "decode"), [(".gz", gzip.decompress), (".zst", None), ("", bytes)])
def test_the_end_of_a_name_compresses(spc: Path, suffix: str, decode: type[bytes] | None) -> None:
    out = spc.with_name(f"out.alibaba.csv{suffix}")
    assert convert(spc, out) == 0
    text = (
        decode(out.read_bytes())
        if decode
        else zstandard.ZstdDecompressor().decompressobj().decompress(out.read_bytes())
    )
    assert text.count(b"\n") == 1000
    assert out.stat().st_mode & 0o777 == spc.stat().st_mode & 0o777


def test_malformed_lines_are_reported_and_left_out(spc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spc.write_text(SPC + "0,8,4096,q,1\n" * 7)
    out = spc.with_name("out.msr.csv")
    assert convert(spc, out) == 0
    said = capsys.readouterr().err
    assert "malformed: 7 of 1,007 lines left out" in said
    assert "  line 1001: unknown Opcode 'q'" in said
    assert "  and 2 more" in said
    assert "changed: 1,000 requests given a response time of 0" in said
    assert out.read_text().count("\n") == 1000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--strict"], "1 malformed line as SPC trace file 1.0.1 in its first 1001 lines, more than the 0 allowed"),
        (["--max-malformed", "0"], "more than the 0 allowed"),
        (["--strict", "--max-malformed", "5"], "give one of them"),
        (["--from", "scp"], "did you mean 'spc'?"),
        (["--to", "scp"], "did you mean 'spc'?"),
        (["--to", "blktrace"], "blktrace recording is read and not written"),
        (["--volume", "9"], "no request of volume '9': known: 0"),
    ],
)
def test_what_is_refused_leaves_nothing(
    spc: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spc.write_text(SPC + "wrong\n")
    assert convert(spc, spc.with_name("out.iolog"), *options) == 2
    assert said in capsys.readouterr().err
    assert list(spc.parent.iterdir()) == [spc]


def test_a_compressed_trace_cut_short_says_how_far_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.gz"
    trace.write_bytes(gzip.compress(SPC.encode() * 30)[:-50])
    out = tmp_path / "out.iolog"
    out.write_text("what was there")
    assert convert(trace, out, "--force") == 2
    found = re.search(r"is cut short: its gzip data ends in the middle, after (\d+) requests", capsys.readouterr().err)
    assert found
    assert 0 < int(found[1]) <= 30_000
    assert out.read_text() == "what was there"
    assert sorted(tmp_path.iterdir()) == [out, trace]


def test_a_name_that_says_no_format_is_refused(spc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(spc, spc.with_name("out.csv")) == 2
    assert "out.csv does not say a format" in capsys.readouterr().err


def test_a_trace_is_not_written_over_itself(spc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(spc, spc) == 2
    assert "is the trace itself" in capsys.readouterr().err
    assert spc.read_text() == SPC


@pytest.mark.parametrize(("out", "said"), [(".", "is a directory"), ("absent/out.spc", "No such file or directory")])
def test_a_place_that_cannot_be_written_is_refused(
    spc: Path, out: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(spc, spc.parent / out, "--to", "spc") == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_is_no_file_is_not_replaced_by_one(
    spc: Path, force: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    # A pipe stands for /dev/null and the drives of the machine, which root could replace as well.
    pipe, link = spc.with_name("pipe.iolog"), spc.with_name("link.iolog")
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for out in (pipe, link):
        assert convert(spc, out, *force) == 2
        assert f"{out} is no regular file" in capsys.readouterr().err
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_a_link_leads_to_what_is_written(spc: Path) -> None:
    out, link = spc.with_name("out.iolog"), spc.with_name("link.iolog.gz")
    out.write_text("before")
    link.symlink_to(out)
    assert convert(spc, link, "--force") == 0
    assert gzip.decompress(out.read_bytes()).startswith(b"fio version 3 iolog")
    assert link.is_symlink()


def test_a_disk_that_is_full_leaves_nothing(spc: Path) -> None:
    limited = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from rackloop_cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", limited, "trace", "convert", str(spc), str(spc.with_name("out.iolog"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert list(spc.parent.iterdir()) == [spc]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whichever_signal_ends_it_nothing_half_written_is_left(tmp_path: Path, number: signal.Signals) -> None:
    program = "import sys; from rackloop_cli.main import main; sys.exit(main(sys.argv[1:]))"
    # More than any machine makes before it is told to end.
    endless = ("trace", "make", tmp_path / "out.spc.zst", "--seed=1", "--rate=100000", f"--requests={2**36}")
    making = subprocess.Popen([sys.executable, "-c", program, *endless], stderr=subprocess.PIPE, text=True)
    assert soon().poll(lambda: any(tmp_path.iterdir()), every_s=0.01)
    making.send_signal(number)
    _, said = making.communicate()
    assert (making.returncode, said) == (130, "rackloop: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_requests_out_of_order_are_put_in_order_for_fio(spc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spc.write_text("0,8,512,r,5\n0,16,512,r,3\n0,24,512,r,6\n")
    assert convert(spc, spc.with_name("out.iolog")) == 0
    assert "out of order: 1 request earlier than one before, put in order" in capsys.readouterr().err
    assert [line.split()[0] for line in spc.with_name("out.iolog").read_text().splitlines()[3:]] == [
        "1", "2000001", "3000001",
    ]  # fmt: skip
    assert convert(spc, spc.with_name("out.systor17.csv")) == 0
    assert "left as they stand" in capsys.readouterr().err


def test_a_conversion_there_and_back_is_the_same_trace(spc: Path) -> None:
    there, back = spc.with_name("there.systor17.csv.zst"), spc.with_name("back.spc")
    assert convert(spc, there) == convert(there, back) == 0
    one, other = (next(open_trace(path).batches()) for path in (spc, back))
    assert one.equals(other)


def test_help_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "convert", "--help"]) == 0
    said = capsys.readouterr().out
    assert "  tencent          Tencent block traces\n" in said
    assert "blktrace recording (read only)" in said


def test_a_file_that_cannot_be_made_is_called_as_it_was_given(
    tmp_path: Path, spc: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "out.iolog"
    assert convert(spc, out, "--to", "iolog3") == 2
    assert f"cannot write {out}: Not a directory" in capsys.readouterr().err

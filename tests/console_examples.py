"""Console blocks of the documents: commands that are run as a reader would, and their output compared."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sybil import Document, Example, Region
from sybil.parsers.markdown import CodeBlockParser

from tests.command_forks import command_forks

ROOT = Path(__file__).parents[1]
WHOLE = "RACKLOOP_WHOLE_EXAMPLES"
"""The environment variable with which commands that take minutes run too; without it they are only planned."""
# The command after which an option makes it end soon: what it names is checked, and nothing is measured.
_SHORTENED = {
    r"rackloop run (testplans/)?(smoke|characterize|characterize-pts|erasure|qualify|direct-attached)\b": "--dry-run",
    r"rackloop run tenancy\b": "--dry-run",
    r"rackloop lab provision mock( --undo)?$": "--roles base_tools --servers srv1",
    r"rackloop lab provision mock (?!.*--servers)": "--servers srv1",
    r"rackloop trace replay\b": "--for 1",
    r"rackloop schedule shrink\b": "--runs 2",
    r"rackloop model (erasure tail|curves)\b": "--help",
}
# What takes a quarter of an hour and more is only planned, whatever was asked for: rounds of a minute.
_HOURS = r"rackloop run .*--set seconds=60\b"
# A small plan whose run stands in for the demo's: commands after it look at its results.
_SMALL = """\
plan: small
purpose: A stand-in for the demo.
tests: [{test: fabric/undisturbed_io, with: {remaps: 4}}]
"""
# A report that no command after it looks at takes longer to render than many runs last.
_UNRENDERED = " --no-report"
_MOST_S = 900.0
# So many commands are sooner forked from one that has everything loaded, which takes as long as a start and a half.
_MANY = 3
# A measurement on a machine that was busy meanwhile is no mistake of the page.
_INCONCLUSIVE = 3
_FILE = re.compile(r"^<!--- file: (?P<name>\S+) -->\n\n(?P<fence>```\w+\n)(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_LEASE = r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8}\b"
# What differs from run to run: a duration whatever its unit, numbers and times of day, accounts, ids of leases. The ids
# that were said are the pattern's groups: by themselves, those of eight decimal digits look like any number.
_VARIES = [
    (r"\d[\d.,]* (?:ns|us|µs|ms|s|min|h)\b", r"\d[\d.,]* (?:ns|us|µs|ms|s|min|h)"),
    (r"[\w.-]+@[\w.-]+", r"[\w.-]+@[\w.-]+"),
    (_LEASE, "([0-9a-f]{8})"),
    (r"\d[\d.,:-]*", r"\d[\d.,:-]*"),
    (r" ?\.\.\. ?", ".*"),
]


@dataclass(frozen=True)
class Command:
    """A command of a block and the lines shown below it."""

    line: str
    shown: str

    @property
    def is_whole(self) -> bool:
        """Whether it is run for what it does: one that takes minutes is not where these were not asked for."""
        return self.run_as() in {self.line, self.line + _UNRENDERED}

    def run_as(self) -> str:
        """The line as it is run: shortened where it takes hours, or minutes and these were not asked for."""
        if re.search(_HOURS, self.line):
            return f"{self.line} --dry-run"
        if WHOLE not in os.environ:
            if "rackloop demo " in self.line:
                return self.line.replace(" demo ", " run small.yaml --lab mock ")
            for pattern, option in _SHORTENED.items():
                if re.search(pattern, self.line):
                    return re.sub(r"\s*(#.*)?$", f" {option}", self.line, count=1)
            if "rackloop run " in self.line and "Report:" not in self.shown and " --" in self.line:
                return self.line + _UNRENDERED
        return self.line

    def leases(self, said: str) -> dict[str, str] | None:
        """The lease said for each lease shown; None where the output differs by more than what varies and ``...``."""
        agreed = re.fullmatch(_pattern(self.shown), _collapsed(said), re.DOTALL)
        return None if agreed is None else dict(zip(re.findall(_LEASE, self.shown), agreed.groups(), strict=True))


def commands_of(block: str) -> Iterator[Command]:
    """The commands of a console block: lines that begin with ``$``, a backslash at the end goes on."""
    for part in re.split(r"^ *\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield Command(line.strip(), shown)


class Checkout:
    """A copy of the checkout with labs of its own, in which a page's commands run: forked, or started each."""

    def __init__(self, folder: Path, *, is_forked: bool) -> None:
        self.folder = folder / "rackloop"
        self._home = folder / "home"
        self._home.mkdir()
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in names.split("\0")[:-1]:
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        (self.folder / "native" / "target").symlink_to(ROOT / "native" / "target")
        (self.folder / ".rackloop").symlink_to(ROOT / ".rackloop")
        (self.folder / "small.yaml").write_text(_SMALL)
        roots = sorted(path.parents[1] for path in self.folder.glob("*/rackloop*/__init__.py"))
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "RACKLOOP_"))},
            "HOME": str(self._home),
            "PYTHONPATH": os.pathsep.join(map(str, roots)),
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        # The installation is this checkout's: what is shown after it is asked of the copy's own code.
        command, self._passed = f"{sys.executable} -P -m rackloop_cli.main", []
        self._forks = ExitStack()
        if is_forked:
            tests = self.folder / "tests"
            forks = command_forks(tests / "command_forks.py", self.folder, self._environment)
            self._passed = [self._forks.enter_context(forks).fileno()]
            command = f"{sys.executable} -I -S {tests / 'fork_client.py'} {self._passed[0]}"
        (self.folder / "rackloop").write_text(f'#!/bin/sh\n[ "$1" = test ] && exit\nexec {command} "$@"\n')

    def run(self, line: str) -> tuple[int, str]:
        """Run a line of the shell; its exit status, and all that it said."""
        ended = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self._environment,
            pass_fds=self._passed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_MOST_S,
            check=False,
        )
        return ended.returncode, ended.stdout

    def close(self) -> None:
        """Take down the labs that the page left up."""
        for lab in sorted((self._home / ".local" / "state" / "rackloop" / "labs").glob("*")):
            self.run(f"./rackloop lab down {lab.name}")
        self._forks.close()


def find_files(document: Document) -> Iterator[Region]:
    """The blocks of a page that are files by ``<!--- file: NAME -->`` before them: each is written to the checkout."""
    for found in _FILE.finditer(document.text):
        yield Region(found.start(), found.start("fence"), (found["name"], found["text"]), _write)


def _write(example: Example) -> None:
    name, text = example.parsed
    path = _checkout(example).folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _checkout(example: Example) -> Checkout:
    """The checkout of the example's page."""
    if "_checkout" not in example.namespace:
        is_forked = example.document.text.count("$ ./rackloop ") >= _MANY
        example.namespace["_checkout"] = checkout = Checkout(Path.cwd(), is_forked=is_forked)
        example.namespace["_page"].callback(checkout.close)
    found: Checkout = example.namespace["_checkout"]
    return found


def find_commands(document: Document) -> Iterator[Region]:
    """The console blocks of a guide, of a tutorial and of the README: those are run."""
    if {"how-to", "tutorials", "README.md"}.intersection(Path(document.path).parts):
        yield from _BLOCKS(document)


def evaluate(example: Example) -> str | None:
    """Run the commands of a block in the page's checkout; why it is not as the page says, if it is not."""
    checkout = _checkout(example)
    # A reader takes the id that the command before gave, not the one that the page shows.
    ids: dict[str, str] = {}
    for command in commands_of(example.parsed):
        line = re.sub(_LEASE, lambda found: ids.get(found[0], found[0]), command.run_as())
        status, said = checkout.run(line)
        if command.is_whole and command.shown.strip():
            leases = command.leases(said)
            if leases is None:
                return f"$ {line}\nshown:\n{command.shown}\nsaid, with exit status {status}:\n{said}"
            ids.update(leases)
        elif status and not (status == _INCONCLUSIVE and "rackloop run " in line):
            return f"$ {line}\nexit status {status}; it said:\n{said}"
    return None


def _collapsed(text: str) -> str:
    """The words of a text, without the rules of its tables."""
    return " ".join(word for word in text.split() if word.strip("─"))


def _pattern(shown: str) -> str:
    """A regular expression of the output that is shown."""
    varies = re.compile("|".join(f"({pattern})" for pattern, _ in _VARIES))
    wanted, end = "", 0
    text = _collapsed(shown)
    for found in varies.finditer(text):
        wanted += re.escape(text[end : found.start()])
        wanted += _VARIES[(found.lastindex or 1) - 1][1]
        end = found.end()
    return wanted + re.escape(text[end:])


_BLOCKS = CodeBlockParser("console", evaluate)

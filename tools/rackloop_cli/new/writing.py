"""`rackloop new`: files with a test that runs as it is."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path

from rackloop.data import data_path
from rackloop.errors import EXIT_PASS, BadInput
from rackloop_cli.shared.output import write_whole

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def write_test(wanted: str, *, shown: bool = False) -> int:
    """Write the test ``wanted``, or print it; returns the exit status. Raises BadInput where it cannot be written."""
    name = wanted.rpartition("/")[2].removesuffix(".py").removeprefix("test_")
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"a test is named in lower case with underscores, such as pull_cable or my_tests/pull_cable; got {wanted}"
        )
    text = _text("_example.py", name)
    if shown:
        print(text, end="")
        return EXIT_PASS
    path = Path(wanted).with_name(f"test_{name}.py")
    _write(path, text)
    print(f"Wrote {path}. Run it on the simulated rack:\n  rackloop run {shlex.quote(str(path))}")
    return EXIT_PASS


def write_testplan(wanted: str, testplans: Path) -> int:
    """Write the test plan ``wanted`` below a folder; returns the exit status. Raises BadInput where it cannot be."""
    subject, _, name = wanted.partition("/")
    if not (_NAME.fullmatch(subject) and _NAME.fullmatch(name)):
        raise BadInput(
            f"a test plan is named SUBJECT/NAME in lower case with underscores, such as fabric/warm_swap; got {wanted}"
        )
    path = testplans / subject / f"test_{name}.py"
    _write(path, _text("_testplan.py", name))
    option = (
        "" if testplans.resolve() == data_path("testplans").resolve() else f" --testplans {shlex.quote(str(testplans))}"
    )
    print(f"""\
Wrote {path}. Complete the declaration at its top, then select it in a plan, a YAML file with what follows, and run that
by `rackloop run PLAN{option}`:
plan: {name}
purpose: what the plan is for, as a sentence
tests:
  - test: {wanted}
    requires: [fabric.remap]
    limits:
      - {{measure: {name}.wrong, max: 0}}""")
    return EXIT_PASS


def _text(example: str, name: str) -> str:
    text = (files("rackloop_cli.new") / example).read_text(encoding="utf-8")
    title = name.replace("_", " ").capitalize()
    return text.replace("Example:", f"{title}:").replace("example", name)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text, replacing=False)
    except FileExistsError:
        raise BadInput(f"{path} exists already and stays as it is: choose another name") from None
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; choose another folder") from error

"""`rackloop new test`: a file with a test that runs as it is."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from rackloop.errors import EXIT_PASS, BadInput

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def run(wanted: str, *, shown: bool = False) -> int:
    """Write the test ``wanted``, or print it; returns the exit status. Raises BadInput where it cannot be written."""
    name = wanted.rpartition("/")[2].removesuffix(".py").removeprefix("test_")
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"a test is named in lower case with underscores, such as pull_cable or my_tests/pull_cable; got {wanted}"
        )
    text = _text(name)
    if shown:
        print(text, end="")
        return EXIT_PASS
    path = Path(wanted).with_name(f"test_{name}.py")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadInput(f"{path} exists already and stays as it is: choose another name") from None
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; choose another folder") from error
    print(f"Wrote {path}. Run it on the simulated rack:\n  rackloop run {path}")
    return EXIT_PASS


def _text(name: str) -> str:
    example = (files("rackloop_cli.new") / "_example.py").read_text(encoding="utf-8")
    title = name.replace("_", " ").capitalize()
    return example.replace("Example:", f"{title}:").replace("example", name)

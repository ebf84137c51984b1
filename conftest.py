"""Settings of all tests, and the examples of the documents. The plugin comes by its entry point."""

import sys
from contextlib import ExitStack, chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

# A package of its own, with tests of its own: it is built and installed first.
collect_ignore = ["tests/own_driver"]

# What runs the examples of the documents is in the package of the tests, which `pytest` by itself does not find here.
sys.path.append(str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest files first."""
    from tests.slow_files import SLOW_FILES

    place = {str(Path(__file__).parent / name): number for number, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: place.get(str(item.path), len(place)))


def _enter_page(namespace: dict[str, Any]) -> None:
    """Begin a page in a folder of its own. What its hidden blocks enter into ``_page`` ends with it."""
    namespace["_page"] = stack = ExitStack()
    stack.enter_context(chdir(stack.enter_context(TemporaryDirectory(prefix="rl"))))


def _leave_page(namespace: dict[str, Any]) -> None:
    namespace["_page"].close()


try:
    from hypothesis import settings
    from sybil import Sybil
    from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

    from tests.console_examples import find_commands, find_files
except ModuleNotFoundError as error:
    # Who runs `pytest my_tests` in a checkout need not have what only the tests of the project need.
    if error.name not in {"hypothesis", "sybil"}:
        raise
else:
    # The same examples on every machine and every day: a test passes for certain or fails for certain.
    settings.register_profile("rackloop", derandomize=True, deadline=None, database=None)
    settings.load_profile("rackloop")

    pytest_collect_file = Sybil(
        parsers=[PythonCodeBlockParser(), find_commands, find_files, SkipParser()],
        patterns=["docs/**/*.md", "README.md"],
        setup=_enter_page,
        teardown=_leave_page,
    ).pytest()

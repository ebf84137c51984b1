"""The Allure 3 command line: HTML reports from results, with the lab's history."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackloop.errors import BadInput, ToolError
from rackloop_reports._files import utf8, write_atomically, writing
from rackloop_reports.allure_process import AllureStart
from rackloop_reports.allure_results import CATEGORIES, TEST_LABEL

INDEX = "index.html"
_MADE_HERE = ".rackloop-report"
_HISTORY_LIMIT = 100
# A start of Allure 3.18 on Node.js 20 takes 1 to 5 s, and about one in fifty, on a busy machine, never ends: it stops
# while reading its own archive of static files. Another start does not. The last limit is for slow machines. Each is
# counted from when the results are complete.
LIMITS_S = (15.0, 30.0, 120.0)
# Allure 3 has no option that leaves these two scripts out.
_ANALYTICS = re.compile(
    rb"<script async src=\"https://www\.googletagmanager\.com/[^>]*></script>"
    rb"|<script>\s*window\.dataLayer\b.*?</script>",
    re.DOTALL,
)


def generate(
    allure: AllureStart,
    report_dir: Path,
    history: Path | None,
    *,
    title: str,
    started_ms: int,
    limits_s: Sequence[float] = LIMITS_S,
    first_screen: Callable[[Mapping[str, str]], str] | None = None,
) -> Path:
    """Make in ``report_dir`` the HTML report of the results ``allure`` was started for; return its ``index.html``.

    The directory is replaced whole, and only if an earlier call made it: BadInput otherwise. With ``history``, a
    JSON-lines file, trends show the runs that stand in it from before ``started_ms``, and the run is put in its
    place there, once, however often it is reported. ``first_screen`` is given the address of each test's page by its
    test case, and makes what stands before Allure's own pages. Allure is started once for each of
    ``limits_s``, until one start ends in time. Raises ToolError where Allure fails; needs no network.
    """
    with writing(report_dir):
        if report_dir.exists() and any(report_dir.iterdir()) and not (report_dir / _MADE_HERE).exists():
            raise BadInput(f"{report_dir} holds files that no report put there; move them away and report again")
        with tempfile.TemporaryDirectory(dir=report_dir.parent, prefix=".report.") as made_in:
            made = Path(made_in, "report")
            with _locked(history):
                pages = _generate_with_history(allure, made, history, title, started_ms, limits_s)
            _finish(made / INDEX, first_screen(pages) if first_screen is not None else "")
            (made / _MADE_HERE).touch()
            if report_dir.exists():
                report_dir.rename(Path(made_in, "old"))
            made.rename(report_dir)
    return report_dir / INDEX


def _generate_with_history(
    allure: AllureStart,
    made: Path,
    history: Path | None,
    title: str,
    started_ms: int,
    limits_s: Sequence[float],
) -> dict[str, str]:
    """Let Allure see and append to a copy that ends before this run, then put its entry where it belongs.

    Returns the address of each test's page, by its test case.
    """
    entries = _read_history(history, title) if history else []
    copy = made.with_name("history.jsonl")
    for limit_s in limits_s:
        shutil.rmtree(made, ignore_errors=True)
        copy.write_bytes(utf8("".join(_line(entry) for entry in entries if entry["timestamp"] <= started_ms)))
        if allure.generate(_config(title, made, copy), limit_s):
            break
    else:
        raise ToolError(f"Allure made no report in {limits_s[-1]:g} s; look at the load of this machine, try again")
    own = json.loads(_lines(copy)[-1]) | {"timestamp": started_ms}
    if history:
        kept = sorted([*entries, own], key=lambda entry: int(entry["timestamp"]))[-_HISTORY_LIMIT:]
        write_atomically(history, "".join(map(_line, kept)))
    # Allure's key of a test is that of its case, a full stop, and a digest of its parameters.
    return {key.partition(".")[0]: str(found["id"]) for key, found in own.get("testResults", {}).items()}


def _config(title: str, output: Path, history: Path) -> Mapping[str, Any]:
    return {
        "name": title,
        "output": str(output),
        "historyPath": str(history),
        "appendHistory": True,
        "hideLabels": [TEST_LABEL],
        "categories": {"rules": list(CATEGORIES)},
        "plugins": {
            "awesome": {
                "options": {
                    "reportName": title,
                    "reportLanguage": "en",
                    "singleFile": True,
                    "groupBy": ["epic"],
                    "stepTreeExpansion": "expand_failed_only",
                }
            },
            "agent": {"enabled": False},
        },
    }


def _finish(index: Path, screen: str) -> None:
    """Take from a page the scripts that report each view of it to Google, and put ``screen`` at the end of its body.

    A lab's results are confidential. At the end of the body all that the screen hides is there already.
    """
    # A page has all attachments within it: tens of megabytes that need not be decoded.
    page = _ANALYTICS.sub(b"", index.read_bytes())
    head, body, tail = page.rpartition(b"</body>")
    index.write_bytes(b"".join((head, utf8(screen), body, tail)) if body else page)


@contextmanager
def _locked(history: Path | None) -> Iterator[None]:
    """Two runs of a lab that end together take turns at its history."""
    if history is None:
        yield
        return
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.with_name(f"{history.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_history(history: Path, title: str) -> list[dict[str, Any]]:
    """The runs in ``history`` but the one called ``title``; lines that are no entry are left out."""
    entries = []
    for line in _lines(history) if history.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("timestamp"), int) and entry.get("name") != title:
            entries.append(entry)
    return entries


def _lines(history: Path) -> list[str]:
    """The lines of a history. A message in one may hold what Python takes for the end of a line besides."""
    return [line for line in history.read_text(encoding="utf-8", errors="replace").split("\n") if line]


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"

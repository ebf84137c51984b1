"""Allure results from events: those of allure-pytest are completed, missing ones are created.

Everything made here has a name beginning with ``rackloop-`` that depends on the run and the test alone, and is
removed before it is made again: completing the same results twice gives the same results.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop.errors import BadInput
from rackloop.measurement import Verdict
from rackloop.record import Exchange
from rackloop_reports._files import utf8, write_atomically, writing
from rackloop_reports.attachments import description_html, exchanges_text, remaps_csv, verdict_text
from rackloop_reports.drives_used import drives_used
from rackloop_reports.fio_archive import fio_archive
from rackloop_reports.measurement_table import measurements_csv
from rackloop_reports.metrics import metrics_of
from rackloop_reports.plot_selection import Plot, RunPlots
from rackloop_reports.record import KILLED, RunRecord, TestRecord
from rackloop_reports.steps import is_ours, steps_of
from rackloop_reports.titles import place_of, title_of, words
from rackloop_reports.traces_of_errors import trace_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEST_LABEL = "rackloop_test"
_LONGEST_SLUG = 80
_CUT_SHORT = ".cut-short"
_OURS = "rackloop-"
_STATUS = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.UNKNOWN: "unknown",
    Verdict.BLOCKED: "broken",
    Verdict.SKIPPED: "skipped",
}
_TREE = ("epic", "feature", "story")
_OF_PYTEST = frozenset({"host", "thread", "framework", "language", "package", "parentSuite", "suite", "subSuite"})
# What a reader looks for first: whose fault it is. The message of a result begins with these words.
CATEGORIES: tuple[Mapping[str, Any], ...] = (
    {"name": "The product failed", "messageRegex": r"^fail, cause product:[\s\S]*"},
    {"name": "The simulated product failed", "messageRegex": r"^fail, cause simulated product:[\s\S]*"},
    {"name": "The test is at fault", "messageRegex": r"^(fail|unknown), cause test:[\s\S]*"},
    {"name": "The harness is at fault", "messageRegex": r"^(fail|unknown), cause harness:[\s\S]*"},
    {"name": "The lab is at fault", "messageRegex": r"^(fail|unknown), cause lab:[\s\S]*"},
    {"name": "Blocked by something broken", "messageRegex": r"^blocked[\s\S]*"},
    {"name": "Unknown", "messageRegex": r"^unknown[\s\S]*"},
)

Json = dict[str, Any]


def case_id_of(run: RunRecord, test: str) -> str:
    """The test's id in Allure, the same in every run of its plan."""
    return _digest(run.started.plan, test)


def complete(run: RunRecord, results: Path, run_dir: Path) -> list[Plot]:
    """Bring the Allure results in ``results`` up to what the events of ``run`` say; files lie below ``run_dir``.

    Returns the plots of the whole run.

    Raises BadInput where a result there is not readable or the directory cannot be written.
    """
    with writing(results):
        results.mkdir(exist_ok=True)
        for old in results.glob(f"{_OURS}*"):
            old.unlink()
    written = _by_test(results, was_killed=run.finished is None)
    plots = RunPlots(run, _undrawn)
    plots.draw_all()
    for test in run.tests:
        _complete_test(test, run, plots.plots_of([test]), results, run_dir, written.get(test.id))
    of_run = plots.plots_of(run.tests)
    _write_json(results / f"{_OURS}globals.json", _globals(run, of_run, results))
    _write_json(results / f"{_OURS}perf.json", metrics_of(run))
    _write_json(results / "categories.json", list(CATEGORIES))
    write_atomically(results / "environment.properties", _environment(run))
    return of_run


def _by_test(results: Path, *, was_killed: bool) -> dict[str, Path]:
    """The results that carry a test's label, by test; one that a run was killed in writing is put aside."""
    found: dict[str, Path] = {}
    for path in sorted(results.glob("*-result.json")):
        try:
            result = _read_json(path)
        except BadInput:
            if not was_killed:
                raise
            # Where the power went, one that was written before may be empty.
            with writing(results):
                path.rename(path.with_suffix(_CUT_SHORT))
            continue
        found |= {str(label["value"]): path for label in result.get("labels", ()) if label.get("name") == TEST_LABEL}
    return found


def _complete_test(
    test: TestRecord, run: RunRecord, plots: Sequence[Plot], results: Path, run_dir: Path, written: Path | None
) -> None:
    path = written or results / f"{_OURS}{_digest(run.title, test.id)}-result.json"
    result = _read_json(path) if written else _made_result(test, run)
    ours = list(_attachments(test, run, plots, results, run_dir))
    theirs = [
        attachment
        for attachment in result.get("attachments", ())
        if not str(attachment.get("source", "")).startswith(_OURS)
    ]
    labels = [label for label in result.get("labels", ()) if not _is_own_label(label) and not _is_of_pytest(label)]
    labels = [_spelt(label) for label in labels]
    labels += [{"name": "rackloop_verdict", "value": str(test.verdict)}]
    if test.cause:
        labels.append({"name": "rackloop_cause", "value": str(test.cause)})
    if run.is_simulated:
        labels.append({"name": "tag", "value": "simulated"})
    result |= {
        # Known by its identity in the plan, so that its history survives a change of file or parameters.
        "historyId": case_id_of(run, test.id),
        "testCaseId": case_id_of(run, test.id),
        "name": title_of(test.id, about_of(test)),
        "status": _STATUS[test.verdict],
        "descriptionHtml": description_html(test, run, plots[0] if plots else None, run_dir),
        "labels": labels,
        "attachments": theirs + ours,
        "steps": [step for step in result.get("steps", ()) if not is_ours(step)] + steps_of(test, run),
    }
    message = f"{verdict_text(test, run)}: {test.reason}"
    details = result.get("statusDetails") or {}
    trace = trace_beside(test, str(details.get("trace") or ""))
    result["statusDetails"] = {"message": message, **({"trace": trace} if trace else {})} if test.reason else {}
    _write_json(path, result)


def _made_result(test: TestRecord, run: RunRecord) -> Json:
    """A result for a test that allure-pytest wrote none of."""
    folder = place_of(test.id)[0]
    tree = [{"name": key, "value": words(test.labels[key])} for key in ("epic", "feature") if key in test.labels]
    return {
        "uuid": _digest(run.title, test.id),
        "fullName": test.id,
        "titlePath": [run.started.plan, *folder.split("/")] if folder else [run.started.plan],
        "stage": "finished",
        "start": run.wall_ms(test.started_ns),
        "stop": run.wall_ms(test.ended_ns),
        "labels": [{"name": TEST_LABEL, "value": test.id}, *tree],
        "parameters": [{"name": key, "value": value} for key, value in test.labels.items() if key not in _TREE],
    }


def _is_own_label(label: Mapping[str, Any]) -> bool:
    return label.get("name") in {"rackloop_verdict", "rackloop_cause"} or label == {"name": "tag", "value": "simulated"}


def _is_of_pytest(label: Mapping[str, Any]) -> bool:
    """True for what pytest says of its own process and folders."""
    return label.get("name") in _OF_PYTEST


def _spelt(label: Mapping[str, Any]) -> Mapping[str, Any]:
    """A label of the tree of tests as people write it."""
    return {**label, "value": words(str(label.get("value", "")))} if label.get("name") in _TREE[:2] else label


def about_of(test: TestRecord) -> str:
    """``S/N 00123456`` where a test was about one drive that told its serial number; else nothing."""
    serials = {seen.serial for seen in test.drives}
    return f"S/N {serials.pop()}" if len(serials) == 1 else ""


def _attachments(
    test: TestRecord, run: RunRecord, plots: Iterable[Plot], results: Path, run_dir: Path
) -> Iterator[Json]:
    key = _digest(run.title, test.id)[:12]
    for plot in plots:
        yield _attach_plot(plot, key, results)
    if test.remaps:
        yield _attach("Remaps", ".csv", "text/csv", utf8(remaps_csv(test.remaps, run)), key, results)
    if test.exchanges:
        yield _attach_exchanges("Switch exchanges", test.exchanges, run, key, results)
    if (packed := fio_archive(run_dir, test.id)) is not None:
        yield _attach("fio job files and reports", ".zip", "application/zip", packed, key, results)
    for number, attached in enumerate(test.attachments):
        source = (run_dir / attached.path).resolve()
        # A path of an edited stream must not pull files from elsewhere into a report that is passed around.
        if not source.is_relative_to(run_dir.resolve()) or not source.is_file():
            continue
        name = f"{_OURS}{key}-{number}-attachment{source.suffix}"
        with writing(results):
            shutil.copyfile(source, results / name)
        yield {"name": attached.name, "source": name, "type": attached.media_type}


def _attach_plot(plot: Plot, key: str, results: Path) -> Json:
    return _attach(plot.name, f".{plot.kind}", plot.media_type, plot.data, key, results)


def _attach_exchanges(name: str, exchanges: Sequence[Exchange], run: RunRecord, key: str, results: Path) -> Json:
    return _attach(name, ".txt", "text/plain", utf8(exchanges_text(exchanges, run)), key, results)


def _attach(name: str, suffix: str, media_type: str, data: bytes, key: str, results: Path) -> Json:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG]
    # Names that differ in what a slug has none of are those of two files.
    source = f"{_OURS}{key}-{slug}-{_digest(name)[:8]}-attachment{suffix}"
    write_atomically(results / source, data)
    return {"name": name, "source": source, "type": media_type}


def _globals(run: RunRecord, plots: Iterable[Plot], results: Path) -> Json:
    stamp = run.wall_ms(run.ended_ns)
    attachments = [_attach_plot(plot, "run", results) for plot in plots]
    if run.exchanges:
        attachments.append(_attach_exchanges("Switch exchanges outside tests", run.exchanges, run, "run", results))
    csv = utf8(measurements_csv(run))
    attachments.append(_attach("All measurements", ".csv", "text/csv", csv, "run", results))
    errors = [] if run.finished else [{"message": KILLED, "timestamp": stamp}]
    return {"attachments": [{**entry, "timestamp": stamp} for entry in attachments], "errors": errors}


def environment_of(run: RunRecord) -> dict[str, str]:
    """The environment of a run by names for people; of its drives only those under test."""
    facts = {
        **run.started.environment,
        "Plan": run.started.plan,
        "Lab": run.lab,
        "Results": "simulated" if run.is_simulated else "measured",
        "Seed": str(run.started.seed),
        "Started": run.started.wall,
        **{f"Version of {name}": version for name, version in run.started.versions.items()},
        **run.environment,
    }
    for dut in drives_used(run):
        parts = (dut.get("model"), dut.get("serial"), dut.get("firmware"), dut.get("protocol"))
        facts[f"Drive {dut.get('id')}"] = ", ".join(str(part) for part in parts if part)
    if run.healed:
        facts["Healed before the first test"] = "; ".join(run.healed)
    return facts | {f"Not used {out.gear}": out.reason for out in run.parts_out}


def _environment(run: RunRecord) -> str:
    """Allure's environment block, a Java properties file."""
    facts = environment_of(run)
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in facts.items())


def _escaped(text: str) -> str:
    return re.sub(r"[\\=:#! ]", r"\\\g<0>", " ".join(text.split()))


def _undrawn(error: Exception) -> Figure:
    """The reason that a plot cannot be drawn, in its place: the rest of a report is not to be lost for it."""
    from rackloop_reports.plots import undrawn

    return undrawn(error)


def _digest(*parts: str) -> str:
    return hashlib.sha256(utf8("\0".join(parts))).hexdigest()[:32]


def _read_json(path: Path) -> Json:
    try:
        found: Json = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is not an Allure result ({error}); remove it and report again") from error
    return found


def _write_json(path: Path, content: object) -> None:
    write_atomically(path, json.dumps(content, ensure_ascii=False))

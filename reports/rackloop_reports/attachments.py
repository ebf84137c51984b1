"""Attachments of a test: its description, measurements, remaps and switch exchanges."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

from rackloop.record import Exchange, RemapSeen
from rackloop_reports.drive_card import HEALTH, health_html, identity_card_html, snapshots_of
from rackloop_reports.formatting import cause_text
from rackloop_reports.health_page import health_compared_html
from rackloop_reports.measurement_table import measurements_html
from rackloop_reports.plot_selection import Plot
from rackloop_reports.reasons import reasons
from rackloop_reports.record import RunRecord, TestRecord
from rackloop_reports.sentences import verdict_sentence

# Allure's own style keeps a cell on one line, and cuts off the columns that have no room then.
_STYLE = (
    "<style>td:first-child,td:last-child{white-space:normal;overflow-wrap:break-word;min-width:8em}"
    # A phone shows what was measured with its value and its limit.
    "@media(max-width:480px){th,td{padding:4px 5px;font-size:12px}"
    ".m td:first-child{min-width:6.5em;overflow-wrap:anywhere}.m td:last-child{min-width:4em}"
    ".m :is(th,td):is(:nth-child(2),:nth-child(5)){display:none}}"
    "details>summary{cursor:pointer;padding:4px 0}</style>"
)
# The last ones are those of a server's kernel and what it mounts: behind the others, so that columns keep their places.
_ON_ANY_RACK = ("commanded", "received", "executed", "phy_up", "online", "answered", "verified")
STAGES = (*_ON_ANY_RACK, "link", "device", "named", "mounted")


def description_html(test: TestRecord, run: RunRecord, plot: Plot | None, run_dir: Path | None = None) -> str:
    """The overview of a test: the reason for its verdict, its purpose, drive, measurements and first plot.

    ``run_dir`` has the snapshots of health, which say how the drive is.
    """
    verdict, colon, limits = verdict_sentence(test, is_simulated=run.is_simulated).partition(":")
    parts = [f"<p><b>{escape(verdict + colon)}</b>{escape(limits)}</p>{_STYLE}"]
    # Allure shows the message of a result that failed, and none of one that is unknown or skipped.
    if found := reasons(test.verdict, test.cause, test.reason, test.measurements):
        parts.append(f"<ul>{''.join(f'<li>{escape(reason.text)}</li>' for reason in found)}</ul>")
    parts += [f"<p>This test will {escape(_lower_first(test.purpose))}.</p>"] if test.purpose else []
    snapshots = {seen.drive: snapshots_of(test, seen.drive, run_dir) for seen in test.drives}
    parts += [identity_card_html(seen, snapshots[seen.drive][1]) for seen in test.drives]
    before, after = next(iter(snapshots.values())) if len(snapshots) == 1 else ({}, {})
    if health := health_html(test.measurements, before, after):
        parts.append(health)
    if plot:
        data = base64.b64encode(plot.data).decode("ascii")
        parts.append(
            f'<img alt="{escape(plot.name)}" style="max-width:100%" src="data:{plot.media_type};base64,{data}">'
        )
    if listed := [measured for measured in test.measurements if measured.limits or measured.name not in HEALTH]:
        parts.append(measurements_html(listed, is_simulated=run.is_simulated))
    if test.health is not None:
        parts.append(health_compared_html(test.health))
    if test.load is not None:
        parts.append(f"<p>The machine of the harness meanwhile: {escape(str(test.load))}.</p>")
    return "\n".join(parts)


def verdict_text(test: TestRecord, run: RunRecord) -> str:
    """``unknown, cause harness``."""
    cause = f", cause {cause_text(test.cause, is_simulated=run.is_simulated)}" if test.cause else ""
    return f"{test.verdict}{cause}"


def remaps_csv(remaps: Sequence[RemapSeen], run: RunRecord) -> str:
    """A row for every remap: nanoseconds since the run started for each stage, empty where it was not observed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    stage_heads = [head for stage in STAGES for head in (f"{stage}_ns", f"{stage}_error_ns", f"{stage}_clock")]
    writer.writerow(["simulated", "stack", "server", "port", "drive", "generation", *stage_heads])
    for remap in remaps:
        seen = {stage.name: stage for stage in remap.stages}
        cells: list[object] = []
        for name in STAGES:
            stage = seen.get(name)
            cells += [stage.at_ns - run.started_ns, stage.error_ns, stage.clock] if stage else ["", "", ""]
        simulated = "yes" if run.is_simulated else "no"
        writer.writerow([simulated, remap.stack, remap.server, remap.port, remap.drive, remap.generation, *cells])
    return text.getvalue()


def exchanges_text(exchanges: Sequence[Exchange], run: RunRecord) -> str:
    """The commands to the switch and its answers, a pair of lines for each exchange with its time."""
    lines = [f"# seconds since the run started, microseconds it took, endpoint; > sent, < received ({run.lab})"]
    for exchange in exchanges:
        at_s = (exchange.started_ns - run.started_ns) / 1e9
        took_us = (exchange.ended_ns - exchange.started_ns) / 1e3
        lines.append(f"{at_s:12.6f} {took_us:9.0f} {exchange.endpoint}")
        lines.append(f"  > {exchange.sent.rstrip()}")
        if exchange.received:
            lines.append(f"  < {exchange.received.rstrip()}")
    return "\n".join(lines) + "\n"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")

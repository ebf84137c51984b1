"""The first screen of a report: the verdict in a sentence, the drives under test, every test in a line, the plots.

It stands in the same file as Allure's pages, before them, and prints as a document of its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from rackloop.measurement import Verdict
from rackloop.names import in_one_line
from rackloop.units import counted, format_quantity
from rackloop_reports._files import utf8
from rackloop_reports.allure_results import about_of, case_id_of, environment_of
from rackloop_reports.attachments import verdict_text
from rackloop_reports.drives_used import drives_used
from rackloop_reports.measurement_table import measurements_csv
from rackloop_reports.plot_selection import Plot
from rackloop_reports.profile_verdicts import profile_verdicts
from rackloop_reports.reasons import reasons
from rackloop_reports.record import RunRecord, TestRecord
from rackloop_reports.sentences import run_sentence, verdict_sentence
from rackloop_reports.titles import title_of

MOST_PLOTS = 12
MOST_TESTS = 200
#: The reasons of a test that stand on the first screen; its page has all.
MOST_REASONS = 5
_LONGEST_REASON = 400
#: The drives that stand on the first screen; the others are folded.
MOST_DRIVES = 6
_STYLE = """
#rl{--rl-bg:#fff;--rl-ink:#1d2430;--rl-dim:#5b6675;--rl-line:#d7dde5;--rl-band:#f3f6f9;
font:15px/1.5 system-ui,sans-serif;color:var(--rl-ink);background:var(--rl-bg);min-height:100vh;box-sizing:border-box}
[data-theme=dark] #rl{--rl-bg:#1b2129;--rl-ink:#eef3f8;--rl-dim:#a6b1bf;--rl-line:#3a4451;--rl-band:#232b35}
#rl[hidden]{display:none}
#rl main{max-width:1120px;margin:0 auto;padding:20px 20px 60px}
#rl h1,#rl h2,#rl th{font-weight:700}#rl h1{font-size:24px;line-height:1.3;margin:8px 0 4px;padding-left:12px;
border-left:8px solid var(--rl-mark)}
#rl h2{font-size:17px;margin:28px 0 8px}
#rl p{margin:4px 0}#rl ul{list-style:disc;padding-left:20px;margin:8px 0}#rl .dim{color:var(--rl-dim)}
#rl a{color:inherit}
#rl nav{display:flex;gap:8px 20px;flex-wrap:wrap;margin:12px 0}
#rl .wide{overflow-x:auto}
#rl table{border-collapse:collapse;width:100%}
#rl th,#rl td{text-align:left;vertical-align:top;padding:5px 12px 5px 0;border-bottom:1px solid var(--rl-line)}
#rl td{overflow-wrap:break-word}#rl .tests td:first-child{min-width:11em}#rl .tests td:last-child{white-space:nowrap}
#rl .chip{display:inline-block;min-width:5.2em;font-weight:600}
#rl img{max-width:100%;height:auto;background:#fff;border-radius:6px;margin:6px 0 18px;display:block}
#rl summary{cursor:pointer}
#rl-back{position:fixed;left:12px;bottom:12px;z-index:50;font:14px system-ui,sans-serif;padding:6px 12px;
border-radius:8px;border:1px solid #7a8796;background:#fff;color:#1d2430;cursor:pointer}
[data-theme=dark] #rl-back{background:#232b35;color:#eef3f8}
#rl-back[hidden]{display:none}
@media (max-width:640px){#rl-back{bottom:84px}/* Allure's own rows would break names after each letter. */
[data-testid^=test-result-][data-testid$=-header]{flex-wrap:wrap}
[data-testid^=test-result-][data-testid$=-header]>.paragraphs-text-m{flex:1 1 70%;word-break:normal;
overflow-wrap:anywhere}
#rl main{padding:12px}#rl h1{font-size:19px}#rl img{max-width:none;width:760px}
#rl .tests,#rl .tests tbody,#rl .tests tr,#rl .tests td{display:block;border:0;padding:0}
#rl .tests tr{border-bottom:1px solid var(--rl-line);padding:8px 0}#rl .tests tr:first-child{display:none}}
@media print{#app,#rl-back,#allure-app-loader,#rl nav{display:none!important}#rl{--rl-bg:#fff;--rl-ink:#000}
#rl img{break-inside:avoid}}
"""
# Allure shows its list of tests where an address has no fragment, and a test where it has one.
_SCRIPT = """
(function(){var rl=document.getElementById('rl'),back=document.getElementById('rl-back'),home=true;
function show(){var on=home&&location.hash.replace(/^#\\/?/,'')==='';rl.hidden=!on;back.hidden=on;
var app=document.getElementById('app');if(app)app.style.display=on?'none':'';
if(on)window.scrollTo(0,0);else window.dispatchEvent(new Event('resize'));}
document.getElementById('rl-tests').onclick=function(e){e.preventDefault();home=false;show();};
back.onclick=function(){home=true;location.hash='';show();};
window.addEventListener('hashchange',show);show();})();
"""
_COLORS = {
    Verdict.PASS: "#009E73",
    Verdict.FAIL: "#D55E00",
    Verdict.UNKNOWN: "#CC79A7",
    Verdict.BLOCKED: "#E69F00",
    Verdict.SKIPPED: "#8A94A0",
}


def overview_html(run: RunRecord, plots: Sequence[Plot], pages: Mapping[str, str]) -> str:
    """The first screen of the report of ``run``; ``pages`` has the fragment of a test's page by its test case.

    Allure's key of a test case is the MD5 of its id.
    """
    parts = [
        _head(run),
        _not_passed(run, pages),
        _drives(run),
        _tests(run, pages),
        _profiles(run),
        _plots(plots),
        _environment(run),
    ]
    body = "\n".join(part for part in parts if part)
    mark = _COLORS[run.verdict]
    return (
        f'<style>{_STYLE}</style><div id="rl" style="--rl-mark:{mark}"><main>{body}</main></div>'
        f'<button id="rl-back" hidden>Overview</button><script>{_SCRIPT}</script>'
    )


def _head(run: RunRecord) -> str:
    started = run.started
    seconds = (run.ended_ns - run.started_ns) / 1e9
    facts = [
        f"Plan {started.plan}",
        f"lab {run.lab}",
        f"{run.wall(run.started_ns):%Y-%m-%d %H:%M:%S} UTC",
        _duration(seconds),
        f"seed {started.seed}",
    ]
    if operator := started.environment.get("operator"):
        facts.insert(2, f"by {operator}")
    data = base64.b64encode(utf8(measurements_csv(run))).decode("ascii")
    simulated = "<p><em>All values are simulated.</em></p>" if run.is_simulated else ""
    return (
        f"<h1>{escape(run_sentence(run))}</h1><p>{escape(started.purpose)}</p>"
        f'<p class="dim">{escape(", ".join(facts))}</p>{simulated}'
        '<nav><a href="#" id="rl-tests">All tests in detail</a>'
        f'<a download="measurements.csv" href="data:text/csv;base64,{data}">All measurements (CSV)</a></nav>'
    )


def _not_passed(run: RunRecord, pages: Mapping[str, str]) -> str:
    """The reasons of each test that is not a pass."""
    tests = [test for test in run.tests if test.verdict is not Verdict.PASS]
    more = len(tests) - MOST_TESTS
    rest = f"<li>and {more} more: see all tests in detail</li>" if more > 0 else ""
    return f"<ul>{''.join(_reasons(test, run, pages) for test in tests[:MOST_TESTS])}{rest}</ul>" if tests else ""


def _reasons(test: TestRecord, run: RunRecord, pages: Mapping[str, str]) -> str:
    verdict = f"{_link(test, run, pages)}: <b>{escape(verdict_text(test, run))}</b>"
    found = reasons(test.verdict, test.cause, test.reason, test.measurements)
    texts = [in_one_line(reason.text, _LONGEST_REASON) for reason in found]
    if len(texts) < 2:
        return f"<li>{verdict}{''.join(f', {escape(text)}' for text in texts)}</li>"
    more = len(texts) - MOST_REASONS
    shown = texts[:MOST_REASONS] + ([f"and {more} more: see the test's page"] if more > 0 else [])
    return f"<li>{verdict}<ul>{''.join(f'<li>{escape(text)}</li>' for text in shown)}</ul></li>"


def _drives(run: RunRecord) -> str:
    """The drives under test alone, not all of the rack."""
    drives = drives_used(run)
    if not drives:
        return ""
    rows = [
        [
            str(drive.get("id")),
            str(drive.get("serial") or ""),
            str(drive.get("firmware") or ""),
            str(drive.get("model") or ""),
            str(drive.get("protocol") or ""),
            format_quantity(float(drive["size_bytes"]), "B") if drive.get("size_bytes") else "",
            str(drive.get("place") or (drive.get("identifiers") or {}).get("slot") or ""),
        ]
        for drive in drives
    ]
    heads = ["Drive", "S/N", "Firmware", "Model", "Protocol", "Size", "Place"]
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    shown, rest = rows[:MOST_DRIVES], rows[MOST_DRIVES:]
    tables = [
        _table([heads[place] for place in kept], ([escape(row[place]) for place in kept] for row in some))
        for some in (shown, rest)
    ]
    fold = f"<details><summary>{counted(len(rest), 'drive')} more</summary>{tables[1]}</details>" if rest else ""
    return f"<h2>Drives under test</h2>{tables[0]}{fold}"


def _tests(run: RunRecord, pages: Mapping[str, str]) -> str:
    rows = [
        [
            _link(test, run, pages),
            f'<span class="chip" style="color:{_COLORS[test.verdict]}">{test.verdict.upper()}</span>',
            escape(verdict_sentence(test, is_simulated=run.is_simulated).partition(": ")[2]),
            escape(_duration((test.ended_ns - test.started_ns) / 1e9)),
        ]
        for test in run.tests[:MOST_TESTS]
    ]
    more = len(run.tests) - len(rows)
    rest = f"<p>and {more} more: see all tests in detail.</p>" if more > 0 else ""
    return f"<h2>Tests</h2>{_table(['Test', 'Verdict', 'Limits', 'Time'], rows, 'tests')}{rest}"


def _profiles(run: RunRecord) -> str:
    """The verdict on each profile of drives, where tests measured such."""
    rows = [
        [escape(profile), f'<span class="chip" style="color:{_COLORS[verdict]}">{verdict.upper()}</span>']
        for profile, verdict in profile_verdicts(run.tests).items()
    ]
    return f"<h2>Drive profiles</h2>{_table(['Profile', 'Verdict'], rows)}" if rows else ""


def _plots(plots: Sequence[Plot]) -> str:
    if not plots:
        return ""
    shown = "".join(
        f'<div class="wide"><img alt="{escape(plot.name)}" src="data:{plot.media_type};base64,'
        f'{base64.b64encode(plot.data).decode("ascii")}"></div>'
        for plot in plots[:MOST_PLOTS]
    )
    more = len(plots) - MOST_PLOTS
    rest = f"<p>{more} plots more are under Global Attachments, and on the tests' pages.</p>" if more > 0 else ""
    return f"<h2>Plots</h2>{shown}{rest}"


def _environment(run: RunRecord) -> str:
    facts = environment_of(run)
    rows = ([escape(key), escape(value)] for key, value in facts.items() if not key.startswith("Drive "))
    return f"<h2>Environment</h2>{_table([], rows)}"


def _link(test: TestRecord, run: RunRecord, pages: Mapping[str, str]) -> str:
    title = escape(title_of(test.id, about_of(test)))
    page = pages.get(hashlib.md5(case_id_of(run, test.id).encode(), usedforsecurity=False).hexdigest())
    return f'<a href="#{escape(page)}">{title}</a>' if page else title


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]], name: str = "") -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="{name}">{f"<tr>{head}</tr>" if head else ""}{body}</table></div>'


def _duration(seconds: float) -> str:
    """``8.2 s``, ``4 min 10 s``, ``6 h 40 min``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"

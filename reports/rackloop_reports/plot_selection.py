"""The plots of a test or a run, selected by its measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from rackloop.record import Measured
from rackloop.units import parse_size
from rackloop_reports.plot_drawing import encoded
from rackloop_reports.record import RunRecord, TestRecord, fault_records, interval_of, samples_of
from rackloop_reports.titles import place_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_reports.plots import Replayed, Source, StackLatency, ThroughputPoint

# The measures that have a plot of their own; docs/reference/events.md says which labels they carry.
LATENCY = "remap.latency"
LATENESS = "replay.lateness"
_RATIO = "throughput.ratio"
THROUGHPUTS = {"throughput.steady": False, "throughput.switched": True}
_ERASURE = {
    *("recovery.tried", "degraded.read_latency", "rebuild.time", "tail.latency", "codec.throughput"),
    "update.latency",
}
_TENANCY = {"tenant.f_util", "isolation.kept"}
_LABELS = {LATENCY: "stack", **dict.fromkeys(THROUGHPUTS, "block")}
_DISTRIBUTION = "Remap latency, whole distribution"
_TIMELINE = "Timeline of remaps and I/O"
_FAULTS = "Timeline of faults and I/O"
_EVIDENCE = "Evidence: "
# Beyond this many remaps, or lines of evidence, a timeline is smaller and quicker to look at as pixels.
_VECTOR_MARKS = 200
# A step of a distribution and its band are some hundred bytes.
_STEPS_A_MARK = 100


@dataclass(frozen=True)
class Plot:
    """A drawn plot, ready to be attached."""

    name: str
    kind: Literal["svg", "png"]
    data: bytes

    @property
    def media_type(self) -> str:
        """The media type of ``data``."""
        return {"svg": "image/svg+xml", "png": "image/png"}[self.kind]


# A plot's name, the tests it is of, and what draws it.
_Wanted = tuple[str, Sequence[TestRecord], Callable[[], "Figure"]]


class RunPlots:
    """The plots of a run and of its tests. A plot that a test and the whole run share is drawn once.

    ``instead`` draws what stands where one cannot be drawn; without it, what that raises is raised.
    """

    def __init__(self, run: RunRecord, instead: Callable[[Exception], Figure] | None = None) -> None:
        self._run = run
        self._instead = instead
        self._functions = Counter(map(_function, run.tests))
        self._drawn: dict[tuple[str, tuple[str, ...]], Plot] = {}

    def plots_of(self, tests: Sequence[TestRecord]) -> list[Plot]:
        """The plots that the measurements and remaps of ``tests`` allow, most telling first."""
        wanted = self._wanted(tests)
        self._draw(wanted)
        return [self._drawn[_key(name, of)] for name, of, _ in wanted]

    def draw_all(self) -> None:
        """Draw the plots of each test and of the run, side by side; :meth:`plots_of` has them then."""
        groups = [self._run.tests, *([test] for test in self._run.tests)]
        self._draw([wanted for tests in groups for wanted in self._wanted(tests)])

    def _wanted(self, tests: Sequence[TestRecord]) -> list[_Wanted]:
        """The plots that ``tests`` allow, not drawn."""
        broken = [test for test in tests if test.faults]
        timed = [test for test in tests if test.remaps or (test.series and not test.faults)]
        remapping = [test for test in timed if test.remaps]
        latency, throughput = _measuring(tests, LATENCY), _measuring(tests, *THROUGHPUTS)
        characterizing = [test for test in tests if test.rounds]
        erasure = [test for test in tests if any(measured.name in _ERASURE for measured in test.measurements)]
        sharing = [test for test in tests if any(measured.name in _TENANCY for measured in test.measurements)]
        failed = [(test, test.evidence) for test in tests if test.evidence is not None and test.evidence.lanes]
        if not (timed or broken or latency or throughput or characterizing or erasure or sharing or failed):
            return []
        # Imported before processes are forked that draw with it, or know intervals by it.
        if latency or throughput:
            import scipy.special  # noqa: F401
        from rackloop_reports import plots
        from rackloop_reports.plots.characterize_select import characterize_drawings
        from rackloop_reports.plots.erasure_select import erasure_drawings
        from rackloop_reports.plots.tenancy_select import tenancy_drawings

        source = plots.Source.of(self._run)
        remaps = [remap for test in remapping for remap in test.remaps]
        wanted: list[_Wanted] = [
            ("Remap latency by driver stack", latency, lambda: plots.figure_2(_latencies(latency), source)),
            (_DISTRIBUTION, latency, lambda: plots.latency_ecdf(_latencies(latency), source)),
            ("Throughput by block size", throughput, lambda: plots.figure_3(_throughputs(throughput), source)),
            ("Stages of a remap", remapping, lambda: plots.stage_breakdown(remaps, source)),
        ]
        for test in tests:
            wanted += [
                (f"Replay: {test.id}", [test], partial(plots.replay_fidelity, replay, source))
                for replay in _replays(test)
            ]
        for select, chosen in (
            (tenancy_drawings, sharing),
            (characterize_drawings, characterizing),
            (erasure_drawings, erasure),
        ):
            for test in chosen:
                about = self._about(test)
                wanted += [(f"{name}: {about}", [test], draw) for name, draw in select(test, source)]
        wanted += [
            (_TIMELINE, timed, lambda: self._timeline(timed, source)),
            (_FAULTS, broken, lambda: self._faults(broken, source)),
        ]
        wanted += [
            (f"{_EVIDENCE}{test.id}", [test], partial(plots.evidence_timeline, evidence, source))
            for test, evidence in failed
        ]
        return [(name, of, draw) for name, of, draw in wanted if of]

    def _about(self, test: TestRecord) -> str:
        """The function of a test, in words, where no other test of the run has one of that name; else all of its id."""
        function = _function(test)
        name, bracket, case = function.partition("[")
        return f"{name.replace('_', ' ')}{bracket}{case}" if self._functions[function] == 1 else test.id

    def _draw(self, wanted: Sequence[_Wanted]) -> None:
        """Draw what was not drawn yet."""
        new = {_key(name, of): (name, of, draw) for name, of, draw in wanted if _key(name, of) not in self._drawn}
        mark = " (simulated)" if self._run.is_simulated else ""
        new = dict(sorted(new.items(), key=lambda item: -_marks_of(item[1][0], item[1][1])))
        drawings = [(draw, _kind(name, of)) for name, of, draw in new.values()]
        drawn = encoded(drawings, self._instead)
        for (key, (name, _, _)), (_, kind), data in zip(new.items(), drawings, drawn, strict=True):
            self._drawn[key] = Plot(name + mark, kind, data)

    def _timeline(self, tests: Sequence[TestRecord], source: Source) -> Figure:
        from rackloop_reports import plots

        remaps = [remap for test in tests for remap in test.remaps]
        acts = [act for test in tests for act in test.acts]
        series = [entry for test in tests for entry in test.series]
        limits = plots.stall_limits(tests)
        return plots.remap_timeline(remaps, acts, series, self._run.started_ns, source, limits)

    def _faults(self, tests: Sequence[TestRecord], source: Source) -> Figure:
        from rackloop_reports import plots

        faults = fault_records(phase for test in tests for phase in test.faults)
        series = [entry for test in tests for entry in test.series]
        limits = plots.stall_limits(tests)
        return plots.fault_timeline(faults, series, self._run.started_ns, self._run.ended_ns, source, limits)


def _function(test: TestRecord) -> str:
    return place_of(test.id)[2] or test.id


def _key(name: str, tests: Sequence[TestRecord]) -> tuple[str, tuple[str, ...]]:
    return name, tuple(test.id for test in tests)


def _kind(name: str, tests: Sequence[TestRecord]) -> Literal["svg", "png"]:
    return "png" if _marks_of(name, tests) > _VECTOR_MARKS else "svg"


def _marks_of(name: str, tests: Sequence[TestRecord]) -> int:
    return sum(_marks(name, test) for test in tests)


def _measuring(tests: Sequence[TestRecord], *names: str) -> list[TestRecord]:
    """The tests that took one of these measurements with the label its plot goes by."""
    return [test for test in tests if any(m.name in names and _can_be_drawn(m) for m in test.measurements)]


def _can_be_drawn(measured: Measured) -> bool:
    label = measured.labels.get(_LABELS[measured.name])
    if label is None or measured.name == LATENCY:
        # A test of one's own may subtract; the axis of times is logarithmic.
        return label is not None and min(measured.values) >= 0
    try:
        return parse_size(label) > 0
    except ValueError:
        return False


def _distinct(tests: Iterable[TestRecord], name: str) -> Iterator[tuple[TestRecord, Measured]]:
    """Each measurement called ``name`` that can be drawn, once, with its test."""
    for test in tests:
        yield from ((test, measured) for measured in test.measured(name) if _can_be_drawn(measured))


def _latencies(tests: Sequence[TestRecord]) -> list[StackLatency]:
    from rackloop_reports.plots import StackLatency, in_paper_order, limits_of

    found = list(_distinct(tests, LATENCY))
    seen = Counter(measured.labels["stack"] for _, measured in found)
    order = in_paper_order(set(seen))
    found.sort(key=lambda pair: order.index(pair[1].labels["stack"]))
    return [
        StackLatency(
            stack,
            samples_of(measured),
            test.id if seen[stack] > 1 else "",
            limits_of(test, measured),
            {q: interval_of(test, measured, q) for q in (0.5, 0.99)},
        )
        for test, measured in found
        for stack in (measured.labels["stack"],)
    ]


def _throughputs(tests: Sequence[TestRecord]) -> list[ThroughputPoint]:
    from rackloop_reports.plots import ThroughputPoint, limits_of

    points = []
    for name, is_switching in THROUGHPUTS.items():
        for test, measured in _distinct(tests, name):
            median, (low, high) = samples_of(measured).quantile(0.5), interval_of(test, measured, 0.5)
            block, drive = parse_size(measured.labels["block"]), measured.labels.get("drive", "")
            ratios = [one for one in test.measured(_RATIO) if one.labels == measured.labels] if is_switching else []
            limits = limits_of(test, measured), [limit for one in ratios for limit in limits_of(test, one)]
            ratio = (samples_of(ratios[0]).quantile(0.5), *interval_of(test, ratios[0], 0.5)) if ratios else None
            points.append(ThroughputPoint(block, is_switching, median, low, high, drive, *limits, ratio))
    return points


def _replays(test: TestRecord) -> list[Replayed]:
    """The replay of a test, where it had one: its lateness, and the series that were written with it."""
    from rackloop_reports.plots import Replayed, limits_of, stall_limits

    def points(ending: str) -> Sequence[tuple[int, float]]:
        return next((series.points for series in test.series if series.job.endswith(ending)), ())

    return [
        Replayed(
            points(" planned"),
            points(" issued"),
            points(" replay"),
            samples_of(late),
            late.labels.get("seen_by", "fio"),
            limits_of(test, late),
            stall_limits([test]),
        )
        for late in islice(test.measured(LATENESS), 1)
        if points(" planned") and points(" issued")
    ]


def _marks(plot: str, test: TestRecord) -> int:
    """The number of marks of a test on a timeline, or what the steps of a distribution are worth; others have few."""
    if plot == _TIMELINE:
        return len(test.remaps)
    if plot == _FAULTS:
        return len(test.faults)
    if plot == _DISTRIBUTION:
        return sum(len(measured.values) for measured in test.measured(LATENCY)) // _STEPS_A_MARK
    if plot.startswith(_EVIDENCE) and test.evidence is not None:
        return sum(len(moments) for moments in test.evidence.lanes.values())
    return 0

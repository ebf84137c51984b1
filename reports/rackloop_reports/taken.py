"""The measurements that a test took, each once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rackloop.measurement import Distribution
from rackloop.record import Measured
from rackloop_reports.record import TestRecord


def samples_of(measured: Measured) -> Distribution:
    """The distribution that a statistic was taken from."""
    return Distribution(tuple(measured.values), tuple(measured.counts), measured.clusters)


def taken(test: TestRecord, name: str, labels: Collection[str]) -> Iterator[tuple[Mapping[str, str], Distribution]]:
    """The labels and samples of each measurement called ``name`` that has these ``labels`` at least.

    The stream has a measurement once for every limit; here it is once.
    """
    seen: dict[tuple[tuple[str, str], ...], Measured] = {}
    for measured in test.measurements:
        if measured.name == name and measured.labels.keys() >= set(labels):
            seen.setdefault(tuple(sorted(measured.labels.items())), measured)
    for measured in seen.values():
        yield measured.labels, samples_of(measured)

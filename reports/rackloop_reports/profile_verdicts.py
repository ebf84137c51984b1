"""The verdict on each profile of drives: what the tests that measured drives of it came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rackloop.measurement import Verdict, worst
from rackloop_reports.record import TestRecord

_LABEL = "profile"


def profile_verdicts(tests: Iterable[TestRecord]) -> Mapping[str, Verdict]:
    """The verdict on each profile that measurements have as a label, in the order they were measured.

    It is the worst of the tests that measured the profile. Of a test it is that of its judged measurements of the
    profile; and the test's own, where none of its measurements accounts for that: one that could not be decided is
    unknown for all that it measured, and holds nothing against a profile. What was measured and not judged is unknown
    as well.
    """
    found: dict[str, list[Verdict]] = {}
    for test in tests:
        own = [] if test.verdict is Verdict.PASS or _is_accounted_for(test) else [test.verdict]
        for profile in dict.fromkeys(one.labels[_LABEL] for one in test.measurements if _LABEL in one.labels):
            of_profile = [
                Verdict(one.verdict) for one in test.measurements if one.verdict and one.labels.get(_LABEL) == profile
            ]
            if test.verdict is not Verdict.FAIL:
                of_profile = [Verdict.UNKNOWN if one is Verdict.FAIL else one for one in of_profile]
            found.setdefault(profile, []).append(worst([*own, *(of_profile or [Verdict.UNKNOWN])]))
    return {profile: worst(verdicts) for profile, verdicts in found.items()}


def _is_accounted_for(test: TestRecord) -> bool:
    """Whether one of its measurements is why a test has its verdict: the reason of the test has that of the limit."""
    return any(
        one.verdict == test.verdict and (not one.reason or one.reason in (test.reason or ""))
        for one in test.measurements
    )

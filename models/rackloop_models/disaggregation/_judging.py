"""A rule of a design, held against a history: pass, fail or unknown, and never green where nothing was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rackloop.measurement import Verdict
from rackloop_models.disaggregation._history import History


@dataclass(frozen=True)
class Judgement:
    """The result of a rule on a history: how often it could have been broken, and a sentence for each time it was.

    ``unsure`` has a sentence for each time of which that cannot be said. ``has_crashed``: the rule itself failed.
    """

    rule: str
    verdict: Verdict
    seen: int
    broken: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    has_crashed: bool = False

    @property
    def reason(self) -> str:
        """The reasons why it is no pass, in words."""
        if self.verdict is Verdict.PASS:
            return ""
        return "; ".join((*self.broken, *self.unsure)) or "nothing was seen that could have broken it"


@dataclass(frozen=True)
class Findings:
    """The findings of a rule: how many occasions there were to break it, what was broken, and what may have been."""

    seen: int
    broken: Sequence[str]
    unsure: Sequence[str] = ()


Rule = Callable[[History], Findings]


def judged(rules: Iterable[tuple[str, Rule]], history: History) -> list[Judgement]:
    """Each rule's judgement. A rule that raises is unknown, with what it raised as its reason."""
    judgements = []
    for name, rule in rules:
        try:
            found = rule(history)
        except Exception as error:  # noqa: BLE001 - a crashed oracle is unknown, whatever it crashed on
            why = f"the rule itself failed: {error!r}"
            judgements.append(Judgement(name, Verdict.UNKNOWN, 0, unsure=(why,), has_crashed=True))
            continue
        is_sure = found.seen and not found.unsure
        verdict = Verdict.FAIL if found.broken else Verdict.PASS if is_sure else Verdict.UNKNOWN
        judgements.append(Judgement(name, verdict, found.seen, tuple(found.broken), tuple(found.unsure)))
    return judgements

"""The known formats, and recognition of a trace's format."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rackloop.errors import BadInput
from rackloop.names import guess, quoted
from rackloop_traces._blktrace import BLKTRACE
from rackloop_traces._cloudphysics import CLOUDPHYSICS, CLOUDPHYSICS_US, told_by_rate
from rackloop_traces._csv_formats import ALIBABA, MSR, SPC, SYSTOR17, TENCENT
from rackloop_traces._format import Format
from rackloop_traces._iolog import IOLOG2, IOLOG3

#: Every format that a trace may be in, by name.
FORMATS = {
    form.name: form
    for form in (ALIBABA, BLKTRACE, CLOUDPHYSICS, CLOUDPHYSICS_US, IOLOG2, IOLOG3, MSR, SPC, SYSTOR17, TENCENT)
}
_CLOUDPHYSICS = (CLOUDPHYSICS, CLOUDPHYSICS_US)
_SHOWN_CHARACTERS = 60


def format_named(name: str) -> Format:
    """The format of this name; raises BadInput that guesses what was meant."""
    if name not in FORMATS:
        raise BadInput(f"no trace format is called {quoted(name)}: {guess(name, FORMATS)}")
    return FORMATS[name]


def recognised(lines: Sequence[str], where: str) -> tuple[Format, tuple[str, ...]]:
    """The format that most of a trace's first lines are in, and the reasons to doubt it.

    Raises BadInput where hardly a line is one of any format.
    """
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise BadInput(f"{where} is empty: there is no line in it")
    counts = {form.name: sum(_is_line(form, text) for text in texts) for form in FORMATS.values()}
    best, *others = sorted(FORMATS.values(), key=lambda form: -counts[form.name])
    is_cloudphysics = best in _CLOUDPHYSICS
    if is_cloudphysics:
        others = [form for form in others if form not in _CLOUDPHYSICS]
    if 2 * counts[best.name] < len(texts):
        some = f", {counts[best.name]} of the first {len(texts)} are {best.title}" if counts[best.name] else ""
        raise BadInput(
            f"{where} is in no format that is known: its first line is {texts[0][:_SHOWN_CHARACTERS]!r}{some}; say "
            f"which it is in, one of {', '.join(FORMATS)}"
        )
    doubts = [
        f"could also be {form.title}: {counts[form.name]} of the first {len(texts)} lines are well-formed as that"
        for form in others
        if counts[form.name] * 10 >= counts[best.name] * 9
    ]
    unfit = [text for text in texts if not _is_line(best, text)]
    doubts += [
        f"{found} of the first {len(texts)} lines are {form.title}: it may be several traces joined"
        for form in others
        if (found := sum(_is_line(form, text) for text in unfit))
    ]
    if is_cloudphysics:
        best, further = told_by_rate(texts)
        doubts += further
    return best, tuple(doubts)


def _is_line(form: Format, text: str) -> bool:
    if form.header and text.casefold() == form.header.casefold():
        return True
    return bool(re.match(form.pattern, text) or (form.directive and re.match(form.directive, text)))

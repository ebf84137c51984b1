"""Pages of which a tool writes a part: below a mark, or between two. The rest of a page is left as it is."""

from __future__ import annotations

from pathlib import Path

END = "<!-- End of what is written by it. -->\n"


def below_mark(page: Path, mark: str, text: str) -> str:
    """The whole page: what people wrote above the mark, and ``text`` below it."""
    written, mark, _ = page.read_text(encoding="utf-8").partition(mark)
    return f"{written}{mark}{text}"


def between(page: Path, begin: str) -> str:
    """The part between ``begin`` and END, as it stands in the page."""
    return page.read_text(encoding="utf-8").split(begin)[1].split(END, maxsplit=1)[0].strip("\n") + "\n"


def with_between(page: Path, begin: str, text: str) -> str:
    """The whole page, with ``text`` for the part between ``begin`` and END."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    return f"{before}{begin}\n{text}\n{END}{rest.split(END, maxsplit=1)[1]}"

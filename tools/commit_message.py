"""The form of commit messages, checked by the commit-msg hook and by tests/meta.

    python tools/commit_message.py MESSAGE_FILE

Prints what is wrong with the message of the commit that is being made, and ends with status 1 where something is.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST_SUBJECT = 72
MOST_LINES_WITHOUT_BODY = 30
_SCISSORS = "# ------------------------ >8 ------------------------"
_COUNT = re.compile(r"(\d+) (?:insertion|deletion)")


def main() -> None:
    """Check the message in the file that the first argument names."""
    message = Path(sys.argv[1]).read_text(encoding="utf-8").partition(_SCISSORS)[0]
    written = "".join(line for line in message.splitlines(keepends=True) if not line.startswith("#"))
    found = list(problems(written, lines_changed("diff", "--cached")))
    sys.exit("\n".join(f"commit message: {problem}" for problem in found) if found else 0)


def problems(message: str, lines: int) -> Iterator[str]:
    """The problems with the message of a commit that changes so many lines."""
    subject, _, rest = message.strip().partition("\n")
    gap, _, body = rest.partition("\n")
    if subject.startswith("Merge "):
        return
    if len(subject) > LONGEST_SUBJECT:
        yield f"the subject has {len(subject)} characters of at most {LONGEST_SUBJECT}: {subject}"
    if len(subject.split()) < 2 or re.match(r"(fixup|squash|amend)!|wip\b", subject, re.IGNORECASE):
        yield f"the subject names what changed, in two words or more: {subject!r}"
    if subject.endswith("."):
        yield f"the subject ends without a full stop: {subject}"
    if gap.strip():
        yield f"a blank line stands between subject and body: {subject}"
    if lines > MOST_LINES_WITHOUT_BODY and not body.strip():
        yield f"{lines} lines change, more than {MOST_LINES_WITHOUT_BODY}: say why in a body: {subject}"


def lines_changed(*command: str, root: Path | None = None) -> int:
    """The lines that a git command such as ``diff --cached`` shows as added or removed; a moved file has none."""
    shown = subprocess.run(
        ("git", *command, "--shortstat", "--find-renames"), cwd=root, capture_output=True, text=True, check=True
    )
    return sum(int(count) for count in _COUNT.findall(shown.stdout))


if __name__ == "__main__":
    main()

"""Options as getopt_long reads them, for emulated tools whose wording of a mistake is getopt's."""

from __future__ import annotations

import getopt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class OptionError(Exception):
    """A command line that the tool refuses, in the words it has for that."""


@dataclass(frozen=True)
class Options:
    """The options of a command line, in order: flags by their meaning, (meaning, value) pairs, and operands."""

    flags: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    @classmethod
    def of(cls, argv: Sequence[str], *, flags: Mapping[str, str], valued: Mapping[str, str]) -> Options:
        """Read ``argv``, options and operands mixed.

        ``flags`` are options without an argument and ``valued`` those with one, as they are spelled (``-J``,
        ``--json``), each with its meaning. Raises OptionError as glibc words it.
        """
        shorts = "".join([name[1] for name in flags if _is_short(name)])
        shorts += "".join([f"{name[1]}:" for name in valued if _is_short(name)])
        longs = [name[2:] for name in flags if not _is_short(name)]
        longs += [f"{name[2:]}=" for name in valued if not _is_short(name)]
        try:
            pairs, operands = getopt.gnu_getopt(list(argv), shorts, longs)
        except getopt.GetoptError as error:
            raise OptionError(_worded(error)) from error
        return cls(
            flags=tuple(flags[name] for name, _ in pairs if name in flags),
            values=tuple((valued[name], value) for name, value in pairs if name in valued),
            operands=tuple(operands),
        )

    def value(self, meaning: str) -> str | None:
        """The last value given for an option."""
        return next((value for name, value in reversed(self.values) if name == meaning), None)


def _is_short(name: str) -> bool:
    return not name.startswith("--")


def _worded(error: getopt.GetoptError) -> str:
    is_short, lacks_value = len(error.opt) == 1, "requires argument" in error.msg
    if lacks_value:
        return (
            f"option requires an argument -- '{error.opt}'"
            if is_short
            else (f"option '--{error.opt}' requires an argument")
        )
    return f"invalid option -- '{error.opt}'" if is_short else f"unrecognized option '--{error.opt}'"

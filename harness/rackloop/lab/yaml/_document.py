"""A YAML file as text with places: every scalar stays as it was written, and every value knows where it stands.

YAML's own rules for plain scalars are not applied: a serial ``00123456``, a WWN ``5000e500`` and a name ``no`` must
survive until the type of their field decides what they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml._yaml import CParser

from rackloop.errors import DescriptionError, Problem
from rackloop.names import quoted

Plain = str | None | list["Plain"] | dict[str, "Plain"]
Step = str | int

LARGEST_FILE_BYTES = 1 << 20
DEEPEST_NESTING = 32
MOST_NODES = 100_000
_TOO_DEEP = f"collections are nested more than {DEEPEST_NESTING} deep; use fewer levels"
_MERGE_KEY = "<<"
_PLAIN_STEP = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_NOT_YAML_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SYNTAX_HINTS = {
    "cannot start any token": "indent with spaces, and quote a text that starts with one of @ ` % or a tab",
    "mapping values are not allowed": "put the value on its own line, or quote a text that contains ': '",
    "expected ',' or": "close the bracket or add the comma",
    "end of stream": "close the quote or the bracket",
    "undefined alias": "define the anchor with & before it is used with *",
    "another document": "keep one document in a file: delete the '---'",
}
_OTHER_HINT = "check the indentation, quotes and brackets here and just above"


class _TooDeep(Exception):
    pass


class _TextComposer(CParser):
    """libyaml's composer without the rules that turn plain scalars into numbers, booleans and dates.

    Counting the depth is not a nicety: libyaml's composer recurses in C, and nesting of 100,000 ends the process.
    """

    _depth = 0

    def resolve(self, _kind: type[yaml.Node], _value: str | None, _implicit: object) -> str:
        return ""

    def descend_resolver(self, parent: yaml.Node | None, _index: object) -> None:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise _TooDeep(parent)

    def ascend_resolver(self) -> None:
        self._depth -= 1


@dataclass(frozen=True)
class Place:
    """A line and a column, both from 1, and the path of the value there, such as ``drives.d01.size``."""

    line: int
    column: int
    path: str


class Document:
    """One composed file. ``value`` holds texts, lists and mappings only; an empty value is None.

    ``problems`` holds keys given twice, tags and aliases that never end. Raises DescriptionError where the aliases
    expand without measure.
    """

    def __init__(self, file: str, root: yaml.Node) -> None:
        self.file = file
        self._root = root
        self._problems: dict[Problem, None] = {}
        self._node_count = 0
        self._open: set[int] = set()
        self.value: Plain = self._plain(root)

    @property
    def problems(self) -> list[Problem]:
        """Problems with the YAML itself."""
        return list(self._problems)

    def place(self, path: Sequence[Step], *, key: bool = False) -> Place:
        """The place of the value at ``path``, or of its key; for a missing value that of its parent."""
        node, mark = self._root, self._root.start_mark
        walked: list[Step] = []
        for position, step in enumerate(path):
            found = _child(node, step)
            if found is None:
                walked += path[position:]
                if isinstance(node, yaml.ScalarNode):
                    mark = node.start_mark
                break
            key_node, node = found
            walked.append(step)
            is_last = position == len(path) - 1
            mark = node.start_mark if is_last and not key else key_node.start_mark
        return Place(mark.line + 1, mark.column + 1, join_path(walked))

    def problem(self, path: Sequence[Step], message: str, *, key: bool = False) -> Problem:
        """A problem with the value at ``path``, or with its key."""
        place = self.place(path, key=key)
        return Problem(self.file, place.line, place.column, place.path, message)

    def _report(self, node: yaml.Node, message: str) -> None:
        self._problems[_at(self.file, node, message)] = None

    def _plain(self, node: yaml.Node) -> Plain:
        self._node_count += 1
        if self._node_count > MOST_NODES:
            message = f"holds over {MOST_NODES:,} values, aliases counted wherever they are used; use fewer"
            raise DescriptionError([_at(self.file, self._root, message)])
        if len(self._open) > DEEPEST_NESTING:
            raise DescriptionError([_at(self.file, node, _TOO_DEEP)])
        if node.tag:
            self._report(node, f"the tag {quoted(node.tag)} is not supported; delete it")
        if isinstance(node, yaml.ScalarNode):
            return None if node.value == "" and not node.style else str(node.value)
        if id(node) in self._open:
            self._report(node, "an alias inside its own anchor never ends; delete the alias")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._plain(child) for child in node.value]
            return self._plain_mapping(node)
        finally:
            self._open.discard(id(node))

    def _plain_mapping(self, node: yaml.Node) -> dict[str, Plain]:
        own: dict[str, Plain] = {}
        merged: dict[str, Plain] = {}
        keys: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, "a key must be a text, found a collection; write 'key: value'")
            elif key_node.value == _MERGE_KEY and not key_node.style:
                for source in value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]:
                    merged = self._merge_source(source) | merged
            elif (first := keys.get(key_node.value)) is not None:
                message = (
                    f"the key {quoted(key_node.value)} is given twice, first at "
                    f"{self.file}:{first.start_mark.line + 1}:{first.start_mark.column + 1}; delete one of them"
                )
                self._report(key_node, message)
            else:
                keys[key_node.value] = key_node
                own[key_node.value] = self._plain(value_node)
        return {**merged, **own} if merged else own

    def _merge_source(self, node: yaml.Node) -> dict[str, Plain]:
        if isinstance(node, yaml.MappingNode):
            plain = self._plain(node)
            return plain if isinstance(plain, dict) else {}
        self._report(node, "'<<' merges mappings; give it an alias such as *defaults")
        return {}


def compose(text: str, file: str) -> Document:
    """Compose ``text``; ``file`` is the name that problems carry. Raises DescriptionError where it is not YAML."""
    if bad := _NOT_YAML_TEXT.search(text):
        before = text[: bad.start()]
        line, column = before.count("\n") + 1, bad.start() - (before.rfind("\n") + 1) + 1
        message = f"the character U+{ord(bad[0]):04X} is not allowed in YAML; delete it"
        raise DescriptionError([Problem(file, line, column, "", message)])
    composer = _TextComposer(text)
    try:
        root = composer.get_single_node()
    except yaml.YAMLError as error:
        raise DescriptionError([_syntax_problem(file, error)]) from None
    except _TooDeep as error:
        raise DescriptionError([_at(file, error.args[0], _TOO_DEEP)]) from None
    finally:
        composer.dispose()
    if root is None or (isinstance(root, yaml.ScalarNode) and root.value == ""):
        raise DescriptionError(
            [Problem(file, 1, 1, "", "the file is empty; start from one of the examples in labs/ or testplans/")]
        )
    document = Document(file, root)
    if not isinstance(document.value, dict):
        found = "a list" if isinstance(document.value, list) else "a single text"
        raise DescriptionError([_at(file, root, f"expected a mapping ('key: value' lines) at the top, found {found}")])
    return document


def compose_file(path: Path) -> Document:
    """Read and compose ``path``; raises DescriptionError also where it cannot be read, is too large or not UTF-8."""
    file = str(path)
    try:
        if path.is_fifo() or path.is_socket():
            raise DescriptionError([Problem(file, 1, 1, "", "is a pipe or a socket, not a file; give it as a file")])
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}; check the name and the permissions"
        raise DescriptionError([Problem(file, 1, 1, "", message)]) from error
    if len(data) > LARGEST_FILE_BYTES:
        message = f"larger than {LARGEST_FILE_BYTES >> 20} MiB, which no description needs; is this the right file?"
        raise DescriptionError([Problem(file, 1, 1, "", message)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig", "replace")) + 1
        message = f"byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8"
        raise DescriptionError([Problem(file, line, column, "", message)]) from None
    return compose(text, file)


def join_path(path: Sequence[Step]) -> str:
    """``("tests", 0, "limits")`` as people write it: ``tests[0].limits``."""
    joined = "".join(f".{step}" if _PLAIN_STEP.fullmatch(str(step)) else f"[{_shown(step)}]" for step in path)
    return joined.removeprefix(".")


def _shown(step: Step) -> str:
    return str(step) if isinstance(step, int) else quoted(step)


def _child(node: yaml.Node, step: Step, seen: tuple[yaml.Node, ...] = ()) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value of an entry, merged ones included; an item of a list is its own key."""
    if isinstance(node, yaml.SequenceNode):
        return (node.value[step],) * 2 if isinstance(step, int) and step < len(node.value) else None
    if not isinstance(node, yaml.MappingNode) or any(node is one for one in seen):
        return None
    merged: list[yaml.Node] = []
    for key_node, value_node in node.value:
        if isinstance(key_node, yaml.ScalarNode):
            if key_node.value == step:
                return key_node, value_node
            if key_node.value == _MERGE_KEY:
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
    return next((found for source in merged if (found := _child(source, step, (*seen, node)))), None)


def _at(file: str, node: yaml.Node, message: str) -> Problem:
    return Problem(file, node.start_mark.line + 1, node.start_mark.column + 1, "", message)


def _syntax_problem(file: str, error: yaml.YAMLError) -> Problem:
    marked = error if isinstance(error, yaml.MarkedYAMLError) else yaml.MarkedYAMLError(problem=str(error))
    mark = marked.problem_mark or marked.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    what = ", ".join(part for part in (marked.context, marked.problem) if part)
    hint = next((hint for cause, hint in _SYNTAX_HINTS.items() if cause in what), _OTHER_HINT)
    return Problem(file, line, column, "", f"not YAML: {what}; {hint}")

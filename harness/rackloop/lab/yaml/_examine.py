"""From a composed document to a frozen model: every problem at once, in Rackloop's words, at its line and column."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from rackloop.errors import DescriptionError, Problem
from rackloop.lab.yaml._document import Document, Plain, Step
from rackloop.names import guess, kind_of

KeyPath = tuple[Step, ...]
StandIns = Mapping[tuple[str, ...], Plain]

_NO_STAND_INS: StandIns = {}
_MOST_ROUNDS = 16
# Of a file with more, the rest is not looked at: each takes its time, and nobody reads them.
_MOST_PROBLEMS = 1000
_EXPECTED = {
    "model_type": "a mapping ('key: value')",
    "model_attributes_type": "a mapping ('key: value')",
    "dict_type": "a mapping ('key: value')",
    "mapping_type": "a mapping ('key: value')",
    "list_type": "a list ('[a, b]' or '- a' lines)",
    "tuple_type": "a list ('[a, b]' or '- a' lines)",
    "string_type": "a text",
}


class Description(BaseModel):
    """A part of a file users write: immutable, unknown keys refused, a key without a value counts as not given."""

    # Built when first used, and the parts of one kind of file together: no command reads every kind.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    instead: ClassVar[Mapping[str, str]] = {}
    """Advice in place of a key that only others of its kind have."""

    @classmethod
    def chosen(cls, written: object) -> type[Description]:  # noqa: ARG003 - for those that choose
        """The model of ``written`` where its own text chooses among several."""
        return cls

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in data.values():
            known = _fields(cls)
            return {key: value for key, value in data.items() if value is not None or key not in known}
        return data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler(schema)
        properties = handler.resolve_ref_schema(described)["properties"]
        for key, text in field_texts(cls).items():
            properties[key]["description"] = text
        return described


M = TypeVar("M", bound=Description)


class Examined(Generic[M]):
    """A document under examination: what is wrong so far, and the model of all that is sound.

    ``value`` lacks the parts that have problems, so that what depends on several parts can be checked in the same
    pass; it is None where too little is left.
    """

    def __init__(self, document: Document, problems: list[Problem], value: M | None, taken_out: set[KeyPath]) -> None:
        self.value = value
        self.problems = problems
        self._document = document
        self._taken_out = taken_out
        self._unsound = {path[:length] for path in taken_out for length in range(len(path) + 1)}

    def report(self, path: KeyPath, message: str, *, key: bool = False) -> None:
        """Add a problem with the value at ``path`` of ``value``, or with its key."""
        self.problems.append(
            self._document.problem(_written(self._document.value, self._taken_out, path), message, key=key)
        )

    def where(self, path: KeyPath) -> str:
        """The path and ``file:line:column`` of the value at ``path``, for a message that names a second place."""
        place = self._document.place(_written(self._document.value, self._taken_out, path))
        return f"{place.path} ({self.place(path)})"

    def place(self, path: KeyPath) -> str:
        """``file:line:column`` of the value at ``path``, for a message of a later moment."""
        place = self._document.place(_written(self._document.value, self._taken_out, path))
        return f"{self._document.file}:{place.line}:{place.column}"

    def written_keys(self, *path: Step) -> frozenset[str]:
        """The keys the file has at ``path``, those of parts with problems included."""
        at = _written(self._document.value, self._taken_out, path)
        walked = [self._document.value, *_walk(self._document.value, at)]
        found = walked[-1] if len(walked) == 1 + len(path) else None
        return frozenset(found) if isinstance(found, dict) else frozenset()

    def is_sound(self, *path: Step) -> bool:
        """Whether nothing at or beneath ``path`` has a problem of its own."""
        return _written(self._document.value, self._taken_out, path) not in self._unsound

    def finish(self) -> M:
        """The model; raises DescriptionError with every problem where there is one."""
        if self.problems or self.value is None:
            raise DescriptionError(self.problems)
        return self.value


def examine(document: Document, model: type[M], *, stand_ins: StandIns = _NO_STAND_INS) -> Examined[M]:
    """Validate ``document`` as ``model``, with every problem of every part.

    What has a problem is taken out, as little as possible, until the rest is sound. ``stand_ins`` replace values that
    a part cannot do without; a ``*`` in the path of one stands for any key. Validators find the path of the file as
    ``file`` in their context.
    """
    context = {"file": Path(document.file).absolute()}
    problems = list(document.problems)
    taken_out: set[KeyPath] = set()
    for round_number in range(_MOST_ROUNDS):
        before = frozenset(taken_out)
        data = _without(document.value, before, (), _stood_in(before, stand_ins)) if before else document.value
        try:
            value = model.model_validate(data, context=context)
        except ValidationError as error:
            found = [one for one in error.errors(include_url=False) if not _follows(one)]
            for details in found[:_MOST_PROBLEMS]:
                path, message, is_about_key = _in_our_words(details, model, data)
                written = _written(document.value, before, path)
                if round_number == 0:
                    problems.append(document.problem(written, message, key=is_about_key))
                is_replaceable = any(_matches(pattern, written) for pattern in stand_ins)
                taken_out.add(written if is_replaceable else written[: sum(1 for _ in _walk(data, path))])
            if () in taken_out or len(found) > _MOST_PROBLEMS:
                break
        else:
            return Examined(document, problems, value, taken_out)
    return Examined(document, problems, None, taken_out)


def _follows(details: ErrorDetails) -> bool:
    """Whether an error is there because of another alone: a default that was not made, a list of nothing sound."""
    return details["type"] == "default_factory_not_called" or (
        details["type"] == "too_short" and bool(details["input"])
    )


def _in_our_words(details: ErrorDetails, model: type[Description], data: Plain) -> tuple[KeyPath, str, bool]:
    """The path, the message, and whether it is about the key rather than the value."""
    kind, path = details["type"], details["loc"]
    message = str(details["ctx"]["error"]) if kind == "value_error" else details["msg"]
    if path[-1:] == ("[key]",):
        return path[:-1], message, True
    if kind in {"missing", "extra_forbidden"}:
        owner, key = _owner(model, path, data), str(path[-1])
        if kind == "missing":
            return path, "is missing: " + field_texts(owner).get(key, "it must be given"), False
        return path, f"unknown key; {owner.instead.get(key) or guess(key, _fields(owner))}", True
    if kind in _EXPECTED:
        return path, f"expected {_EXPECTED[kind]}, found {kind_of(details['input'])}", False
    if kind == "too_short":
        return path, "is empty; give at least one entry", False
    return path, message, False


@cache
def _fields(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """The fields of a model by the key they have in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


@cache
def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """The text of each field, on one line, by the key the field has in the file.

    It is read from the source when asked for, for a message or a schema. pydantic's ``use_attribute_docstrings`` reads
    it for every model at every start.
    """
    import ast
    import inspect

    texts = {}
    for base in (one for one in reversed(model.__mro__) if issubclass(one, Description) and one is not Description):
        try:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except OSError:  # a driver without its source has keys without a text
            continue
        for field, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    if name in model.model_fields:
                        texts[model.model_fields[name].alias or name] = " ".join(said.split())
    return texts


def _owner(model: type[Description], path: KeyPath, data: Plain) -> type[Description]:
    """The model in which the last step of ``path`` is, or should be, a key."""
    annotation: Any = model
    values = _walk(data, path)
    for step in path[:-1]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            annotation = _fields(annotation)[str(step)].annotation
        else:
            of_keys_and_values = issubclass(get_origin(annotation), Mapping)
            annotation = get_args(annotation)[1 if of_keys_and_values else 0]
        while get_origin(annotation) in (Annotated, Union, UnionType):
            annotation = get_args(annotation)[0]
        value = next(values)
        if isinstance(annotation, type) and issubclass(annotation, Description):
            annotation = annotation.chosen(value)
    owner: type[Description] = annotation
    return owner


def _matches(pattern: tuple[str, ...], path: KeyPath) -> bool:
    return len(pattern) == len(path) and all(part in ("*", step) for part, step in zip(pattern, path, strict=True))


def _stood_in(taken_out: Collection[KeyPath], stand_ins: StandIns) -> dict[KeyPath, dict[str, Plain]]:
    """The replacements of the values taken out, by the path of their parent."""
    stood_in: dict[KeyPath, dict[str, Plain]] = {}
    for path in taken_out:
        for pattern, stand_in in stand_ins.items():
            if _matches(pattern, path):
                stood_in.setdefault(path[:-1], {})[str(path[-1])] = stand_in
    return stood_in


def _without(
    value: Plain, taken_out: Collection[KeyPath], here: KeyPath, stood_in: Mapping[KeyPath, Mapping[str, Plain]]
) -> Plain:
    """``value``, which stands at ``here``, with every path in ``taken_out`` left away or replaced."""
    if isinstance(value, list):
        paths: list[KeyPath] = [(*here, index) for index in range(len(value))]
        left = [(item, path) for item, path in zip(value, paths, strict=True) if path not in taken_out]
        return [_without(item, taken_out, path, stood_in) for item, path in left]
    if isinstance(value, dict):
        kept = {key: (*here, key) for key in value if (*here, key) not in taken_out}
        rest = {key: _without(value[key], taken_out, path, stood_in) for key, path in kept.items()}
        return {**rest, **stood_in.get(here, {})}
    return value


def _written(value: Plain, taken_out: Collection[KeyPath], path: KeyPath) -> KeyPath:
    """The path in the file of what stands at ``path`` once ``taken_out`` is left away: only list positions differ."""
    if not taken_out:
        return path
    written: KeyPath = ()
    for step in path:
        if isinstance(step, int) and isinstance(value, list):
            left = [index for index in range(len(value)) if (*written, index) not in taken_out]
            step = left[step] if step < len(left) else step  # noqa: PLW2901 - the same step, in the file's terms
        written = (*written, step)
        value = next(_walk(value, (step,)), None)
    return written


def _walk(value: Plain, path: KeyPath) -> Iterator[Plain]:
    """The values along ``path``, as far as it leads."""
    for step in path:
        try:
            value = value[step]  # type: ignore[index]  # a path that leads nowhere ends here
        except (KeyError, IndexError, TypeError):
            return
        yield value

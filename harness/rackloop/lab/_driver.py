"""Drivers by name: a description says ``driver: NAME``, and NAME's own model says which other keys there are.

A driver is registered as ``KIND.NAME`` in the entry-point group ``rackloop.drivers``, by Rackloop as by others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

from pydantic import ConfigDict, GetJsonSchemaHandler, ValidationInfo, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rackloop.lab._secret import FileSecret
from rackloop.lab.yaml import Description, field_texts, text_of, wrong
from rackloop.names import guess, kind_of

GROUP = "rackloop.drivers"
_BOTH = " and "


@cache
def registered_drivers() -> Mapping[str, Mapping[str, EntryPoint]]:
    """The drivers registered on this machine, by kind and name. Looked for once."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        kind, _, name = entry.name.partition(".")
        others = found.setdefault(kind, {})
        if name in others and others[name].value != entry.value:
            entry = EntryPoint(entry.name, f"{others[name].value}{_BOTH}{entry.value}", GROUP)  # noqa: PLW2901
        others[name] = entry
    return found


class Driven(Description):
    """A box that a driver works. The base of each kind has the keys that all drivers of the kind share.

    What an entry point names is a subclass that can be opened: see ``rackloop_drivers.boxes``.
    """

    # What the keys of an unknown driver are, nobody can say.
    model_config = ConfigDict(extra="ignore")

    kind: ClassVar[str] = ""
    is_simulated: ClassVar[bool] = False
    """True where a mock lab has such a box simulated."""

    driver: str
    """The driver that works the box."""

    @classmethod
    def chosen(cls, written: object) -> type[Description]:
        """The model of the driver that ``written`` names; of an unknown one, the base of the kind."""
        if "kind" in vars(cls) and isinstance(written, dict) and isinstance(name := written.get("driver"), str):
            try:
                return load_driver(cls, name)
            except ValueError:
                return cls
        return cls

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_driver(cls, data: Any, handler: Callable[[Any], Self], info: ValidationInfo) -> Self:
        model = cls.chosen(data)
        if model is cls:
            return handler(data)
        # What load_driver gives is a subclass.
        return model.model_validate(data, context=info.context)  # type: ignore[return-value]

    @field_validator("driver", mode="plain")
    @classmethod
    def _known(cls, value: object) -> str:
        name = text_of(value, "the name of a driver")
        base = next(one for one in cls.__mro__ if "kind" in vars(one))
        load_driver(base, name)
        return name

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The keys, each with a message, that the description of a box which is not simulated lacks."""
        yield from ()

    def own_address(self) -> tuple[str, str] | None:
        """The key of the address of a box that is not simulated, and the address; None where others may be there."""
        return None

    @classmethod
    def of(cls, described: Driven, where: Mapping[str, Any] | None = None) -> Self:
        """``described`` as a box of this class, at ``where`` its simulation answers. Raises TypeError for another."""
        if not isinstance(described, cls):
            raise TypeError(f"{type(described).__name__} is registered as {described.driver}, and cannot be opened")
        return described if where is None else described.at(where)

    def at(self, endpoint: Mapping[str, Any]) -> Self:
        """The same box where its simulation answers, as that gave its ``address``, ``user`` and so on."""
        changes = {key: value for key, value in endpoint.items() if key in type(self).model_fields and key != "driver"}
        if "password_file" in endpoint:
            changes["password"] = FileSecret(Path(endpoint["password_file"]))
        if "ca_file" in endpoint:
            changes["ca_file"] = Path(endpoint["ca_file"])
        return self.model_copy(update=changes)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if "kind" not in vars(cls):
            return super().__get_pydantic_json_schema__(schema, handler)
        described: list[JsonSchemaValue] = []
        for name in registered_drivers().get(cls.kind, ()):
            try:
                model = load_driver(cls, name)
            except ValueError:  # one that cannot be used is told of where it is named
                continue
            model.model_rebuild()
            described.append(dict(handler(model.__pydantic_core_schema__)))
            properties = described[-1]["properties"]
            for key, text in field_texts(model).items():
                properties[key]["description"] = text
            properties["driver"]["enum"] = [name]
        return {"anyOf": described}


D = TypeVar("D", bound=Driven)


def load_driver(base: type[D], name: str) -> type[D]:
    """The model that is registered under ``name`` for the kind of ``base``.

    Raises what :func:`~rackloop.lab.yaml.wrong` gives where there is none, or it is not what it has to be.
    """
    drivers = registered_drivers().get(base.kind, {})
    if not drivers:
        raise wrong(f"no driver of a {base.kind} is registered: install Rackloop again, as ./rackloop does")
    if name not in drivers:
        elsewhere = [kind for kind, others in registered_drivers().items() if name in others]
        as_what = f" for a {base.kind}, but for a {elsewhere[0]}" if elsewhere else ""
        raise wrong(f"{kind_of(name)} is not known here{as_what}; {guess(name, drivers)}")
    entry = drivers[name]
    where = f"the driver {base.kind}.{name} ({entry.value})"
    if _BOTH in entry.value:
        raise wrong(f"{where} is registered by two packages; remove one of them")
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's module raises when it is imported
        said = error if isinstance(error, Exception) else repr(error)
        raise wrong(f"{where} cannot be loaded: {said}; install the package that has it again") from None
    is_one = isinstance(found, type) and issubclass(found, base) and found.model_config.get("extra") == "forbid"
    if not is_one or inspect.isabstract(found):
        raise wrong(f"{where} is no driver of a {base.kind}; derive it from rackloop_drivers.boxes, with all methods")
    return cast("type[D]", found)

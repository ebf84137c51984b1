"""The active faults of a mock rack by key, kept by labd and served on its control socket."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError

from rackloop.errors import BadInput, RackloopError
from rackloop.lab import Part
from rackloop.names import guess
from rackloop_drivers.host_tools import require_key

Standing = dict[str, Any]
"""Faults of a part by their keys, each as its part's ``faults`` reads it.

A fault made by other means than the ledger has no key and goes by a name that begins with ``#``.
"""


class FaultyPart(Protocol):
    """A part of the rack as the ledger breaks and mends it. ``faults`` reads a fault from JSON; its kinds are a union.

    ``begin`` adds a fault to those that stand, ``end`` takes one away from what ``remains``; each is done when it
    returns and raises a RackloopError, having done nothing, where it cannot be. ``found`` reads the equipment: those of
    the faults ``known`` that are true of it now, and what is broken there that none of them accounts for.
    """

    faults: TypeAdapter[Any]

    async def begin(self, key: str, fault: Any, standing: Standing) -> None: ...  # noqa: D102
    async def end(self, key: str, fault: Any, remains: Standing) -> None: ...  # noqa: D102
    async def found(self, known: Standing) -> Standing: ...  # noqa: D102


class FaultLedger:
    """Breaks ``parts``, by the names of their resources, under keys; see ``docs/reference/mock-hosts.md``."""

    ops = frozenset({"break", "mend", "standing"})

    def __init__(self, parts: Mapping[str, FaultyPart]) -> None:
        self._parts = parts
        self._standing: dict[str, Standing] = defaultdict(dict)
        self._changing: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The control socket's answer to one of ``ops``."""
        try:
            return {"ok": True, **await self._act(request)}
        except BadInput as error:
            return bad_request(str(error))
        except RackloopError as error:
            return _refusal("refused", str(error))

    async def _act(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "standing" and "resource" not in request:
            shown = {name: await self._shown(name) for name in self._parts}
            return {"standing": {name: faults for name, faults in shown.items() if faults}}
        resource = str(Part.of_resource(str(request.get("resource"))))
        if resource not in self._parts:
            raise BadInput(f"nothing that can be broken is called {resource!r}; {guess(resource, self._parts)}")
        if request["op"] == "standing":
            return {"standing": {resource: await self._shown(resource)}}
        key = str(request.get("key"))
        async with self._changing[resource]:
            if request["op"] == "mend":
                return {"mended": await self._mend(resource, key)}
            require_key(key)
            await self._break(resource, key, request.get("fault"))
            return {}

    async def _break(self, resource: str, key: str, given: Any) -> None:
        part = self._parts[resource]
        try:
            fault = part.faults.validate_python(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise BadInput(f"{resource} cannot be broken as {given}: {where}: {first['msg']}") from None
        standing = await self._current(resource)
        if key not in standing:
            await part.begin(key, fault, standing)
            self._standing[resource] = {**standing, key: fault}

    async def _mend(self, resource: str, key: str) -> bool:
        standing = await self._current(resource)
        if key not in standing:
            return False
        remains = {other: fault for other, fault in standing.items() if other != key}
        await self._parts[resource].end(key, standing[key], remains)
        self._standing[resource] = remains
        return True

    async def _shown(self, resource: str) -> dict[str, dict[str, Any]]:
        async with self._changing[resource]:
            standing: dict[str, BaseModel] = await self._current(resource)
            return {key: fault.model_dump(mode="json") for key, fault in standing.items()}

    async def _current(self, resource: str) -> Standing:
        """The standing faults: without what ended by itself, with what was broken by another way."""
        self._standing[resource] = await self._parts[resource].found(self._standing[resource])
        return self._standing[resource]


def bad_request(message: str) -> dict[str, Any]:
    """The control socket's answer to a request that makes no sense."""
    return _refusal("bad_request", message)


def _refusal(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": message}}

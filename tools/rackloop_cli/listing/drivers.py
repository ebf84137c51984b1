"""`rackloop driver list`: the drivers that a lab description can name, and their keys."""

from __future__ import annotations

import inspect
from typing import Any

from rackloop.errors import EXIT_PASS
from rackloop.lab import Bmc, Driven, Fabric, Pdu, Phy, SerialConsole, load_driver, registered_drivers
from rackloop.lab.yaml import field_texts
from rackloop_cli.listing.rows import print_json, print_rows

_KINDS: tuple[type[Driven], ...] = (Fabric, Phy, Bmc, Pdu, SerialConsole)


def run(*, as_json: bool) -> int:
    """Print every registered driver, of Rackloop and of other packages; one that cannot be loaded says why."""
    found = [
        _described(base, name, entry.value, entry.dist.name if entry.dist else "")
        for base in _KINDS
        for name, entry in registered_drivers().get(base.kind, {}).items()
    ]
    if as_json:
        print_json(drivers=found)
    else:
        rows = [(one["kind"], one["name"], ", ".join(one["keys"]), one["package"], one["about"]) for one in found]
        print_rows(("kind", "driver", "keys", "package", "about"), rows)
    return EXIT_PASS


def _described(base: type[Driven], name: str, value: str, package: str) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": base.kind, "name": name, "class": value, "package": package}
    try:
        model = load_driver(base, name)
    except ValueError as error:
        return found | {"keys": {}, "simulated": False, "about": str(error)}
    about = (inspect.getdoc(model) or "").partition("\n")[0]
    hidden = {"driver", "ports", "outlet"} if issubclass(model, Fabric) and model.is_fixed else {"driver"}
    texts = {key: text for key, text in field_texts(model).items() if key not in hidden}
    return found | {"keys": texts, "simulated": model.is_simulated, "about": about}

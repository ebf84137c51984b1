"""The wheel's build hook: adds labs and drive profiles, which are beside a package, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExampleLabs(BuildHookInterface):  # type: ignore[type-arg]  # the parameter is the builder's config, unused here
    """Puts the YAML files of ``labs/`` into a wheel's ``rackloop_data``; an editable install reads the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files."""
        if version == "standard":
            for path in sorted(Path(self.root, "labs").rglob("*.yaml")):
                name = path.relative_to(self.root)
                build_data["force_include"][str(name)] = f"rackloop_data/{name}"

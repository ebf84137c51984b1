"""The wheel's build hook: builds the native code and puts it in, tagged with the platform it was built on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

PROGRAMS = ("blobload", "drivesim", "hosttool", "rackd", "rackprobe", "storageswitch")
DELIVERED = ("rackprobe", "storageswitch")
"""The programs that are built for other machines too, where RACKLOOP_NATIVE_TARGETS names those."""
LIBRARY = "librackloop_erasure.so"


class NativePrograms(BuildHookInterface):  # type: ignore[type-arg]  # the parameter is the builder's config, unused here
    """Builds the workspace above this folder, which is one step with nothing to do when it is built already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling passes it
        """Called by hatchling before it collects files."""
        workspace = Path(self.root).parent
        target = workspace / "target"
        environment = {**os.environ, "CARGO_TERM_QUIET": "true"}
        subprocess.run([workspace / "build"], env=environment, check=True)
        for machine in os.environ.get("RACKLOOP_NATIVE_TARGETS", "").split():
            subprocess.run([workspace / "build", "--target", machine], env=environment, check=True)
            for program in DELIVERED:
                there = f"{machine}/{program}"
                build_data["force_include"][str(target / "release" / there)] = f"rackloop_native/bin/{there}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{next(platform_tags())}"
        for program in PROGRAMS:
            build_data["force_include"][str(target / "release" / program)] = f"rackloop_native/bin/{program}"
        build_data["force_include"][str(target / "release" / LIBRARY)] = f"rackloop_native/lib/{LIBRARY}"
        build_data["force_include"][str(workspace.parent / "LICENSE")] = "rackloop_native/LICENSE"

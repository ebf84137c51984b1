"""Ansible module: put back the settings of devices that a udev rule of Rackloop has changed."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule  # type: ignore[import-untyped]
from ansible.module_utils.rackloop_kinds import KINDS, Gone, Refused, run

DOCUMENTATION = r"""
module: rackloop_device_settings
short_description: Put back settings of devices that a udev rule has changed
description:
  - A rule keeps what an attribute was before in udev's database, as C(RACKLOOP_BEFORE_) and its name in capitals.
  - Has udevd read its rules again, then puts back what the database has of each device that is there.
  - A setting that the kernel does not take back stays until the next boot; the task is then skipped, for that reason.
  - Run it once the rule is gone, and have udevd forget by another event of each device.
author: [Rackloop]
"""

EXAMPLES = r"""
- name: Put back the settings of devices
  rackloop_device_settings:
"""

RETURN = r"""
changes:
  description: The attributes that were put back.
  returned: always
  type: list
  elements: str
left:
  description: The attributes that the kernel does not set back.
  returned: always
  type: list
  elements: str
"""

_BEFORE = "E: RACKLOOP_BEFORE_"


def recorded(database: str) -> Iterator[tuple[str, str]]:
    """Attributes below /sys and what each was before, from what ``udevadm info --export-db`` prints."""
    device = ""
    for line in database.splitlines():
        if line.startswith("P: "):
            device = line[len("P: ") :]
        elif line.startswith(_BEFORE):
            attribute, _, before = line[len(_BEFORE) :].partition("=")
            yield f"{device}/{attribute.lower()}", before


def restore(root: Path, database: str, *, only_say: bool) -> tuple[list[str], list[str]]:
    """Put back what was before; returns the attributes that were changed, and those the kernel does not set back."""
    value = KINDS["value"]
    changes, left = [], []
    for name, before in recorded(database):
        # A device may have gone since the database was read.
        with suppress(Gone):
            attribute = f"{root}{name}"
            if value.now(attribute) == before:
                continue
            try:
                if not only_say:
                    value.put(attribute, before)
            except OSError as error:
                # A link's policy, once set, cannot be `keep_firmware_settings` again.
                if error.errno != errno.EINVAL:
                    raise
                left.append(name)
            else:
                changes.append(name)
    return changes, left


def main() -> None:
    """Answer one task of a playbook."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        if not module.check_mode:
            run("udevadm", "control", "--reload")
        changes, left = restore(Path("/sys"), run("udevadm", "info", "--export-db"), only_say=module.check_mode)
    except (Refused, OSError) as error:
        module.fail_json(msg=str(error))
    if left:
        msg = f"the kernel does not set these back before the next boot: {', '.join(left)}"
        module.exit_json(changed=bool(changes), changes=changes, left=left, skipped=True, msg=msg)
    module.exit_json(changed=bool(changes), changes=changes, left=left)


if __name__ == "__main__":
    main()

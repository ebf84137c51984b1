"""``hdparm`` 9.65 on the ATA drives of a mock server: what they are, how they erase themselves, and sectors made bad.

Flash has the Sanitize feature set, with block erase and crypto scramble; disks have the Security feature set alone.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_SANITIZES: Mapping[str, tuple[str, str]] = {
    "sanitize-block-erase": ("block-erase", "SANITIZE_BLOCK_ERASE"),
    "sanitize-crypto-scramble": ("crypto-erase", "SANITIZE_CRYPTO_SCRAMBLE"),
    "sanitize-overwrite": ("overwrite", "SANITIZE_OVERWRITE"),
}
_FLAGS = {
    "-I": "identify",
    "--sanitize-block-erase": "sanitize-block-erase",
    "--sanitize-crypto-scramble": "sanitize-crypto-scramble",
    "--sanitize-status": "sanitize-status",
    "--yes-i-know-what-i-am-doing": "sure",
}
_VALUED = {
    "--make-bad-sector": "make-bad-sector",
    "--sanitize-overwrite": "sanitize-overwrite",
    "--sanitize-overwrite-passes": "passes",
    "--security-disable": "SECURITY_DISABLE",
    "--security-erase": "SECURITY_ERASE",
    "--security-set-pass": "SECURITY_SET_PASS",
    "--security-unlock": "SECURITY_UNLOCK",
    "--user-master": "user",
}
_USAGE = "\nhdparm - get/set hard disk parameters - version v9.65, by Mark Lord.\n"
_UNSURE = """Use of --sanitize is VERY DANGEROUS.
This sanitize command destroys all user data.
Please supply the --yes-i-know-what-i-am-doing flag if you really want this.
Program aborted.
"""
_UNSURE_OF_A_SECTOR = """Use of --make-bad-sector is VERY DANGEROUS.
You are trying to deliberately corrupt a low-level sector on the media.
This is a BAD idea, and can easily result in total data loss.
Please supply the --yes-i-know-what-i-am-doing flag if you really want this.
Program aborted.
"""
_UNCLAIMED = """Device does not claim to implement the required WRITE_UNC_EXT command
This operation will probably fail (continuing regardless).
"""
_ABORTED = "SG_IO: bad/missing sense data, sb[]:  70 00 0b 00 00 00 00 0a 04 41 e0 01" + " 00" * 20 + "\n"
_BAD_SECTOR = re.compile(r"[fF]?(\d+)")
_WHOLE = 0xFFFF
_MINUTES = 2


def hdparm(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Identify a drive (``-I``), have it sanitize itself, or set, take away and use its password."""
    try:
        options = Options.of(argv, flags=_FLAGS, valued=_VALUED)
    except OptionError as error:
        return Answer(stderr=f"hdparm: {error}\n{_USAGE}", status=errno.EINVAL)
    if len(options.operands) != 1:
        return Answer(_USAGE)
    (path,) = options.operands
    node = device_node(view, path)
    drive = next((each for each in view.drives if node == f"/dev/{each.block_name}"), None)
    if drive is None:
        return Answer(stderr=f"{path}: No such file or directory\n", status=errno.ENOENT)
    head = f"\n{path}:\n"
    if drive.protocol != "sata":
        return _failed(head, " HDIO_DRIVE_CMD(identify) failed", errno.ENOTTY)
    if "identify" in options.flags:
        return Answer(head + identified(drive))
    asked = next((name for name in _SANITIZES if name in options.flags or options.value(name) is not None), None)
    if asked is not None or "sanitize-status" in options.flags:
        return _sanitize(head, drive, asked, acts, is_sure="sure" in options.flags)
    if (sector := options.value("make-bad-sector")) is not None:
        return _make_bad(head, drive, sector, acts, is_sure="sure" in options.flags)
    security = next((name for name, _ in options.values if name.startswith("SECURITY")), None)
    return Answer(head) if security is None else _secure(head, drive, security, options, acts)


def identified(drive: AttachedDrive) -> str:
    """The drive as ``hdparm -I`` describes it, without the name that it was asked by."""
    sectors = drive.size_bytes // 512
    rate = "Solid State Device" if not drive.is_rotational else str(drive.rpm or 7200)
    firmware = drive.firmware_state
    sanitizes = ("SANITIZE feature set", "CRYPTO_SCRAMBLE_EXT command", "BLOCK_ERASE_EXT command")
    features = (
        *("SMART feature set", "Security Mode feature set", "Write cache", "NOP cmd", "48-bit Address feature set"),
        *("Mandatory FLUSH_CACHE", "FLUSH_CACHE_EXT", "64-bit World wide name", "Native Command Queueing (NCQ)"),
    )
    has_password = firmware.password is not None
    enabled = {"Security Mode feature set": has_password}
    marks = ("WRITE_UNCORRECTABLE_EXT command",) if firmware.marks else ()
    shown = [*features, *marks, *(sanitizes if _sanitizes(drive) else ())]
    mib, mb = drive.size_bytes >> 20, drive.size_bytes // 1_000_000
    lines = [
        "",
        "ATA device, with non-removable media",
        f"\tModel Number:       {drive.model:40}",
        f"\tSerial Number:      {drive.serial:20}",
        f"\tFirmware Revision:  {drive.firmware:8}",
        "Standards:",
        "\tSupported: 11 10 9 8 7 6 5 ",
        "\tLikely used: 11",
        "Configuration:",
        f"\tLBA48  user addressable sectors:{sectors:>12}",
        "\tLogical  Sector size:                   512 bytes",
        f"\tPhysical Sector size:          {drive.sector_bytes:>12} bytes",
        f"\tdevice size with M = 1024*1024:{mib:>12} MBytes",
        f"\tdevice size with M = 1000*1000:{mb:>12} MBytes ({mb // 1000} GB)",
        f"\tNominal Media Rotation Rate: {rate}",
        "Commands/features:",
        "\tEnabled\tSupported:",
        *(f"\t   {'*' if enabled.get(name, True) else ' '}\t{name}" for name in shown),
        "Security: ",
        "\tMaster password revision code = 65534",
        "\t\tsupported",
        f"{_flag(is_set=has_password)}enabled",
        f"{_flag(is_set=firmware.is_locked)}locked",
        "\tnot\tfrozen",
        "\tnot\texpired: security count",
        "\t\tsupported: enhanced erase",
        *(["\tSecurity level high"] if has_password else []),
        f"\t{_MINUTES}min for SECURITY ERASE UNIT. {_MINUTES}min for ENHANCED SECURITY ERASE UNIT.",
        *(_world_wide_name(drive.wwn) if drive.wwn else ()),
        "Checksum: correct",
    ]
    return "\n".join(lines) + "\n"


def _sanitize(head: str, drive: AttachedDrive, asked: str | None, acts: HostActs, *, is_sure: bool) -> Answer:
    """Begin a sanitize, or tell of the last."""
    if asked is not None and not is_sure:
        return Answer(head, _UNSURE, errno.EPERM)
    if not _sanitizes(drive):
        return Answer(head, "SANITIZE feature set is not supported\n", errno.EINVAL)
    firmware = drive.firmware_state
    if asked is None:
        state, rest = "SD0 Sanitize Idle", ""
        if firmware.erased is not None:
            progress = int(firmware.erased * _WHOLE)
            state = "SD2 Sanitize operation In Process"
            rest = f"    Progress: {progress:#x} ({100 * (progress + 1) // _WHOLE}%)\n"
        elif firmware.erased_by is not None:
            rest = "    Last Sanitize Operation Completed Without Error\n"
        return Answer(f"{head}Issuing SANITIZE_STATUS command\nSanitize status:\n    State:    {state}\n{rest}")
    method, name = _SANITIZES[asked]
    head += f"Issuing {name} command\n"
    if method == "overwrite" or firmware.erased is not None or firmware.is_locked:
        return _failed(head, "SANITIZE failed", errno.EIO)
    acts.sanitize(drive, method)
    return Answer(f"{head}Operation started in background\nYou may use `--sanitize-status` to check progress\n")


def _make_bad(head: str, drive: AttachedDrive, sector: str, acts: HostActs, *, is_sure: bool) -> Answer:
    """Mark a sector as uncorrectable, flagged where its number has an f before it."""
    found = _BAD_SECTOR.fullmatch(sector)
    if found is None:
        return Answer(stderr=_USAGE, status=errno.EINVAL)
    if not is_sure:
        return Answer(head, _UNSURE_OF_A_SECTOR, errno.EPERM)
    first = int(found[1])
    is_done = drive.firmware_state.marks and first < drive.size_bytes // drive.sector_bytes
    if not drive.firmware_state.marks:
        head += _UNCLAIMED
    way = "flagged" if sector[0] in "fF" else "pseudo"
    if is_done:
        acts.mark(drive, first, 1)
    # It says so whatever the drive said.
    said = f"{head}Corrupting sector {first} (WRITE_UNC_EXT as {way}): succeeded\n"
    return Answer(said, "" if is_done else _ABORTED)


def _secure(head: str, drive: AttachedDrive, command: str, options: Options, acts: HostActs) -> Answer:
    """A command of the Security feature set with a user password."""
    password, firmware = options.value(command), drive.firmware_state
    mode = ", mode=high" if command == "SECURITY_SET_PASS" else ""
    said = f'security_password: "{password}"\n'
    head = f'{said}{head} Issuing {command} command, password="{password}", user=user{mode}\n'
    if command == "SECURITY_SET_PASS":
        if firmware.is_locked:
            return _failed(head, command, errno.EIO)
        acts.set_password(drive, password)
        return Answer(head)
    if password != firmware.password:
        # To take a password away it unlocks the drive first.
        return _failed(head, "SECURITY_UNLOCK" if command == "SECURITY_DISABLE" else command, errno.EIO)
    if command == "SECURITY_ERASE":
        acts.sanitize(drive, "overwrite" if drive.is_rotational else "block-erase", at_once=True)
    acts.set_password(drive, password if command == "SECURITY_UNLOCK" else None)
    return Answer(head)


def _world_wide_name(wwn: str) -> Iterator[str]:
    yield f"Logical Unit WWN Device Identifier: {wwn}"
    yield f"\tNAA\t\t: {wwn[0]}"
    yield f"\tIEEE OUI\t: {wwn[1:7]}"
    yield f"\tUnique ID\t: {wwn[7:]}"


def _sanitizes(drive: AttachedDrive) -> bool:
    return drive.firmware_state.sanitizes and not drive.is_rotational


def _flag(*, is_set: bool) -> str:
    return "\t\t" if is_set else "\tnot\t"


def _failed(head: str, what: str, number: int) -> Answer:
    return Answer(head, f"{what}: {os.strerror(number)}\n", number)

"""NVMe drives that erase themselves: Sanitize, or Format NVM where they have no Sanitize.

Sources: NVM Express Base Specification 2.0, Identify Controller (SANICAP, OACS, FNA), Sanitize Status log (SPROG,
SSTAT); nvme-sanitize(1), nvme-format(1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rackloop.abilities import SanitizeMethod
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported, UnknownFormat
from rackloop_drivers.drive.host_drive._erasing import ErasureSeen, ErasureState, Progress, Tools

# Bits of SANICAP, and the action of the Sanitize command.
_SANITIZES = {
    SanitizeMethod.BLOCK_ERASE: (0x2, "2"),
    SanitizeMethod.CRYPTO_ERASE: (0x1, "4"),
    SanitizeMethod.OVERWRITE: (0x4, "3"),
}
_OACS_FORMAT = 0x2
_FNA_CRYPTO = 0x4
# Secure Erase Settings of Format NVM.
_FORMATS = {SanitizeMethod.BLOCK_ERASE: "1", SanitizeMethod.CRYPTO_ERASE: "2"}
_STATUS = re.compile(r"\((\d+)\)")
_STATES = {2: ErasureState.UNDER_WAY, 3: ErasureState.FAILED}
_WHOLE = 0x10000
# An hour for a format, which answers once it is done; nvme-cli itself waits no longer than it is told.
_FORMAT_MS = 3_600_000
_NAMESPACES = """
node=$(readlink -f "$1")
own=$(readlink -f "/sys/block/${node##*/}/device")
for block in /sys/block/nvme*; do
  [ -e "$block" ] && [ "$(readlink -f "$block/device")" = "$own" ] && echo "${block##*/}"
done
exit 0
"""


class NvmeErasure:
    """:class:`~rackloop_drivers.drive.host_drive._erasing.Erasure` of an NVMe drive, by a node of its only namespace.

    A sanitize is of the whole subsystem: with more than one namespace there it raises NotSupported.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        """The sanitize operations of SANICAP; where there are none, those of Format NVM."""
        controller = self._json("id-ctrl", deadline=deadline)
        return _sanitizes(controller) or _formats(controller)

    def begin(self, method: SanitizeMethod, deadline: Deadline, progress: Progress) -> None:
        """Sanitize without waiting for it; a format is waited for."""
        self.require(method, deadline)
        if method in _sanitizes(self._json("id-ctrl", deadline=deadline)):
            passes = ("--owpass=1",) if method is SanitizeMethod.OVERWRITE else ()
            self._tools.run("nvme", "sanitize", f"--sanact={_SANITIZES[method][1]}", *passes, deadline=deadline)
            return
        progress(None, "formats itself, and does not say how far it is")
        in_use = _format_in_use(self._json("id-ns", deadline=deadline))
        # It is held by ourselves, which nvme-cli would take for use by another.
        options = (f"--ses={_FORMATS[method]}", *in_use, f"--timeout={_FORMAT_MS}", "--force")
        self._tools.run("nvme", "format", *options, deadline=deadline)

    def seen(self, deadline: Deadline) -> ErasureSeen:
        """The sanitize log; a drive that has none never is under way."""
        if not _sanitizes(self._json("id-ctrl", deadline=deadline)):
            return ErasureSeen(ErasureState.OVER)
        completed = self._tools.run("nvme", "sanitize-log", "--output-format=json", deadline=deadline)
        # Of one drive, by whatever name it was asked.
        log = next(iter(self._parsed(completed.stdout).values()), None)
        sstat = log.get("sstat") if isinstance(log, dict) else None
        # Its key differs from version to version.
        told = [_STATUS.match(value) for value in sstat.values() if isinstance(value, str)] if sstat else []
        found = next(filter(None, told), None)
        if not isinstance(log, dict) or found is None or not isinstance(log.get("sprog"), int):
            raise self._unknown("a sanitize log without sprog and a status", completed.stdout)
        state = _STATES.get(int(found[1]), ErasureState.OVER)
        return ErasureSeen(state, (log["sprog"] + 1) / _WHOLE if state is ErasureState.UNDER_WAY else None)

    def end(self, deadline: Deadline) -> None:
        """Nothing is left behind but a failure."""
        if self.seen(deadline).state is ErasureState.FAILED:
            raise LabError(
                f"{self._tools.where}: the drive failed to sanitize itself, and refuses reads and writes until that "
                "succeeds: sanitize it again, or replace it"
            )

    def require(self, method: SanitizeMethod, deadline: Deadline) -> None:  # noqa: ARG002 - each is of all namespaces
        """Return where the controller has no other namespace. Raises NotSupported where it has."""
        script = ["sh", "-c", _NAMESPACES, "namespaces", self._tools.node]
        names = self._tools.executor.run(script, deadline).stdout.split()
        if len(names) > 1:
            raise NotSupported(
                f"{self._tools.where}: its controller has the namespaces {', '.join(names)}, and would erase all of "
                "them: delete the others first"
            )

    def _json(self, what: str, deadline: Deadline) -> Mapping[str, Any]:
        return self._parsed(self._tools.run("nvme", what, "--output-format=json", deadline=deadline).stdout)

    def _parsed(self, raw: str) -> Mapping[str, Any]:
        try:
            parsed = json.loads(raw)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise self._unknown("no JSON object", raw)
        return parsed

    def _unknown(self, found: str, raw: str) -> UnknownFormat:
        return UnknownFormat(
            f"{self._tools.where}: nvme printed {found}; known here: the fields of nvme-cli 2.3", tool="nvme", raw=raw
        )


def _sanitizes(controller: Mapping[str, Any]) -> tuple[SanitizeMethod, ...]:
    capabilities = int(controller.get("sanicap", 0))
    return tuple(method for method, (bit, _) in _SANITIZES.items() if capabilities & bit)


def _format_in_use(namespace: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of ``nvme format`` that keep the LBA format, the place of the metadata and the protection (DPS)."""
    flbas, dps = int(namespace.get("flbas", 0)), int(namespace.get("dps", 0))
    # Bits 6:5 count where a namespace has more than 16 formats, and are zero elsewhere.
    number = flbas & 0xF | (flbas >> 5 & 0x3) << 4
    return f"--lbaf={number}", f"--ms={flbas >> 4 & 1}", f"--pi={dps & 0x7}", f"--pil={dps >> 3 & 1}"


def _formats(controller: Mapping[str, Any]) -> tuple[SanitizeMethod, ...]:
    if not int(controller.get("oacs", 0)) & _OACS_FORMAT:
        return ()
    has_crypto = int(controller.get("fna", 0)) & _FNA_CRYPTO
    return (SanitizeMethod.BLOCK_ERASE, SanitizeMethod.CRYPTO_ERASE) if has_crypto else (SanitizeMethod.BLOCK_ERASE,)

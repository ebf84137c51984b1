"""NVMe drives that erase themselves: Sanitize, or Format NVM where they have no Sanitize.

Sources: NVM Express Base Specification 2.0, Identify Controller (SANICAP, OACS, FNA, NN, CMIC), Allocated and Active
Namespace ID list (CNS 10h and 02h), Sanitize Status log (SPROG, SSTAT); nvme-sanitize(1), nvme-format(1),
nvme-list-ns(1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rackloop.abilities import SanitizeMethod
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported, UnknownFormat
from rackloop_drivers.drive.host_drive._erasing import ErasureSeen, ErasureState, Progress, Tools, require_not_failed

# Bits of SANICAP, and the action of the Sanitize command.
_SANITIZES = {
    SanitizeMethod.BLOCK_ERASE: (0x2, "2"),
    SanitizeMethod.CRYPTO_ERASE: (0x1, "4"),
    SanitizeMethod.OVERWRITE: (0x4, "3"),
}
_OACS_FORMAT = 0x2
_OACS_NAMESPACES = 0x8
# Format, or secure erase as part of it, is of all namespaces.
_FNA_ALL = 0x3
_FNA_CRYPTO = 0x4
_CMIC_CONTROLLERS = 0x2
# Secure Erase Settings of Format NVM.
_FORMATS = {SanitizeMethod.BLOCK_ERASE: "1", SanitizeMethod.CRYPTO_ERASE: "2"}
_STATUS = re.compile(r"\((\d+)\)")
_STATES = {2: ErasureState.UNDER_WAY, 3: ErasureState.FAILED}
_NEVER = 0
_WHOLE = 0x10000
# An hour for a format, which answers once it is done; nvme-cli itself waits no longer than it is told.
_FORMAT_MS = 3_600_000
_NSID = """
node=$(readlink -f "$1") && cat "/sys/block/${node##*/}/nsid"
"""
# "NVMe status: Invalid Field in Command: ..." of nvme-cli 2, "NVMe Status:INVALID_FIELD(2)" of older ones.
_REFUSED = re.compile("NVMe status:", re.IGNORECASE)
_LISTED = re.compile(r"\[ *\d+\]:(0x[0-9a-f]+)")


class NvmeErasure:
    """:class:`~rackloop_drivers.drive.host_drive._erasing.Erasure` of an NVMe drive, by a node of its only namespace.

    A sanitize is of the whole NVM subsystem, and a format may be: where another namespace is allocated there, attached
    to this controller or not, or might be, it raises NotSupported.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._has_sanitized = False

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
            self._has_sanitized = True
            return
        progress(None, "formats itself, and does not say how far it is")
        in_use = _format_in_use(self._json("id-ns", deadline=deadline))
        # It is held by ourselves, which nvme-cli would take for use by another.
        options = (f"--ses={_FORMATS[method]}", *in_use, f"--timeout={_FORMAT_MS}", "--force")
        self._tools.run("nvme", "format", *options, deadline=deadline)

    def seen(self, deadline: Deadline) -> ErasureSeen:
        """The sanitize log; a drive that has none never is under way.

        Raises LabError where the drive took the command of :meth:`begin`, and says that it was never sanitized.
        """
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
        if self._has_sanitized and int(found[1]) == _NEVER:
            raise LabError(f"{self._tools.where}: the drive took the sanitize command, and says it was never sanitized")
        state = _STATES.get(int(found[1]), ErasureState.OVER)
        return ErasureSeen(state, (log["sprog"] + 1) / _WHOLE if state is ErasureState.UNDER_WAY else None)

    def end(self, deadline: Deadline) -> None:
        """Raise LabError where the drive reports a failed sanitize; nothing else is left behind."""
        require_not_failed(self.seen(deadline), self._tools.where)

    def require(self, method: SanitizeMethod, deadline: Deadline) -> None:
        """Return where the erasure is of this namespace alone. Raises NotSupported where it is not, or might not be."""
        controller = self._json("id-ctrl", deadline=deadline)
        if method not in _sanitizes(controller) and not int(controller.get("fna", _FNA_ALL)) & _FNA_ALL:
            return
        own = self._own_nsid(deadline)
        if listed := self._listed("--all", deadline=deadline):
            self._require_alone(own, listed)
        elif controller.get("nn") != 1:
            # What is not managed was made with the drive: nothing is allocated without being attached. But it may be
            # attached to another controller of the subsystem.
            is_fixed = not int(controller.get("oacs", _OACS_NAMESPACES)) & _OACS_NAMESPACES
            if not is_fixed or int(controller.get("cmic", _CMIC_CONTROLLERS)) & _CMIC_CONTROLLERS:
                raise NotSupported(
                    f"{self._tools.where}: it would erase all namespaces of its NVM subsystem, and does not tell "
                    f"which are allocated there besides {own} (up to {controller.get('nn')} may be)"
                )
            self._require_alone(own, self._listed(deadline=deadline) or [])

    def _require_alone(self, own: int, listed: list[int]) -> None:
        if listed != [own]:
            raise NotSupported(
                f"{self._tools.where}: it would erase all namespaces of its NVM subsystem, of which it is {own} and "
                f"there are {', '.join(map(str, listed)) or 'none'}: delete the others first"
            )

    def _own_nsid(self, deadline: Deadline) -> int:
        said = self._tools.executor.run(["sh", "-c", _NSID, "nsid", self._tools.node], deadline)
        if not said.stdout.strip().isdecimal():
            why = said.stderr.strip() or f"it says {said.stdout.strip()!r}"
            raise LabError(f"{self._tools.where}: the kernel does not say which namespace it is: {why}")
        return int(said.stdout)

    def _listed(self, *which: str, deadline: Deadline) -> list[int] | None:
        """The namespaces that ``nvme list-ns`` lists; None where the controller refuses that."""
        # Before 2.0 nvme-cli prints lists as text alone, and takes no word of another format.
        for output in (("--output-format=json",), ()):
            argv = ("nvme", "list-ns", *which, *output)
            completed = self._tools.run(*argv, deadline=deadline, accept=range(256))
            if not completed.status:
                return self._nsids(completed.stdout)
            if _REFUSED.search(completed.stdout + completed.stderr):
                return None
        self._tools.check(completed)
        return None

    def _nsids(self, raw: str) -> list[int]:
        lines = [line for line in raw.splitlines() if line.strip()]
        found = [_LISTED.fullmatch(line.strip()) for line in lines]
        if all(found):
            return [int(match[1], 16) for match in found if match]
        try:
            return [int(one["nsid"]) for one in json.loads(raw)["nsid_list"]]
        except (KeyError, TypeError, ValueError) as error:
            raise self._unknown("another list of namespaces", raw) from error

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

"""The SES diagnostic pages of an expander's enclosure, as sg_ses 2.48 shows them: each slot is an array device slot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander

TYPE_NAME = "ArrayDevicesInSubEnclsr0"
_OK, _NOT_INSTALLED, _NOT_AVAILABLE = 1, 5, 7
_STATUS_NAMES = {0: "Unsupported", _OK: "OK", _NOT_INSTALLED: "Not installed", _NOT_AVAILABLE: "Not available"}
_DEVICE_OFF = 1 << 4
_TARGETS = {"sas": " SSP", "sata": " SATA_device"}
_TYPE_LINE = "    Element type: Array device slot, subenclosure id: 0"
# The last three bytes of a status element, as its lines name their bits: byte, bit, name.
_FLAGS = (
    ((1, 7, "OK"), (1, 6, "Reserved device"), (1, 5, "Hot spare"), (1, 4, "Cons check")),
    ((1, 3, "In crit array"), (1, 2, "In failed array"), (1, 1, "Rebuild/remap"), (1, 0, "R/R abort")),
    ((2, 7, "App client bypass A"), (2, 6, "Do not remove"), (2, 5, "Enc bypass A"), (2, 4, "Enc bypass B")),
    ((2, 3, "Ready to insert"), (2, 2, "RMV"), (2, 1, "Ident"), (2, 0, "Report")),
    ((3, 7, "App client bypass B"), (3, 6, "Fault sensed"), (3, 5, "Fault reqstd"), (3, 4, "Device off")),
    ((3, 3, "Bypassed A"), (3, 2, "Bypassed B"), (3, 1, "Dev bypassed A"), (3, 0, "Dev bypassed B")),
)


@dataclass(frozen=True)
class Enclosure:
    """An expander's enclosure and the drives in its slots. With ``is_filtered`` flags that are clear are left out."""

    expander: AttachedExpander
    by_slot: dict[int, AttachedDrive]
    is_filtered: bool = False

    def element(self, slot: int | None) -> bytes:
        """The status element of a slot, or (None) the overall one of the type."""
        if slot is None:
            return bytes(4)
        if slot in self.expander.off_slots:
            return bytes([_NOT_AVAILABLE, 0, 0, _DEVICE_OFF])
        return bytes([_OK if slot in self.by_slot else _NOT_INSTALLED, 0, 0, 0])

    @property
    def identifier(self) -> str:
        """The line that introduces pages with status."""
        return f"  Primary enclosure logical identifier (hex): {self.expander.sas_address}"

    def supported(self) -> Iterator[str]:
        """The page of supported pages."""
        yield "Supported diagnostic pages:"
        yield "  Supported Diagnostic Pages [sdp] [0x0]"
        yield "  Configuration (SES) [cf] [0x1]"
        yield "  Enclosure Status/Control (SES) [ec,es] [0x2]"
        yield "  Element Descriptor (SES) [ed] [0x7]"
        yield "  Additional Element Status (SES-2) [aes] [0xa]"

    def configuration(self) -> Iterator[str]:
        """The configuration page."""
        yield "Configuration diagnostic page:"
        yield "  number of secondary subenclosures: 0"
        yield "  generation code: 0x0"
        yield "  enclosure descriptor list"
        yield "    Subenclosure identifier: 0 [primary]"
        yield "      relative ES process id: 1, number of ES processes: 1"
        yield "      number of type descriptor headers: 1"
        yield f"      enclosure logical identifier (hex): {self.expander.sas_address}"
        yield f"      enclosure vendor: RACKLOOP  product: {'EXPANDER':<16}  rev: 1.0 "
        yield "  type descriptor header and text list"
        yield _TYPE_LINE
        yield f"      number of possible elements: {self.expander.slots}"
        yield f"      text: {TYPE_NAME}"

    def status(self, index: int | None) -> Iterator[str]:
        """The enclosure status page, of all elements or of one."""
        yield "Enclosure Status diagnostic page:"
        yield "  INVOP=0, INFO=0, NON-CRIT=0, CRIT=0, UNRECOV=0"
        yield "  generation code: 0x0"
        yield "  status descriptor list"
        if index is None:
            yield f"{_TYPE_LINE} [ti=0]"
            yield "      Overall descriptor:"
            yield from self._flags(None, " " * 8)
        for slot in range(self.expander.slots) if index is None else [index]:
            yield f"      Element {slot} descriptor:"
            yield from self._flags(slot, " " * 8)

    def descriptors(self) -> Iterator[str]:
        """The element descriptor page."""
        yield "Element Descriptor In diagnostic page:"
        yield "  generation code: 0x0"
        yield "  element descriptor list (grouped by type):"
        yield f"{_TYPE_LINE} [ti=0]"
        yield f"      Overall descriptor: {TYPE_NAME}"
        for slot in range(self.expander.slots):
            yield f"      Element {slot} descriptor: Slot {slot:02}"

    def additional(self) -> Iterator[str]:
        """The additional element status page."""
        yield self.identifier
        yield "Additional element status diagnostic page:"
        yield "  generation code: 0x0"
        yield "  additional element status descriptor list"
        yield f"{_TYPE_LINE} [ti=0]"
        for slot in range(self.expander.slots):
            yield f"      Element index: {slot}  eiioe=0"
            yield from self._attached(slot, " " * 8)

    def joined(self, only: int | None) -> Iterator[str]:
        """The text of every page about each element, of all or of one slot."""
        yield self.identifier
        if only is None:
            yield f"{TYPE_NAME} [0,-1]  Element type: Array device slot"
            yield "  Enclosure Status:"
            yield from self._flags(None, " " * 4)
        for slot in range(self.expander.slots) if only is None else [only]:
            yield f"Slot {slot:02} [0,{slot}]  Element type: Array device slot"
            yield "  Enclosure Status:"
            yield from self._flags(slot, " " * 4)
            yield "  Additional Element Status:"
            yield from self._attached(slot, " " * 4)

    def _flags(self, slot: int | None, indent: str) -> Iterator[str]:
        element = self.element(slot)
        yield f"{indent}Predicted failure=0, Disabled=0, Swap=0, status: {_STATUS_NAMES[element[0]]}"
        for line in _FLAGS:
            bits = [(name, element[byte] >> bit & 1) for byte, bit, name in line]
            if not self.is_filtered or any(value for _, value in bits):
                yield indent + ", ".join(f"{name}={value}" for name, value in bits)

    def _attached(self, slot: int, indent: str) -> Iterator[str]:
        drive = self.by_slot.get(slot)
        yield f"{indent}Transport protocol: SAS"
        yield f"{indent}number of phys: 1, not all phys: 0, device slot number: {slot}"
        yield f"{indent}phy index: 0"
        yield f"{indent}  SAS device type: {'no SAS device attached' if drive is None else 'end device'}"
        if not self.is_filtered:
            yield f"{indent}  initiator port for:"
        if drive is not None or not self.is_filtered:
            yield f"{indent}  target port for:{_TARGETS[drive.protocol] if drive else ''}"
        yield f"{indent}  attached SAS address: 0x{self.expander.sas_address}"
        if drive is not None or not self.is_filtered:
            yield f"{indent}  SAS address: 0x{'0' if drive is None else drive.sas_address}"
        yield f"{indent}  phy identifier: 0x{slot:x}"

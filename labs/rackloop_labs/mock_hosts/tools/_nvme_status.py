"""The words of nvme-cli 2.3 where a controller refuses a command: the status by its name, text and number."""

from __future__ import annotations

INVALID_NAMESPACE = (
    "NVMe status: Invalid Namespace or Format: The namespace or the format of that namespace is invalid(0x400b)\n"
)
SANITIZE_IN_PROGRESS = (
    "NVMe status: Sanitize In Progress: The requested function is prohibited while a sanitize operation is in "
    "progress(0x1d)\n"
)
INVALID_FIELD = (
    "NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value in a defined field(0x4002)\n"
)
INVALID_OPCODE = (
    "NVMe status: Invalid Command Opcode: A reserved coded value or an unsupported value in the command opcode "
    "field(0x4001)\n"
)
OUT_OF_RANGE = (
    "NVMe status: LBA Out of Range: The command references an LBA that exceeds the size of the namespace(0x4080)\n"
)

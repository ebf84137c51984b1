"""Drive profiles: what all drives of a kind have in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """A kind of drive. ``identifiers`` are those such a drive reports besides its serial, the usual one first."""

    protocol: str
    model: str
    firmware: str
    sector_bytes: int
    is_rotational: bool
    identifiers: tuple[str, ...]


_SCSI_IDENTIFIERS = ("wwn", "by_path", "slot")
_NVME_IDENTIFIERS = ("eui64", "nguid", "by_path", "slot")

PROFILES = {
    "sata-ssd": Profile("sata", "RL SATA SSD", "RL10", 512, is_rotational=False, identifiers=_SCSI_IDENTIFIERS),
    "sata-hdd": Profile("sata", "RL SATA HDD", "RL10", 512, is_rotational=True, identifiers=_SCSI_IDENTIFIERS),
    "sas-hdd": Profile("sas", "RL SAS HDD", "RL10", 512, is_rotational=True, identifiers=_SCSI_IDENTIFIERS),
    "nvme-ssd": Profile("nvme", "RL NVMe SSD", "RL10", 512, is_rotational=False, identifiers=_NVME_IDENTIFIERS),
}

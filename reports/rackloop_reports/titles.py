"""Titles of tests and of groups of tests, as people write them."""

from __future__ import annotations

#: Words that are no English ones, or not written as they are spelt in a file's name.
_SPELLINGS = {
    "ahci": "AHCI",
    "bmc": "BMC",
    "cpu": "CPU",
    "ecc": "ECC",
    "hba": "HBA",
    "hdd": "HDD",
    "io": "I/O",
    "iops": "IOPS",
    "ipmi": "IPMI",
    "mtu": "MTU",
    "nvme": "NVMe",
    "pci": "PCI",
    "pcie": "PCIe",
    "phy": "PHY",
    "phys": "PHYs",
    "pts": "PTS",
    "sas": "SAS",
    "sata": "SATA",
    "smart": "SMART",
    "ssd": "SSD",
    "ssh": "SSH",
    "tcp": "TCP",
}
#: Names that read better in another order.
_PHRASES = {"undisturbed_io": "I/O undisturbed", "life_cycle": "Qualification", "failure": "Failover"}


def words(name: str) -> str:
    """A name of a file or function in words: ``PHY drop`` for ``phy_drop``, ``I/O undisturbed``, ``IOPS``."""
    key = name.strip().lower().replace(" ", "_")
    if key in _PHRASES:
        return _PHRASES[key]
    spelt = [_SPELLINGS.get(word.lower(), word) for word in name.replace("_", " ").split()]
    if spelt and spelt[0].islower():
        spelt[0] = spelt[0].capitalize()
    return " ".join(spelt)


def place_of(test: str) -> tuple[str, str, str]:
    """The folder, the file and the function of a test's id; parameters of the function may have slashes and colons."""
    path, _, function = test.partition("::")
    folder, _, file = path.rpartition("/")
    return folder, file, function


def title_of(test: str, about: str = "") -> str:
    """A test's name for people: ``Identity`` for ``fabric/identity::identity``, else file and function.

    ``about`` is what the test was about, where that is one thing: ``Qualification of S/N 00123456``.
    """
    file, function = place_of(test)[1:]
    base, bracket, case = (function or file).partition("[")
    if not function or base == file:
        title = words(base) + (f" [{case}" if bracket else "")
    else:
        title = f"{words(file)}: {base.replace('_', ' ')}{bracket}{case}"
    return f"{title} of {about}" if about else title

"""The place of a simulated box: the rack behind it, and what it may need to be reached."""

from __future__ import annotations

import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path

from rackloop.clock import Clock
from rackloop_drivers.boxes._login import Account
from rackloop_drivers.rackd import RackdLink

_USER = "admin"
# IPMI takes 20 characters at most, SNMP communities any text: 16 of hexadecimal digits suit all.
_PASSWORD_BYTES = 8


@dataclass(frozen=True)
class SimulatedPlace:
    """The place of the box called ``name``: ``rackd`` is the rack, ``folder`` is gone when the lab is.

    ``ca_file`` is the authority that signed the certificate in ``tls``.
    """

    name: str
    clock: Clock
    rackd: RackdLink
    folder: Path
    ca_file: Path
    tls: ssl.SSLContext

    def account(self) -> tuple[Account, Path]:
        """An account with a new password, and the file of mode 600 that has it."""
        password = secrets.token_hex(_PASSWORD_BYTES)
        path = self.folder / f"{self.name}.password"
        path.touch(mode=0o600)
        path.write_text(password)
        return Account(_USER, password, self.clock), path

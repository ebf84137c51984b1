"""A temporary PostgreSQL server on a Unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

# The server's programs are not on PATH where several versions may be installed side by side.
_FOLDERS = [str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
_PATH = os.pathsep.join([*_FOLDERS, os.environ.get("PATH", "")])
PG_CTL = shutil.which("pg_ctl", path=_PATH)
_INITDB = shutil.which("initdb", path=_PATH)
_CREATEDB = shutil.which("createdb", path=_PATH)
_OPTIONS = "-c listen_addresses='' -c max_connections=200 -c shared_buffers=16MB"
_START_S = 60


class PostgresServer:
    """A running server. ``database()`` makes one and gives its URL."""

    def __init__(self, folder: Path, account: list[str], *, synced: bool) -> None:
        self.folder = folder
        self._account = account
        self._options = f"-k {folder} {_OPTIONS} -c fsync={'on' if synced else 'off'}"
        self._numbers = count(1)

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"lab{next(self._numbers)}"
        self._run(_CREATEDB, "-h", str(self.folder), "-U", "rackloop", name)
        return f"postgresql://rackloop@/{name}?host={self.folder}"

    def start(self) -> None:
        """Start the server; return once it answers."""
        self._run(
            PG_CTL,
            *("-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", "-t", str(_START_S)),
            *("-o", self._options, "start"),
        )

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: ``immediate`` as if its machine had died, ``fast`` as an administrator would."""
        self._run(PG_CTL, "-D", f"{self.folder}/data", "-w", "-m", mode, "stop")

    def initialise(self) -> None:
        """Make the files of an empty server."""
        self._run(_INITDB, "-D", f"{self.folder}/data", "-U", "rackloop", "-A", "trust", "-E", "UTF8", "--no-sync")

    def _run(self, program: str | None, *arguments: str) -> None:
        assert program is not None
        ended = subprocess.run(
            [*self._account, program, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=2 * _START_S,
            check=False,
        )
        assert ended.returncode == 0, (program, arguments, ended.stderr)


@contextmanager
def running_postgres(*, synced: bool = False) -> Iterator[PostgresServer]:
    """A server that is up for the block; skips, saying why, where PostgreSQL is not installed.

    What tests write need not survive a loss of power; what takes its time is ``synced`` to the disk as anywhere else.
    """
    if PG_CTL is None or _INITDB is None or _CREATEDB is None:
        pytest.skip("PostgreSQL's server is not installed (package postgresql)")
    # Short, because a Unix socket's path has 108 bytes.
    with tempfile.TemporaryDirectory(prefix="rl-pg-") as name:
        folder, account = Path(name), _account()
        if account:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        server = PostgresServer(folder, account, synced=synced)
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.stop()


def _account() -> list[str]:
    """The command prefix that leaves root, as whom PostgreSQL does not run."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]

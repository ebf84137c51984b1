"""OpenSSH's sshd on loopback, run by the user who runs the tests."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackloop_drivers.host import SshAccess

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
# sshd wants this folder when root starts it; a service manager would have made it.
_PRIVILEGE_SEPARATION = Path("/run/sshd")

_CONFIG = """
AuthorizedKeysFile {folder}/authorized_keys
HostKey {folder}/host_key
KbdInteractiveAuthentication no
LogLevel QUIET
PasswordAuthentication yes
PrintLastLog no
PrintMotd no
SetEnv HOME={home} TMPDIR={tmpdir}{path}
StrictModes no
UsePAM no
{more}
"""


class Sshd:
    """An sshd that answers each connection with a process of its own. ``key_file`` opens it for ``user``."""

    def __init__(self, folder: Path, more: str, home: str, tmpdir: str, path: str) -> None:
        if os.geteuid() == 0:
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        self.folder = folder
        self.user = getpass.getuser()
        # The account's own start-up files have no part in the tests.
        (folder / "home").mkdir()
        self.key_file = make_key(folder / "user_key")
        self.connections = 0
        self.known_hosts = folder / "known_hosts"
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        make_key(folder / "host_key")
        config = _CONFIG.format(
            folder=folder, more=more, home=home or folder / "home", tmpdir=tmpdir, path=path and f" PATH={path}"
        )
        (folder / "sshd_config").write_text(config)
        self._serving: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self.host_key}\n")
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def host_key(self) -> str:
        """The public host key: its type and base64 text."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def access(self, name: str = "srv1") -> SshAccess:
        """How to log in to it."""
        return SshAccess(name, "127.0.0.1", self.known_hosts, self.port, self.user, self.key_file)

    def break_connections(self) -> None:
        """End every connection there is, at once, as a crash does; the next is answered."""
        for server in self._taken():
            _end(server)

    def hang(self) -> None:
        """Go on accepting what comes over the connections there are, and answer nothing."""
        with self._lock:
            for server in self._serving:
                os.killpg(server.pid, signal.SIGSTOP)

    def stop(self) -> None:
        """End every connection and refuse new ones."""
        # A shutdown, not a close, wakes the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        self.break_connections()

    def start_again(self) -> None:
        """Answer at the same port again after :meth:`stop`."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        argv = (str(SSHD), "-i", "-f", str(self.folder / "sshd_config"))
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, self._lock:
                server = subprocess.Popen(
                    argv,
                    stdin=connection.fileno(),
                    stdout=connection.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._serving.append(server)

    def _taken(self) -> list[subprocess.Popen[bytes]]:
        with self._lock:
            taken, self._serving = self._serving, []
        return taken


@contextmanager
def running_sshd(more: str = "", home: str = "", tmpdir: str = "/tmp", path: str = "") -> Iterator[Sshd]:
    """An sshd for as long as the block lasts; ``more`` goes into its sshd_config, the rest into commands' variables."""
    if SSHD is None:
        pytest.skip("openssh-server is not installed")
    with tempfile.TemporaryDirectory(prefix="rackloop-sshd-") as folder:
        sshd = Sshd(Path(folder), more, home, tmpdir, path)
        try:
            yield sshd
        finally:
            sshd.stop()


def require_sudo() -> None:
    """Skip the test where the user who runs it may not be root by sudo without a password."""
    if shutil.which("sudo") is None:
        pytest.skip("sudo is not installed")
    if subprocess.run(("sudo", "-n", "true"), capture_output=True, check=False).returncode:
        pytest.skip("sudo asks for a password here")


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new key pair: ``path`` and ``path.pub``."""
    # A key of the usual 3072 bits takes RSA seconds to find.
    bits = ("-b", "2048") if kind == "rsa" else ()
    argv = ("ssh-keygen", "-q", "-t", kind, *bits, "-N", passphrase, "-C", "test", "-f", str(path))
    subprocess.run(argv, check=True)
    return path


def _end(server: subprocess.Popen[bytes]) -> None:
    # The process is not reaped yet, so its number cannot belong to another group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()

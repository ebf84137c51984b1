"""Parser for the sections of ``survey.sh``'s output."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop.errors import LabError, ToolError

_PACKAGES = {"lsblk": "util-linux", "nvme": "nvme-cli", "smartctl": "smartmontools"}
_LATE = -1
_NOT_FOUND = 127


@dataclass
class Section:
    """The answer to one question, named by ``kind`` and ``subject``; ``status`` is None for plain listings."""

    kind: str
    subject: str
    stdout: str
    stderr: str
    status: int | None = None

    def answer(self, host: str, tool: str) -> str:
        """The output of the tool.

        Raises ToolError where the server does not have it, LabError where it did not end in time or printed nothing.
        """
        where = self._where(host)
        if self.status == _NOT_FOUND:
            raise ToolError(f"{tool} was not found on {host}: install its package {_PACKAGES[tool]} there")
        if self.status == _LATE:
            raise LabError(f"{where}: {tool} did not end in time; the drive hangs, or its link is down")
        if self.status is None:
            raise LabError(f"{where}: the connection ended while {tool} was running")
        # As one that was killed. Of its format that says nothing, nor of other drives.
        if not self.stdout.strip():
            raise LabError(f"{where}: {tool} printed nothing: {self._said()}")
        return self.stdout

    def successful(self, host: str, tool: str) -> str:
        """As :meth:`answer`, for a tool whose status says nothing but whether it failed."""
        if self.status not in {0, None, _LATE, _NOT_FOUND}:
            raise LabError(f"{self._where(host)}: {tool} failed at {self.kind}: {self._said()}")
        return self.answer(host, tool)

    def _said(self) -> str:
        """The first line of its complaint, or else its exit status."""
        return self.stderr.strip().partition("\n")[0] or f"exit status {self.status}"

    def _where(self, host: str) -> str:
        return host if self.subject == "-" else f"{host}:/dev/{self.subject}"


def parse_sections(stdout: str, stderr: str) -> list[Section]:
    """The sections in their order; both streams are divided by the same lines."""
    complaints: dict[str, str] = {}
    for chunk in stderr.split("\x1e")[1:]:
        header, _, body = chunk.partition("\n")
        complaints[header] = body
    sections: list[Section] = []
    for chunk in stdout.split("\x1e")[1:]:
        header, _, body = chunk.partition("\n")
        kind, _, subject = header.partition(" ")
        if kind == "status":
            sections[-1].status = int(subject)
        else:
            sections.append(Section(kind, subject, body, complaints.get(header, "")))
    return sections

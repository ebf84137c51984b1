"""sushy's HTTP connector with a deadline over all requests of a call."""

from __future__ import annotations

from typing import Any

from sushy.connector import Connector  # type: ignore[import-untyped]

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded

_SHORTEST_S = 1e-3


class DeadlineConnector(Connector):  # type: ignore[misc]
    """Gives each request what is left until ``deadline``, and sends none after it (DeadlineExceeded)."""

    def __init__(self, url: str, deadline: Deadline, *, verify: bool | str) -> None:
        # One attempt each: a deadline decides how long to wait, and the caller whether to try again.
        super().__init__(url, verify=verify, server_side_retries=1)
        self.deadline = deadline

    def get(self, path: str = "", **options: Any) -> Any:
        """The response to a GET."""
        return super().get(path, **options | {"timeout": self._left_s(path)})

    def post(self, path: str = "", **options: Any) -> Any:
        """The response to a POST."""
        return super().post(path, **options | {"timeout": self._left_s(path)})

    def _left_s(self, path: str) -> float:
        if self.deadline.is_over():
            raise DeadlineExceeded(f"{self._url}{path} was not asked: the deadline is over; allow more time")
        return max(self.deadline.remaining_s(), _SHORTEST_S)

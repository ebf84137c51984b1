"""No password of a store is shown, however it was written into the URL."""

from __future__ import annotations

import pytest

from rackloop.clock import RealClock
from rackloop.errors import LabError
from rackloop.safety.store import open_store
from rackloop.safety.store._postgres import shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://bob:pa/ss@db/rack", "postgresql://bob:***@db/rack"),
        ("postgresql://bob:p@ss@db/rack", "postgresql://bob:***@db/rack"),
        ("postgresql://bob:pa?ss@db/rack", "postgresql://bob:***@db/rack"),
        ("postgres://:pass@db/rack", "postgres://:***@db/rack"),
        ("postgresql://db/rack?password=pass&a=b", "postgresql://db/rack?password=***&a=b"),
        ("postgresql://db/rack?a=b&sslPassword=pass", "postgresql://db/rack?a=b&sslPassword=***"),
        ("postgresql://db/rack?%70assword=pass", "postgresql://db/rack?%70assword=***"),
        ("postgresql://bob@db:5432/rack", "postgresql://bob@db:5432/rack"),
        ("postgresql://bob@[2001:db8::1]:5432/rack?host=/run", "postgresql://bob@[2001:db8::1]:5432/rack?host=/run"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        # libpq takes bob for the host, and the first half of the password for its port.
        "postgresql://bob:sesame/open@/rack",
        # It takes open@ for a host.
        "postgresql://bob:x@sesame@/rack",
        # It quotes a token that is no percent-encoding.
        "postgresql://bob:sesame%zz@/rack",
        "postgresql://bob@/rack?password=sesame%zz",
    ],
)
def test_a_url_that_the_client_reads_otherwise_than_meant_is_refused_without_quoting_it(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LabError, match="cannot read this URL; write it as postgresql://USER@HOST/DATABASE") as raised:
        open_store(url, RealClock())
    assert "sesame" not in str(raised.value)

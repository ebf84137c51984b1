"""The journal of a store: a transaction is on the drive as a whole or not at all, whatever became of its sectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackloop_models.local_erasure import Layout, ReplicasDisagree
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._journal import Journal
from rackloop_models.local_erasure._layout import Geometry
from rackloop_models.local_erasure._replicas import PAYLOAD_BYTES, Sealed
from rackloop_models.local_erasure._statistics import Statistics
from tests.unit.models.faulty_drive import FaultyDrive
from tests.unit.models.local_erasure_case import DRIVE_BYTES, SECTOR, on_drive

LAYOUT = Layout(8, 2, replicas=2)
STORE = b"0123456789abcdef"


def page(content: bytes) -> bytes:
    return content.ljust(PAYLOAD_BYTES, b"\0")


class Case:
    """A journal whose first transaction wrote two pages."""

    def __init__(self) -> None:
        self.drive = FaultyDrive(DRIVE_BYTES)
        self.geometry = Geometry.of(LAYOUT, DRIVE_BYTES // SECTOR, 8)
        self.journal = self.opened()
        self.journal.format(b"")
        self.journal.commit(1, {0: page(b"old 0"), 2: page(b"old 2")})

    def opened(self) -> Journal:
        return Journal(Drive(self.drive, Statistics()), self.geometry, STORE)

    def pages(self) -> list[bytes]:
        pages = self.opened().pages
        return [pages.read(number).payload.rstrip(b"\0") for number in (0, 2)]

    def second(self) -> Iterator[tuple[int, bytes]]:
        """The sectors of the journal as a second transaction writes them, whose pages were not written."""
        before = bytes(self.drive.memory.content)
        self.opened().commit(2, {0: page(b"new 0"), 2: page(b"new 2")})
        places = [place for number in range(3) for place in self.journal.area.places(number)]
        written = [(place, on_drive(self.drive, [place])) for place in places]
        self.drive.memory.content[:] = before
        yield from written

    def put(self, written: list[tuple[int, bytes]]) -> None:
        for place, content in written:
            self.drive.memory.write(place * SECTOR, content)


@pytest.fixture
def case() -> Case:
    return Case()


def test_a_whole_transaction_is_written_to_its_pages(case: Case) -> None:
    case.put(list(case.second()))
    case.opened().recover()
    assert case.pages() == [b"new 0", b"new 2"]


@pytest.mark.parametrize("kept", range(6))
def test_a_transaction_of_which_replicas_are_missing_is_there_as_long_as_one_of_each_is(case: Case, kept: int) -> None:
    written = list(case.second())
    case.put(written[:kept] + written[kept + 1 :])
    case.opened().recover()
    assert case.pages() == [b"new 0", b"new 2"]


@pytest.mark.parametrize("missing", range(3))
def test_a_transaction_that_lacks_a_sector_changes_nothing(case: Case, missing: int) -> None:
    written = list(case.second())
    case.put(written[: 2 * missing] + written[2 * missing + 2 :])
    case.opened().recover()
    assert case.pages() == [b"old 0", b"old 2"]


def test_a_sector_that_cannot_be_read_does_no_harm_to_a_transaction_that_was_cut_short(case: Case) -> None:
    written = list(case.second())
    case.put(written[:2])
    case.drive.hard = set(case.journal.area.places(2))
    case.opened().recover()
    assert case.pages() == [b"old 0", b"old 2"]


def test_a_sector_that_a_whole_transaction_needs_and_that_cannot_be_read_is_an_error(case: Case) -> None:
    case.put(list(case.second()))
    case.drive.hard = set(case.journal.area.places(2))
    with pytest.raises(ReplicasDisagree, match="journal sector 2"):
        case.opened().recover()


def test_contents_that_the_transaction_does_not_speak_of_are_not_written(case: Case) -> None:
    case.put(list(case.second()))
    case.journal.area.write({1: Sealed(2, b"something else")})
    case.opened().recover()
    assert case.pages() == [b"old 0", b"old 2"]


def test_a_sector_that_belongs_elsewhere_is_not_believed(case: Case) -> None:
    first, other = case.journal.pages.places(0), case.journal.pages.places(2)
    case.put([(first[0], on_drive(case.drive, [other[0]]))])
    assert case.pages() == [b"old 0", b"old 2"]
    assert on_drive(case.drive, first[:1]) == on_drive(case.drive, first[1:])
    case.put([(place, on_drive(case.drive, [other[0]])) for place in first])
    with pytest.raises(ReplicasDisagree, match="nothing whole"):
        case.opened().pages.read(0)


def test_more_pages_than_there_is_room_for_are_refused_before_anything_is_written(case: Case) -> None:
    before = bytes(case.drive.memory.content)
    with pytest.raises(ValueError, match=f"room for {case.journal.most} pages"):
        case.journal.commit(2, dict.fromkeys(range(case.journal.most + 1), page(b"")))
    assert bytes(case.drive.memory.content) == before

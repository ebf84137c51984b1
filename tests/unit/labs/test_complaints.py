"""The log of a lab's process: what is in it after a storm."""

from __future__ import annotations

import io
import logging

from rackloop_labs._complaints import Complaints


def complaints(most_bytes: int = 1 << 20) -> tuple[logging.Logger, io.StringIO]:
    """A logger of its own, and what it writes."""
    written = io.StringIO()
    logger = logging.Logger("peer")
    logger.addHandler(Complaints(written, most_bytes))
    return logger, written


def fail(logger: logging.Logger, number: int) -> None:
    try:
        int({})  # type: ignore[call-overload]
    except TypeError:
        logger.exception("datagram %d from <socket at 0x7f%x>", number, number)


def test_a_storm_of_one_complaint_is_counted() -> None:
    logger, written = complaints()
    for number in range(7666):
        fail(logger, number)
    lines = written.getvalue().splitlines()
    assert sum("Traceback" in line for line in lines) == 1
    assert "datagram 0 from" in lines[0]
    assert [line.split(" at ")[0] for line in lines[-3:]] == [
        f"{times} times by now: TypeError" for times in (10, 100, 1000)
    ]
    assert len(written.getvalue()) < 2000


def test_complaints_without_an_exception_differ_by_more_than_numbers() -> None:
    logger, written = complaints()
    for number in range(10):
        logger.warning("client %d left\nat %d", number, number)
        logger.warning("client %d came", number)
    lines = written.getvalue().splitlines()
    assert lines == [
        "peer: client 0 left",
        "at 0",
        "peer: client 0 came",
        "10 times by now: peer: client N left",
        "10 times by now: peer: client N came",
    ]


def test_the_log_has_an_end() -> None:
    logger, written = complaints(most_bytes=1000)
    for number in range(5000):
        logger.warning("%s is of its own", "x" * (number % 50) + chr(97 + number % 26) * (number // 50))
    assert len(written.getvalue()) < 1100
    assert written.getvalue().splitlines()[-1] == "this log is full; further complaints are not written"
    assert written.getvalue().count("this log is full") == 1


def test_many_kinds_are_one() -> None:
    logger, written = complaints()
    for number in range(3000):
        logger.warning("client %s left", "".join(chr(97 + int(digit)) for digit in str(number)))
    assert "1000 times by now: something else" in written.getvalue()

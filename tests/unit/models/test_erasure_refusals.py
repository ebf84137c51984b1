"""Erasure codes: what is refused, in which words, and that nothing was done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rackloop.errors import BadInput, ProductFailed
from rackloop_models.erasure import GF8, GF16, Code, Field, UnrecoverableError
from rackloop_models.erasure._field import Bytes

CODE = Code(10, 3)
WIDE = Code(10, 3, GF16)


def zeros(*shape: int) -> Bytes:
    return np.zeros(shape, np.uint8)


def frozen(*shape: int) -> Bytes:
    array = zeros(*shape)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("k", "m", "field", "said"),
    [
        (0, 3, None, "at least 1 user sector and 1 redundancy sector, found k = 0, m = 3"),
        (4, 0, None, "found k = 4, m = 0"),
        (254, 3, GF8, r"at most 256 sectors fit a codeword over GF\(2\^8\), found k \+ m = 257; use GF16 or smaller"),
        (65_536, 1, None, r"at most 65536 sectors .* found k \+ m = 65537; use smaller groups"),
    ],
)
def test_a_code_that_there_is_not_is_refused(k: int, m: int, field: Field | None, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Code(k, m, field)


REFUSED: dict[str, tuple[Callable[[], None], str]] = {
    "too many user sectors": (lambda: CODE.encode(zeros(11, 8), zeros(3, 8)), "has 10 user sectors, found 11"),
    "no user sector": (lambda: CODE.encode(zeros(0, 8), zeros(3, 8)), r"data: expected at least one .*\(0, 8\)"),
    "an empty sequence": (lambda: CODE.encode([], zeros(3, 8)), "data: expected sectors of one size, found none"),
    "wrong redundancy": (lambda: CODE.encode(zeros(4, 8), zeros(4, 8)), "redundancy: expected 3 sectors, found 4"),
    "sizes differ": (lambda: CODE.encode(zeros(4, 8), zeros(3, 9)), "of one size.* data 8, redundancy 9"),
    "a buffer differs": (lambda: CODE.encode([bytes(8), bytes(9)], zeros(3, 8)), r"data: .* one size, found \[8, 9\]"),
    "an odd size": (lambda: WIDE.encode(zeros(4, 7), zeros(3, 7)), r"data: GF\(2\^16\) needs .* even .* found 7"),
    "odd buffers": (lambda: WIDE.encode([bytes(7)], zeros(3, 8)), r"data: GF\(2\^16\) needs .* even .* found 7"),
    "one dimension": (
        lambda: CODE.encode(zeros(8), zeros(3, 8)),
        "data: expected uint8 in 2 dimensions, found .* in 1",
    ),
    "words": (lambda: CODE.encode(np.zeros((4, 8), np.int16), zeros(3, 8)), "expected uint8 .* found int16"),
    "bytes apart": (
        lambda: CODE.encode(zeros(4, 16)[:, ::2], zeros(3, 8)),
        "data: the bytes .* pass a contiguous copy",
    ),
    "a buffer apart": (lambda: CODE.encode([zeros(16)[::2]], zeros(3, 8)), r"data\[0\]: expected a contiguous buffer"),
    "read-only": (lambda: CODE.encode(zeros(4, 8), frozen(3, 8)), "redundancy: is read-only"),
    "read-only buffers": (lambda: CODE.encode(zeros(4, 8), [bytes(8)] * 3), r"redundancy\[0\]: is read-only"),
    "a sector too far": (
        lambda: CODE.accumulate(zeros(3, 8), 9, zeros(2, 8)),
        "10 user sectors, found 2 from number 9",
    ),
    "before the first": (lambda: CODE.accumulate(zeros(3, 8), -1, zeros(1, 8)), "found 1 from number -1"),
    "more old than new": (lambda: CODE.update(zeros(3, 8), 0, zeros(2, 8), zeros(1, 8)), "old .* new .* 2 and 1"),
    "old of another size": (lambda: CODE.update(zeros(3, 8), 0, zeros(1, 9), zeros(1, 8)), "old 9, new 8"),
    "too few sectors": (lambda: CODE.decode(zeros(3, 8), [0]), "4 to 13 sectors, redundancy and all, found 3"),
    "too many sectors": (lambda: CODE.decode(zeros(14, 8), [0]), "4 to 13 sectors, redundancy and all, found 14"),
    "no such position": (lambda: CODE.decode(zeros(9, 8), [-1, 9]), r"positions 0 to 8, found \[-1, 9\]"),
    "a position twice": (lambda: CODE.decode(zeros(9, 8), [2, 2]), r"each position once, found \[2, 2\]"),
    "wanted but there": (lambda: CODE.decode(zeros(9, 8), [2], wanted=[3]), r"wanted: expected erased .* found \[3\]"),
    "wanted twice": (lambda: CODE.decode(zeros(9, 8), [2], wanted=[2, 2]), r"wanted: .* each once, found \[2, 2\]"),
    "out of another shape": (lambda: CODE.decode(zeros(9, 8), [2], zeros(2, 8)), "out: expected 1 sectors, .* found 2"),
    "out of another size": (lambda: CODE.decode(zeros(9, 8), [2], zeros(1, 9)), "sectors 8, out 9"),
    "nowhere to put it": (lambda: CODE.decode([None, *[bytearray(8)] * 8], [0]), "in place, and some are None"),
    "nothing there": (lambda: CODE.decode([None, *[bytearray(8)] * 8], [1]), r"sectors\[0\]: there is no sector"),
    "groups differ": (lambda: CODE.encode_groups(zeros(2, 4, 8), zeros(3, 3, 8)), "as many groups .* 3 and 2"),
    "groups flat": (lambda: CODE.encode_groups(zeros(4, 8), zeros(3, 8)), "data: expected uint8 in 3 dimensions"),
    "positions missing": (lambda: CODE.decode_groups(zeros(2, 9, 8), [[0]]), "positions for 2 groups, found 1"),
    "no worker": (lambda: CODE.encode_groups(zeros(2, 4, 8), zeros(2, 3, 8), workers=0), "at least 1, found 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_clear_message(name: str) -> None:
    call, said = REFUSED[name]
    with pytest.raises(BadInput, match=said) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("code", [CODE, WIDE], ids=["GF8", "GF16"])
def test_more_erasures_than_redundancy_are_told_and_nothing_is_written(code: Code) -> None:
    word = np.arange(13 * 8, dtype=np.uint8).reshape(13, 8)
    kept = word.copy()
    with pytest.raises(
        UnrecoverableError, match=r"4 sectors .* \(positions 0, 3, 9, 12\) and its 3 .* recover 3"
    ) as told:
        code.decode(word, [12, 0, 9, 3])
    assert isinstance(told.value, ProductFailed)
    assert (told.value.erased, told.value.m) == ((0, 3, 9, 12), 3)
    with pytest.raises(UnrecoverableError):
        code.decode_groups(np.stack([word, word]), [[0], [0, 1, 2, 3]])
    assert np.array_equal(word, kept)

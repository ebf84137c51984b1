"""Erasure codes: what is encoded, by several oracles, and what comes back."""

from __future__ import annotations

import tracemalloc
from itertools import chain, combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyeclib.ec_iface import ECDriver

from rackloop_models.erasure import GF8, GF16, Code, Engine, Field, IsalEngine, engines
from tests.unit.models.erasure_oracle import redundancy

Bytes = NDArray[np.uint8]
ENGINES = engines()
# One of each kind: what the loops around it do depends on the kind alone.
KINDS = list({type(engine): engine for engine in reversed(ENGINES)}.values())
of_every_kind = pytest.mark.parametrize("engine", KINDS, ids=lambda engine: type(engine).__name__)
BOTH = (GF8, GF16)
any_field = st.sampled_from(BOTH)
any_kind = st.sampled_from(KINDS)
quick = settings(max_examples=60, deadline=None)


def filled(*shape: int, seed: int = 1) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def encoded(code: Code, data: int, sector_bytes: int, seed: int = 1) -> Bytes:
    """A codeword of so many user sectors."""
    word = filled(data + code.m, sector_bytes, seed=seed)
    code.encode(word[:data], word[data:])
    return word


def spoiled(word: Bytes, erased: list[int]) -> Bytes:
    found = word.copy()
    found[erased] ^= 0xA5
    return found


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize("field", BOTH, ids=str)
@pytest.mark.parametrize(("k", "m", "sector_bytes"), [(1, 1, 2), (3, 2, 6), (9, 4, 34), (60, 3, 10)])
def test_redundancy_is_what_the_definition_says(
    engine: Engine, field: Field, k: int, m: int, sector_bytes: int
) -> None:
    word = encoded(Code(k, m, field, engine), k, sector_bytes)
    assert np.array_equal(word[k:], redundancy(field.bits, word[:k], m))


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize(("k", "m"), [(10, 4), (27, 5)])
def test_the_field_is_the_one_of_pyeclib(engine: Engine, k: int, m: int) -> None:
    payload = filled(k * 512).tobytes()
    fragments = ECDriver(k=k, m=m, ec_type="isa_l_rs_cauchy").encode(payload)
    planes = np.array([np.frombuffer(fragment, np.uint8)[-512:] for fragment in fragments])
    assert planes[:k].tobytes() == payload
    numbers = np.arange(k)[None, :] ^ np.arange(k, k + m)[:, None]
    matrix = GF8.exp[(255 - GF8.log[numbers]) % 255].astype(np.uint8)
    written = np.zeros((m, 512), np.uint8)
    tables = engine.tables(matrix)
    sources, outputs = ((rows.ctypes.data + np.arange(len(rows)) * 512).astype(np.uint64) for rows in (planes, written))
    engine.multiply(512, k, m, tables.ctypes.data, sources.ctypes.data, outputs.ctypes.data)
    assert np.array_equal(written, planes[k:])


@pytest.mark.parametrize("field", BOTH, ids=str)
@pytest.mark.parametrize(("k", "m"), [(1, 3), (4, 3), (5, 2), (3, 5)])
@of_every_kind
def test_every_pattern_of_a_small_code_comes_back(engine: Engine, field: Field, k: int, m: int) -> None:
    code = Code(k, m, field, engine)
    word = encoded(code, k, 6)
    for erased in chain.from_iterable(combinations(range(k + m), count) for count in range(m + 1)):
        found = spoiled(word, list(erased))
        code.decode(found, erased)
        assert np.array_equal(found, word), erased


@quick
@given(st.data(), any_kind, any_field, st.integers(1, 200), st.integers(1, 12), st.integers(1, 40))
def test_any_pattern_comes_back(data: st.DataObject, engine: Engine, field: Field, k: int, m: int, half: int) -> None:
    code = Code(k, m, field, engine)
    present = data.draw(st.integers(1, k), "user sectors of a group that may be shortened")
    word = encoded(code, present, 2 * half)
    erased = data.draw(st.lists(st.integers(0, present + m - 1), max_size=m, unique=True))
    wanted = data.draw(st.permutations(erased).map(lambda order: order[: len(order) // 2 + 1]))
    out = np.zeros((len(wanted), 2 * half), np.uint8)
    if wanted:
        code.decode(spoiled(word, erased), erased, out, wanted=wanted)
    assert np.array_equal(out, word[wanted])
    found = spoiled(word, erased)
    code.decode(found, erased)
    assert np.array_equal(found, word)


@pytest.mark.parametrize(("k", "m"), [(252, 3), (246, 9), (1019, 4), (1004, 19), (255, 1), (256, 1)])
@of_every_kind
def test_the_codes_of_the_paper_recover_m_sectors(engine: Engine, k: int, m: int) -> None:
    code = Code(k, m, engine=engine)
    assert code.field == (GF8 if k + m <= 256 else GF16)
    word = encoded(code, k, 130)
    for erased in ([*range(m)], [*range(k, k + m)], [*range(0, k + m, (k + m) // m)][:m]):
        found = spoiled(word, erased)
        code.decode(found, erased)
        assert np.array_equal(found, word), erased


def test_positions_may_be_numbers_of_numpy() -> None:
    code = Code(300, 3)
    word = encoded(code, 300, 16)
    erased = np.array([7, 301])
    out = np.zeros((2, 16), np.uint8)
    code.decode(spoiled(word, [7, 301]), erased.tolist(), out, wanted=list(erased[::-1]))
    assert np.array_equal(out, word[[301, 7]])
    with pytest.raises(Exception, match=r"found \[400\]"):
        code.decode(word, list(np.array([400])))


@of_every_kind
def test_a_code_may_have_as_many_sectors_as_its_field_has_elements(engine: Engine) -> None:
    code = Code(65_533, 3, engine=engine)
    word = encoded(code, code.k, 4)
    erased = [0, 40_000, 65_535]
    found = spoiled(word, erased)
    code.decode(found, erased)
    assert np.array_equal(found, word)


@of_every_kind
def test_what_is_not_kept_is_computed_again_and_the_same(engine: Engine) -> None:
    kept = encoded(Code(300, 5, engine=engine), 300, 64)
    code = Code(300, 5, engine=engine, kept_table_bytes=0)
    assert np.array_equal(encoded(code, 300, 64), kept)
    words = np.stack([kept, kept])
    words[:, 300:] = 0
    code.encode_groups(words[:, :300], words[:, 300:])
    assert np.array_equal(words, np.stack([kept, kept]))


@pytest.mark.parametrize("scratch_bytes", [0, 3 * 5 * 64])
def test_blocks_are_added_up_however_few_fit(scratch_bytes: int) -> None:
    engine = next(engine for engine in ENGINES if isinstance(engine, IsalEngine))
    whole = encoded(Code(300, 5), 300, 64)
    code = Code(300, 5, engine=engine, scratch_bytes=scratch_bytes)
    assert np.array_equal(encoded(code, 300, 64), whole)
    code.accumulate(whole[300:], 0, whole[:300])
    assert not whole[300:].any()


@pytest.mark.parametrize("field", BOTH, ids=str)
def test_redundancy_depends_on_the_field_and_the_user_sectors_alone(field: Field) -> None:
    data = filled(70, 32)
    data[50:] = 0
    long, short = np.zeros((6, 32), np.uint8), np.zeros((4, 32), np.uint8)
    Code(90, 6, field).encode(data, long)
    Code(50, 4, field).encode(data[:50], short)
    assert np.array_equal(long[:4], short)
    assert np.array_equal(short[0], np.bitwise_xor.reduce(data))


@quick
@given(st.data(), any_kind, any_field, st.integers(1, 150), st.integers(1, 6))
def test_encoding_in_batches_is_encoding_at_once(
    data: st.DataObject, engine: Engine, field: Field, k: int, m: int
) -> None:
    code = Code(k, m, field, engine)
    whole = encoded(code, k, 16)
    ends = sorted(data.draw(st.sets(st.integers(1, k), max_size=4)) | {k})
    grown = np.full((m, 16), 9, np.uint8)
    code.encode(whole[: ends[0]], grown)
    for first, stop in pairwise(ends):
        code.accumulate(grown, first, whole[first:stop])
    assert np.array_equal(grown, whole[k:])


@quick
@given(st.data(), any_kind, any_field, st.integers(1, 150), st.integers(1, 6))
def test_an_update_is_an_encoding_of_what_is_new(
    data: st.DataObject, engine: Engine, field: Field, k: int, m: int
) -> None:
    code = Code(k, m, field, engine)
    before = encoded(code, k, 16, seed=1)
    first = data.draw(st.integers(0, k - 1))
    stop = data.draw(st.integers(first + 1, k))
    after = before.copy()
    after[first:stop] = filled(stop - first, 16, seed=2)
    code.encode(after[:k], after[k:])
    code.update(before[k:], first, before[first:stop], after[first:stop])
    assert np.array_equal(before[k:], after[k:])


@pytest.mark.parametrize("field", BOTH, ids=str)
@of_every_kind
def test_sectors_may_be_buffers_of_their_own(engine: Engine, field: Field) -> None:
    code = Code(60, 3, field, engine)
    word = encoded(code, 60, 20)
    data = [sector.tobytes() for sector in word[:60]]
    coded = [bytearray(20) for _ in range(3)]
    code.encode(data, coded)
    assert b"".join(coded) == word[60:].tobytes()
    code.update(coded, 5, data[5:6], [bytes(20)])
    code.accumulate(coded, 5, data[5:6])
    assert b"".join(coded) == word[60:].tobytes()
    out = [bytearray(20), bytearray(20)]
    code.decode([None, *data[1:], None, *coded[1:]], {0, 60}, out)
    assert bytes(out[0]) == data[0]
    assert bytes(out[1]) == word[60].tobytes()
    sectors = [bytearray(20), *data[1:], *coded]
    with pytest.raises(Exception, match=r"sectors\[1\]: is read-only"):
        code.decode(sectors, [0])
    sectors = [bytearray(20), *map(bytearray, data[1:]), *coded]
    code.decode(sectors, [0])
    assert bytes(sectors[0]) == data[0]


@pytest.mark.parametrize("field", BOTH, ids=str)
@of_every_kind
def test_arrays_may_have_their_rows_apart_and_backwards_and_be_read_only(engine: Engine, field: Field) -> None:
    code = Code(10, 2, field, engine)
    data, plain = filled(30, 64), np.zeros((2, 48), np.uint8)
    rows = data[27::-3, 8:56]
    code.encode(np.ascontiguousarray(rows), plain)
    rows.flags.writeable = False
    apart = np.zeros((8, 64), np.uint8)
    code.encode(rows, apart[5:1:-2, 3:51])
    assert np.array_equal(apart[5:1:-2, 3:51], plain)
    apart[5:1:-2, 3:51] = 0
    assert not apart.any(), "something else was written"


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize(("k", "m"), [(60, 3), (300, 4)])
@of_every_kind
def test_many_groups_are_coded_as_each_by_itself(engine: Engine, k: int, m: int, workers: int) -> None:
    code = Code(k, m, engine=engine)
    words = filled(14, k + m, 40)[::-2, :, 8:]
    code.encode_groups(words[:, :k], words[:, k:], workers=workers)
    for word in words:
        alone = np.zeros((m, 32), np.uint8)
        code.encode(word[:k], alone)
        assert np.array_equal(word[k:], alone)
    erased = [[], [0], [k], [3, k + 1], [1, 2, 3], [k, k + 1], [59]]
    found = np.zeros((14, k + m, 40), np.uint8)[::-2, :, 8:]
    found[:] = words
    for group, positions in enumerate(erased):
        found[group, positions] = 0
    code.decode_groups(found, erased, workers=workers)
    assert np.array_equal(found, words)


@pytest.mark.parametrize(("k", "m"), [(252, 3), (1019, 4)])
@pytest.mark.parametrize("engine", KINDS[1:], ids=str)
def test_nothing_of_the_data_is_copied(engine: Engine, k: int, m: int) -> None:
    code = Code(k, m, engine=engine)
    word = encoded(code, k, 4096)
    # What is imported or built once is no copy of the data.
    code.decode(word, [1])
    code.encode_groups(word[None, :k], word[None, k:])
    tracemalloc.start()
    try:
        code.encode(word[:k], word[k:])
        code.decode(word, [1])
        code.encode_groups(word[None, :k], word[None, k:])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 0.4 * k * 4096

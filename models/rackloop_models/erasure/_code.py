"""Systematic Reed-Solomon codes: encode, add to, update and recover codewords of whole sectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rackloop.errors import BadInput
from rackloop_models.erasure._blockwise import Blockwise
from rackloop_models.erasure._choice import best_engine
from rackloop_models.erasure._engines import Engine
from rackloop_models.erasure._field import GF8, GF16, Bytes, Field
from rackloop_models.erasure._generator import KEPT_TABLE_BYTES, SCRATCH_BYTES, Generator
from rackloop_models.erasure._looped import Looped, LoopedGfni
from rackloop_models.erasure._native import GfniEngine, LoopedIsalEngine
from rackloop_models.erasure._recovery import UnrecoverableError
from rackloop_models.erasure._sectors import Sectors, checked_array, located, same_size


class Code:
    """A systematic Cauchy Reed-Solomon code: ``m`` redundancy sectors for ``k`` user sectors, any ``m`` of all lost.

    The field is GF(2^8) when ``k + m`` is at most 256, else GF(2^16), unless one is given: the bytes of the redundancy
    depend on it. They do not depend on ``k``, ``m`` or the engine: a code's redundancy begins with that of any code of
    the same field with a smaller ``m``, and user sectors of zeros at the end do not change it. A group with fewer than
    ``k`` user sectors is a shortened codeword and needs nothing said.

    Sectors are a numpy array of bytes, one sector a row, or a sequence of buffers. Nothing of them is copied when they
    are an array, or are only read. They may have any size, in GF(2^16) an even one. Results must not overlap what they
    are computed from. Threads may share a code, and run on several cores at once.

    Prepared coefficients are kept while they need at most ``kept_table_bytes``, else computed again each time; each
    thread has ``scratch_bytes`` for what it adds up, or room for one product.

    Raises BadInput: ``k`` or ``m`` below 1, or more sectors than the field has elements.
    """

    def __init__(
        self,
        k: int,
        m: int,
        field: Field | None = None,
        engine: Engine | None = None,
        *,
        kept_table_bytes: int = KEPT_TABLE_BYTES,
        scratch_bytes: int = SCRATCH_BYTES,
    ) -> None:
        if k < 1 or m < 1:
            raise BadInput(f"a code needs at least 1 user sector and 1 redundancy sector, found k = {k}, m = {m}")
        self.field = field or (GF8 if k + m <= GF8.order else GF16)
        if k + m > self.field.order:
            largest = f"at most {self.field.order} sectors fit a codeword over {self.field}"
            raise BadInput(
                f"{largest}, found k + m = {k + m}; use {'GF16 or ' if self.field == GF8 else ''}smaller groups"
            )
        self.k = k
        self.m = m
        self.engine = engine or best_engine()
        generator = Generator(
            k, m, self.field, self.engine, kept_table_bytes=kept_table_bytes, scratch_bytes=scratch_bytes
        )
        self._coder = _coder(generator)

    def encode(self, data: Sectors, redundancy: Sectors) -> None:
        """Write the ``m`` redundancy sectors of ``data``, which are ``k`` user sectors or fewer.

        Raises BadInput: too many or too few sectors, or not of one size.
        """
        self._multiply(data, redundancy, 0, adds=False)

    def accumulate(self, redundancy: Sectors, first: int, data: Sectors) -> None:
        """Add to ``redundancy`` what the user sectors ``data``, the first of which is number ``first``, contribute.

        Progressive encoding: the redundancy of all user sectors so far becomes that of these as well, which were zeros
        before (eq. 10 of the paper on local erasure coding).

        Raises BadInput as ``encode``, and for a place that the code does not have.
        """
        self._multiply(data, redundancy, first, adds=True)

    def update(self, redundancy: Sectors, first: int, old: Sectors, new: Sectors) -> None:
        """Change ``redundancy`` as user sectors that follow each other, from number ``first`` on, go from old to new.

        By difference: no other user sector is read (eq. 11).

        Raises BadInput as ``accumulate``.
        """
        before, after = located(old, "old", self.field), located(new, "new", self.field)
        same_size(old=before.sector_bytes, new=after.sector_bytes)
        if len(before) != len(after):
            raise BadInput(f"expected as many old sectors as new ones, found {len(before)} and {len(after)}")
        difference = np.bitwise_xor(_as_array(old), _as_array(new))
        self._multiply(difference, redundancy, first, adds=True)

    def decode(
        self,
        sectors: Sectors,
        erased: Collection[int],
        out: Sectors | None = None,
        *,
        wanted: Sequence[int] | None = None,
    ) -> None:
        """Compute the ``erased`` sectors of a codeword, or those of them that are ``wanted``, in their order.

        ``sectors`` are its user sectors, then its ``m`` redundancy sectors, as they lie in a file; ``erased`` are
        positions among them, whose content does not matter and which may be None in a sequence. The result goes to
        ``out``, one sector for each wanted (in rising order when nothing is said), or in place. Redundancy sectors that
        were not read are erased and not wanted. Time goes with the number of user sectors and of erased ones.

        Raises UnrecoverableError when more than ``m`` are erased, and BadInput as ``encode``, for positions that there
        are not, and for wanted ones that are not erased.
        """
        erased = [int(position) for position in erased]
        codeword = located(sectors, "sectors", self.field, written=out is None, absent=erased)
        wanted = self._checked_positions(len(codeword), erased, wanted)
        if not wanted:
            return
        if out is None:
            outputs = codeword.planes[list(wanted)]
            if not outputs.all():
                raise BadInput("sectors: the erased ones are computed in place, and some are None; pass buffers or out")
        else:
            target = located(out, "out", self.field, written=True)
            same_size(sectors=codeword.sector_bytes, out=target.sector_bytes)
            if len(target) != len(wanted):
                raise BadInput(f"out: expected {len(wanted)} sectors, one for each wanted, found {len(target)}")
            outputs = target.planes
        self._coder.recover(codeword, erased, wanted, outputs)

    def encode_groups(self, data: Bytes, redundancy: Bytes, *, workers: int = 1) -> None:
        """Encode many groups, on ``workers`` cores: arrays of (group, sector, byte).

        Raises BadInput as ``encode``.
        """
        checked_array(data, "data", self.field, dimensions=3)
        checked_array(redundancy, "redundancy", self.field, dimensions=3, written=True)
        same_size(data=data.shape[2], redundancy=redundancy.shape[2])
        if len(data) != len(redundancy):
            raise BadInput(f"expected as many groups of redundancy as of data, found {len(redundancy)} and {len(data)}")
        self._check_counts(0, data.shape[1], redundancy.shape[1])
        _check_workers(workers)
        self._coder.multiply_groups(data, redundancy, workers)

    def decode_groups(self, sectors: Bytes, erased: Sequence[Collection[int]], *, workers: int = 1) -> None:
        """Compute the erased sectors of many codewords in place, on ``workers`` cores.

        ``sectors`` is an array of (group, sector, byte), and ``erased`` has the positions for each group.

        Raises UnrecoverableError and BadInput as ``decode``, before anything is written.
        """
        checked_array(sectors, "sectors", self.field, dimensions=3, written=True)
        if len(sectors) != len(erased):
            raise BadInput(f"expected erased positions for {len(sectors)} groups, found {len(erased)}")
        erased = [[int(position) for position in positions] for positions in erased]
        wanted = [self._checked_positions(sectors.shape[1], positions, None) for positions in erased]
        _check_workers(workers)
        self._coder.recover_groups(sectors, erased, wanted, workers)

    def __repr__(self) -> str:
        return f"Code(k={self.k}, m={self.m}, {self.field}, {self.engine})"

    def _multiply(self, data: Sectors, redundancy: Sectors, first: int, *, adds: bool) -> None:
        user = located(data, "data", self.field)
        target = located(redundancy, "redundancy", self.field, written=True)
        same_size(data=user.sector_bytes, redundancy=target.sector_bytes)
        self._check_counts(first, len(user), len(target))
        self._coder.multiply(user, first, target, adds=adds)

    def _check_counts(self, first: int, data: int, redundancy: int) -> None:
        if first < 0 or first + data > self.k:
            place = f"{data} from number {first} on" if first else f"{data}"
            raise BadInput(f"data: the code has {self.k} user sectors, found {place}")
        if redundancy != self.m:
            raise BadInput(f"redundancy: expected {self.m} sectors, found {redundancy}")

    def _checked_positions(self, count: int, erased: Collection[int], wanted: Sequence[int] | None) -> Sequence[int]:
        """The wanted positions, if all of it can be had."""
        if not self.m < count <= self.k + self.m:
            expected = f"{self.m + 1} to {self.k + self.m}"
            raise BadInput(f"sectors: a codeword has {expected} sectors, redundancy and all, found {count}")
        outside = sorted(position for position in erased if not 0 <= position < count)
        if outside:
            raise BadInput(f"erased: a codeword of {count} sectors has the positions 0 to {count - 1}, found {outside}")
        if len(set(erased)) != len(erased):
            raise BadInput(f"erased: expected each position once, found {sorted(erased)}")
        if len(erased) > self.m:
            raise UnrecoverableError(erased, self.m)
        if wanted is None:
            return sorted(erased)
        wanted = [int(position) for position in wanted]
        present = sorted(set(wanted) - set(erased))
        if present or len(set(wanted)) != len(wanted):
            raise BadInput(f"wanted: expected erased positions, each once, found {wanted}")
        return wanted


def _as_array(sectors: Sectors) -> Bytes:
    if isinstance(sectors, np.ndarray):
        return sectors
    return np.stack([np.frombuffer(sector, np.uint8) for sector in sectors if sector is not None])


def _coder(generator: Generator) -> Blockwise | Looped:
    """The coder of codewords: native loops, if the engine has them and the matrix is small enough to be kept."""
    engine = generator.engine
    if generator.keeps and isinstance(engine, GfniEngine):
        return LoopedGfni(generator, engine)
    if generator.keeps and isinstance(engine, LoopedIsalEngine):
        return Looped(generator, engine)
    return Blockwise(generator)


def _check_workers(workers: int) -> None:
    if workers < 1:
        raise BadInput(f"workers: expected at least 1, found {workers}")

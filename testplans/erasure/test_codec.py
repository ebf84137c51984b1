"""The erasure codec on this machine: correctness and throughput."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rackloop.clock import Clock
from rackloop.lab import Lab
from rackloop.parameters import erasure_code, size, whole
from rackloop_fixtures import Measure, Progress, Rack, code_of
from rackloop_models.erasure import Code

# Codes as k+m; ``rounds`` is how often each is timed.
PARAMETERS = {
    "codes": erasure_code(
        ["252+3", "251+4", "250+5", "246+9", "1019+4", "1016+7", "1014+9", "1004+19"],
        "user sectors and redundancy of each code",
    ),
    "sector_bytes": size(4096, "a sector", least=2, most=1 << 20, multiple=2),
    "rounds": whole(15, "codewords of each code", most=100_000),
}
MEASURES = {"codec.throughput": "B/s", "codec.wrong": "1"}
HEADLINES = ("codec.throughput",)

pytestmark = pytest.mark.rackloop(
    purpose="encode and decode whole codewords with every code, and compare every byte that is recovered",
    requires=[],
    destructive=False,
    time_class="seconds",
)

Bytes = npt.NDArray[np.uint8]


def check(_lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for a code that no field is large enough for."""
    for written in parameters["codes"]:
        Code(*code_of(written))


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A codeword takes a millisecond or two, and each code is tried in three ways."""
    return 1 + 0.01 * len(parameters["codes"]) * float(parameters["rounds"])


def test_codec(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Per code: encode, lose one sector, lose as many as may be lost, each at places drawn anew every round."""
    noise = np.random.default_rng(rack.chance.getrandbits(64))
    for number, text in enumerate(parameters["codes"]):
        progress(number, len(parameters["codes"]), "codes")
        code = Code(*code_of(text))
        original = _page_aligned(code.k + code.m, int(parameters["sector_bytes"]))
        original[: code.k] = noise.integers(0, 256, (code.k, original.shape[1]), np.uint8)
        size = code.k * original.shape[1]
        code.encode(original[: code.k], original[code.k :])
        damaged = _page_aligned(*original.shape)
        encoding: list[float] = []
        decoding: dict[int, list[float]] = {1: [], code.m: []}
        wrong = 0
        for _ in range(int(parameters["rounds"])):
            damaged[:] = original
            damaged[code.k :] = 0
            encoding.append(size / _seconds(rack.clock, lambda: code.encode(damaged[: code.k], damaged[code.k :])))  # noqa: B023
            wrong += not np.array_equal(damaged, original)
            for erased, speeds in decoding.items():
                lost = sorted(rack.chance.sample(range(code.k + code.m), erased))
                damaged[lost] ^= 0xFF
                speeds.append(size / _seconds(rack.clock, lambda: code.decode(damaged, lost)))  # noqa: B023
                wrong += not np.array_equal(damaged, original)
        measure("codec.throughput", encoding, code=text, act="encode")
        for erased, speeds in decoding.items():
            measure("codec.throughput", speeds, code=text, act=f"decode, {'m' if erased > 1 else 1} erased")
        measure("codec.wrong", wrong, code=text)


def _page_aligned(sectors: int, sector_bytes: int) -> Bytes:
    """Room for a codeword as a store holds it; numpy's own arrays begin anywhere."""
    room = np.empty(sectors * sector_bytes + 4096, np.uint8)
    start = -room.ctypes.data % 4096
    return room[start : start + sectors * sector_bytes].reshape(sectors, sector_bytes)


def _seconds(clock: Clock, act: Callable[[], None]) -> float:
    began_ns = clock.now_ns()
    act()
    return (clock.now_ns() - began_ns) / 1e9

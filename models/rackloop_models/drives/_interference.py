"""The figures of two tenants that disturb each other, as the Gimbal paper measures them in its section 2.3.

The victim reads 4 KiB at random places with 32 requests in flight. Its neighbour reads or writes at random places too;
nothing shares the drive out between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackloop_models.drives._box import BoxResult
from rackloop_models.drives._measured import known
from rackloop_models.drives._results import Result
from rackloop_models.drives._shapes import Depth
from rackloop_models.drives._tenants import Tenant, TenantLoad, Tenants, TenantsResult
from rackloop_models.drives._trials import KIB, REST, Measurement, State, Trial

VICTIM, NEIGHBOUR = "victim", "neighbour"
_BLOCK_BYTES, _DEPTH = 4 * KIB, 32
_WARM_UP_S, _MEASURED_S = 0.1, 0.3


def neighbours(block_bytes: int, depth: int, *, read_percent: float = 100.0) -> Tenants:
    """The victim beside one neighbour."""
    return Tenants(
        name=f"{NEIGHBOUR}.{block_bytes}.{depth}.{read_percent:g}",
        tenants=(
            random_load(VICTIM, _BLOCK_BYTES, _DEPTH, 100.0),
            random_load(NEIGHBOUR, block_bytes, depth, read_percent),
        ),
        warm_up_s=_WARM_UP_S,
        seconds=_MEASURED_S,
    )


def bandwidth_of(result: TenantsResult | BoxResult, tenant: str) -> float:
    """Bytes a second of a tenant; raises ProtocolError where the drive took no time."""
    return known(result.of(tenant).total.bytes_per_s, result.name)


def random_load(
    name: str, block_bytes: int, depth: int, read_percent: float, *, drive: int | None = None
) -> TenantLoad:
    """I/O of a size at random places, so many at a time, on ``drive`` where there are several."""
    return TenantLoad(
        tenant=Tenant(name=name),
        pattern="random",
        block_bytes=block_bytes,
        arrivals=Depth(depth),
        read_percent=read_percent,
        drive=drive,
    )


def _beside(large_depth: int, value: Callable[[float, float], float]) -> Measurement[float]:
    """A value of the victim's and the neighbour's bandwidths, beside 128 KiB reads of that depth."""

    def evaluate(results: Sequence[Result]) -> float:
        (found,) = _tenants(results)
        return value(bandwidth_of(found, VICTIM), bandwidth_of(found, NEIGHBOUR))

    return Measurement((Trial(State.FILLED, (REST, neighbours(128 * KIB, large_depth))),), evaluate)


def _loss_by_writes() -> Measurement[float]:
    """The loss of the victim where a neighbour of its own size and depth writes instead of reading."""
    trials = tuple(
        Trial(State.FILLED, (REST, neighbours(_BLOCK_BYTES, _DEPTH, read_percent=percent))) for percent in (100.0, 0.0)
    )

    def loss(results: Sequence[Result]) -> float:
        reading, writing = _tenants(results)
        return 1 - bandwidth_of(writing, VICTIM) / bandwidth_of(reading, VICTIM)

    return Measurement(trials, loss)


def _tenants(results: Sequence[Result]) -> list[TenantsResult]:
    return [result for result in results if isinstance(result, TenantsResult)]


INTERFERENCE: dict[str, Callable[[], Measurement[float]]] = {
    "neighbour.read.depth1.bandwidth": lambda: _beside(1, lambda _victim, neighbour: neighbour),
    "neighbour.read.depth1.deficit": lambda: _beside(1, lambda victim, neighbour: 1 - neighbour / victim),
    "neighbour.read.depth8.bandwidth": lambda: _beside(8, lambda _victim, neighbour: neighbour),
    "neighbour.read.depth8.ratio": lambda: _beside(8, lambda victim, neighbour: neighbour / victim),
    "neighbour.write.loss": _loss_by_writes,
}
"""The published figures by name, each with its measurement."""

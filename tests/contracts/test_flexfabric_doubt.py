"""A command that is refused after an earlier attempt at it was not answered: it may have been carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rackloop.abilities import LiveMap
from rackloop.errors import FabricError
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.safety.undo import Equipment, journalled
from rackloop_drivers.fabric.flexfabric import (
    Exchange,
    FlexFabric,
    FlexFabricPhy,
    LineFault,
    LineFaultRule,
    SwitchThread,
    open_flexfabric,
)
from tests.contracts.test_flexfabric_recovery import AFTER, BEFORE, CHANGE, WIRES, connect, install, switch
from tests.deadlines import CLOCK, soon
from tests.switch_in_memory import tcp
from tests.switch_wires import rewritten
from tests.unit.harness.journalled_bench import Bench

OTHER = PortMap.of([(5, 25)])
ACTS: dict[str, Callable[[FlexFabric], None]] = {
    "CONF:SAVE": lambda fabric: fabric.save_boot_map(soon()),
    "PHY:DROP": lambda fabric: FlexFabricPhy(fabric.session).drop([1], 0.001, soon(), request_id=77),
    "PHY:FLAP": lambda fabric: FlexFabricPhy(fabric.session).flap([1], 0.001, 0.001, 2, soon(), request_id=77),
}
#: The exchange behind which the other controller acts: the n-th with this text.
BEFORE_STAGING_AGAIN = (":ROUT:MAP?", 3)
BEFORE_TRIGGERING_AGAIN = (":ROUT:LOAD", 2)


@contextmanager
def overtaken(
    thread: SwitchThread, moment: tuple[str, int], act: Callable[[FlexFabric], object]
) -> Iterator[FlexFabric]:
    """A controller, and another that acts on the switch right behind an exchange of the first."""
    url = tcp(thread)
    text, number = moment
    seen: list[Exchange] = []

    def look(exchange: Exchange) -> None:
        if text in exchange.sent:
            seen.append(exchange)
            if len(seen) == number:
                act(other)

    with (
        closing(FlexFabric(connect(url))) as other,
        closing(FlexFabric(open_flexfabric(url, CLOCK, soon(), answer_within_s=0.1, on_exchange=look))) as fabric,
    ):
        yield fabric


def take_over(other: FlexFabric) -> None:
    other.take_lock(6, soon())


@pytest.mark.parametrize("command", ACTS)
def test_a_repeated_command_that_is_refused_may_have_been_carried_out(command: str) -> None:
    with switch() as thread, overtaken(thread, (command, 1), take_over) as fabric:
        fabric.take_lock(5, soon())
        install(thread, LineFaultRule(LineFault.LOST, match=command))
        with pytest.raises(FabricError, match=r"is lower than 6.*heal the rack") as caught:
            ACTS[command](fabric)
        assert caught.value.code == 0


@pytest.mark.parametrize("command", ACTS)
def test_a_command_that_is_refused_at_once_was_not_carried_out(command: str) -> None:
    with switch() as thread, overtaken(thread, (":ROUT:GEN?", 1), take_over) as fabric:
        fabric.take_lock(5, soon())
        fabric.generation(soon())
        with pytest.raises(FabricError, match="lease the rack again") as caught:
            ACTS[command](fabric)
        assert caught.value.code == -203


@pytest.mark.parametrize("trouble", [LineFault.UNHEARD, LineFault.LOST, LineFault.GARBLED])
def test_a_map_is_saved_though_the_answer_is_lost(trouble: LineFault) -> None:
    with switch() as thread, closing(FlexFabric(connect(tcp(thread)))) as fabric:
        fabric.apply(CHANGE, soon())
        install(thread, LineFaultRule(trouble, match="CONF:SAVE"))
        fabric.save_boot_map(soon())
        assert fabric.boot_map(soon()) == AFTER


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_a_switch_that_always_takes_long_to_save_a_map_is_waited_for(wire: str) -> None:
    with switch() as thread, closing(FlexFabric(connect(WIRES[wire](thread)))) as fabric:
        fabric.apply(CHANGE, soon())
        install(thread, LineFaultRule(LineFault.LATE, match="CONF:SAVE", count=None, delay_s=0.3))
        fabric.save_boot_map(soon())
        assert fabric.boot_map(soon()) == AFTER


def test_a_saved_map_whose_answer_was_lost_keeps_standing_in_the_journal(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with switch() as thread, overtaken(thread, ("CONF:SAVE", 1), take_over) as fabric:
        fabric.take_lock(5, soon())
        fabric.apply(CHANGE, soon())
        install(thread, LineFaultRule(LineFault.LOST, match="CONF:SAVE"))
        acting = journalled(Equipment(fabric), bench.recorder)
        with pytest.raises(FabricError):
            acting.fabric.save_boot_map(soon())
        assert len(bench.journal.standing(bench.lab.name)) == 1
    bench.close()


@pytest.mark.parametrize("moment", [BEFORE_STAGING_AGAIN, BEFORE_TRIGGERING_AGAIN], ids=["staging", "triggering"])
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_trigger_that_is_carried_out_late_counts_once(moment: tuple[str, int], *, is_staged: bool) -> None:
    # The other makes the very change that the first trigger asked for, as a switch does that hears it late.
    with switch() as thread, overtaken(thread, moment, lambda other: other.apply(CHANGE, soon())) as fabric:
        install(thread, LineFaultRule(LineFault.UNHEARD, match=":TRIG"))
        applied = fabric.trigger(fabric.stage(CHANGE, soon()), soon()) if is_staged else fabric.apply(CHANGE, soon())
        assert applied.generation == 2
        unheard = next(one for one in fabric.session.history if ":TRIG" in one.sent)
        assert applied.commanded_ns <= unheard.t_ns
        assert fabric.live_map(soon()) == LiveMap(2, AFTER)


def test_ports_that_are_opened_late_count_once() -> None:
    change = Open(frozenset({1}))
    with (
        switch() as thread,
        overtaken(thread, BEFORE_STAGING_AGAIN, lambda other: other.apply(change, soon())) as fabric,
    ):
        install(thread, LineFaultRule(LineFault.UNHEARD, match="ROUT:OPEN"))
        assert fabric.apply(change, soon()).generation == 2
        assert fabric.live_map(soon()) == LiveMap(2, change.after(BEFORE))


@pytest.mark.parametrize("moment", [BEFORE_STAGING_AGAIN, BEFORE_TRIGGERING_AGAIN], ids=["staging", "triggering"])
def test_a_trigger_without_an_answer_and_another_change_cannot_be_told_apart(moment: tuple[str, int]) -> None:
    with switch() as thread, overtaken(thread, moment, lambda other: other.apply(Full(OTHER), soon())) as fabric:
        install(thread, LineFaultRule(LineFault.UNHEARD, match=":TRIG"))
        with pytest.raises(FabricError, match="lost power or another controller") as caught:
            fabric.apply(CHANGE, soon())
        assert (type(caught.value), caught.value.code) == (FabricError, 0)


@pytest.mark.parametrize("moment", [BEFORE_STAGING_AGAIN, BEFORE_TRIGGERING_AGAIN], ids=["staging", "triggering"])
def test_a_trigger_that_is_repeated_without_the_lock_may_have_been_carried_out(moment: tuple[str, int]) -> None:
    with switch() as thread, overtaken(thread, moment, take_over) as fabric:
        fabric.take_lock(5, soon())
        install(thread, LineFaultRule(LineFault.UNHEARD, match=":TRIG"))
        with pytest.raises(FabricError, match="heal the rack") as caught:
            fabric.apply(CHANGE, soon())
        assert caught.value.code == 0


@contextmanager
def misheard(asked: bytes, heard: bytes) -> Iterator[FlexFabric]:
    """A switch that hears one text of what it is asked as another, once."""
    with (
        switch() as thread,
        rewritten(tcp(thread), b"", b"", asked=(asked, heard)) as url,
        closing(FlexFabric(connect(url, answer_within_s=5))) as fabric,
    ):
        yield fabric


#: Questions that follow commands in their lines, whole, and with a letter that noise made another.
SPOILED_BEHIND_A_TRIGGER = {
    "map": (b":ROUT:MAP? (@", b":ROUT:MAQ? (@"),
    "error": (b":SYST:ERR?;:ROUT:GEN?;:ROUT:MAP? (@", b":SYST:ERS?;:ROUT:GEN?;:ROUT:MAP? (@"),
}


@pytest.mark.parametrize("spoiled", SPOILED_BEHIND_A_TRIGGER.values(), ids=SPOILED_BEHIND_A_TRIGGER)
def test_a_spoiled_question_behind_a_trigger_says_nothing_of_the_trigger(spoiled: tuple[bytes, bytes]) -> None:
    with misheard(*spoiled) as fabric:
        assert fabric.apply(CHANGE, soon()).generation == 2
        assert fabric.live_map(soon()) == LiveMap(2, AFTER)


def test_a_map_is_saved_though_the_question_behind_it_is_spoiled() -> None:
    spoiled = b"CONF:SAVE;:SYST:ERR?", b"CONF:SAVE;:SYST:ERS?"
    with misheard(*spoiled) as fabric:
        fabric.apply(CHANGE, soon())
        fabric.save_boot_map(soon())
        assert fabric.boot_map(soon()) == AFTER


def test_a_circuit_that_noise_had_opened_with_another_is_named() -> None:
    spoiled = b"ROUT:OPEN (@1,17)", b"ROUT:OPEN (@1,18)"
    with misheard(*spoiled) as fabric:
        with pytest.raises(FabricError, match=r"ports \[2, 18\] did not follow.*the line to the switch") as caught:
            fabric.apply(Open(frozenset({1, 17})), soon())
        assert caught.value.code == 0
        assert fabric.live_map(soon()) == LiveMap(2, PortMap.of([(3, 19)]))


@pytest.mark.parametrize("change", [CHANGE, Open(frozenset({1}))], ids=["partial", "open"])
def test_a_change_that_was_acknowledged_and_not_made_is_an_error(change: Partial | Open) -> None:
    acknowledged = b'0,"No error";2;', b'0,"No error";1;'
    with (
        switch() as thread,
        rewritten(tcp(thread), *acknowledged) as url,
        closing(FlexFabric(connect(url, answer_within_s=5))) as fabric,
    ):
        with pytest.raises(FabricError, match=r"generation 2 was expected, found 1") as caught:
            fabric.apply(change, soon())
        assert caught.value.code == 0

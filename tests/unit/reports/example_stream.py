"""The event stream of a smoke run, written on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rackloop.clock import VirtualClock
from rackloop.measurement import Distribution, MachineLoad
from rackloop.portmap import Partial, PortMap
from rackloop.record import (
    ActAnnounced,
    ActDone,
    Attached,
    Event,
    EventLog,
    Exchange,
    IoSeries,
    Measured,
    RemapSeen,
    RunFinished,
    RunStarted,
    Stage,
    TestFinished,
    TestStarted,
)
from rackloop.record.acts import Act, ChangeMap, DropSignal, announced_json
from rackloop.seed import stream
from rackloop.units import format_quantity

SEED = 20261120
STACKS = {"vanilla": 0.2, "no_timeouts": 0.09, "warm_port": 0.01, "comreset": 0.001}
BLOCKS = (4096, 65536, 1 << 20, 4 << 20, 16 << 20)


class ExampleRun:
    """Writes the events of a run into ``run_dir``, test by test; virtual time passes as the rack's would."""

    def __init__(self, run_dir: Path, *, lab_kind: str = "mock", seed: int = SEED, day: int = 1) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self.run_dir = run_dir
        self.clock = VirtualClock(start_ns=5_000_000_000, epoch=datetime(2026, 1, day, tzinfo=UTC))
        self.log = EventLog(run_dir / "events.jsonl", self.clock)
        self.draws = stream(seed, "example")
        self.acts = 0
        self.generation = 1
        self.log.write(
            RunStarted(
                plan="smoke",
                purpose="The rack moves drives quickly, disturbs nothing else, and every byte is right.",
                lab="mock" if lab_kind == "mock" else "rack-7",
                lab_kind=lab_kind,
                seed=seed,
                wall=self.clock.wall().isoformat(),
                versions={"rackloop": "0.1.0", "fio": "3.33"},
                environment={"os": "Debian 12", "python": "3.11"},
                duts=[
                    {
                        "id": f"d0{number}",
                        "model": "RL SSD 1",
                        "serial": f"RL00000{number}",
                        "firmware": "1.0",
                        "protocol": "sata",
                        "identifiers": {"wwn": f"5000c500a000000{number}"},
                    }
                    for number in range(1, 5)
                ],
            )
        )

    def write(self, event: Event) -> None:
        self.log.write(event)
        self.clock.advance(20e-6)

    def start(self, test: str, purpose: str, headlines: Sequence[str] = (), **labels: str) -> None:
        subject, _, name = test.partition("/")
        told = {"epic": subject, "feature": name, "story": purpose, **labels}
        self.write(TestStarted(test, purpose, told, headlines))

    def finish(
        self,
        test: str,
        verdict: str = "pass",
        cause: str | None = None,
        reason: str | None = None,
        took_s: float = 1.0,
        *,
        load: MachineLoad | None = None,
    ) -> None:
        self.write(TestFinished(test, verdict, cause, reason, took_s, load))

    def act(self, test: str | None, what: Act, resource: str) -> None:
        self.acts += 1
        self.write(ActAnnounced(self.acts, test, what.ability, announced_json(what, resource)))
        self.write(ActDone(self.acts, test))

    def remaps(self, test: str, count: int) -> dict[str, list[float]]:
        """``count`` remaps for each stack on one server each; returns the latencies in seconds."""
        seen: dict[str, list[float]] = {}
        for number, (stack, typical_s) in enumerate(STACKS.items(), start=1):
            seen[stack] = [self._remap(test, number, place, stack, typical_s) for place in range(count)]
        return seen

    def _remap(self, test: str, server: int, place: int, stack: str, typical_s: float) -> float:
        drive, port = f"d0{server}", place % 2
        self.act(
            test, ChangeMap(Partial(PortMap.of([(4 * server - 3 + port, 100 + server)])), self.generation), "switch"
        )
        self.generation += 1
        commanded = self.clock.now_ns()
        executed = commanded + round(self.draws.uniform(40e3, 90e3))
        phy_up = executed + round(self.draws.uniform(300e3, 700e3))
        online = max(phy_up, executed + round(typical_s * 1e9 * self.draws.lognormvariate(0, 0.05)))
        verified = online + round(self.draws.uniform(60e3, 140e3))
        if place % 20 == 0:
            self.write(
                Exchange(
                    test,
                    "socket://127.0.0.1:5025",
                    f"ROUTe:LOAD (@{4 * server - 3 + port}!{100 + server})",
                    "",
                    commanded - 90_000,
                    commanded,
                )
            )
        self.clock.sleep_until_ns(verified + 200_000)
        moments = {"commanded": commanded, "executed": executed, "phy_up": phy_up, "online": online}
        moments["verified"] = verified
        self.write(
            RemapSeen(
                test=test,
                stack=stack,
                server=f"srv{server}",
                port=f"p{port}",
                drive=drive,
                generation=self.generation,
                stages=[Stage(name, at_ns, "monotonic", 1000) for name, at_ns in moments.items()],
            )
        )
        return (verified - commanded) / 1e9

    def measure(
        self,
        test: str,
        name: str,
        unit: str,
        values: list[float],
        labels: dict[str, str] | None = None,
        *,
        quantile: float = 0.5,
        maximum: float | None = None,
        is_mean: bool = False,
    ) -> None:
        """A measurement with one statistic and, where ``maximum`` is given, a limit it keeps or not."""
        samples = Distribution.of(values)
        low, high = ci95 = samples.quantile_ci95(quantile)
        verdict = limits = None
        if maximum is not None:
            limits = {"text": f"max {format_quantity(maximum, unit)}", "min": None, "max": maximum}
            verdict = "pass" if high is not None and high <= maximum else "fail" if low and low > maximum else "unknown"
        self.write(
            Measured(
                test=test,
                name=name,
                labels=labels or {},
                unit=unit,
                n=samples.n,
                quantile="mean" if is_mean else f"p{quantile * 100:g}",
                value=samples.mean if is_mean else samples.quantile(quantile),
                ci95=ci95,
                p50=samples.quantile(0.5),
                p99=samples.quantile(0.99) if samples.quantile_ci95(0.99)[1] is not None else None,
                limits=limits,
                verdict=verdict,
                reason=None,
                values=samples.values,
                counts=samples.counts,
            )
        )

    def close(self, verdict: str = "pass", exit_code: int = 0) -> Path:
        self.write(RunFinished(verdict, exit_code, self.clock.now_ns() / 1e9 - 5))
        self.log.close()
        return self.run_dir


def small_run(run_dir: Path, day: int = 1) -> Path:
    """A run of one test that measures nothing."""
    example = ExampleRun(run_dir, day=day)
    example.start("a/b", "do it")
    example.finish("a/b")
    return example.close()


def smoke_run(run_dir: Path, *, remaps: int = 400, lab_kind: str = "mock", seed: int = SEED, day: int = 1) -> Path:
    """A whole smoke run: ten tests, among them a fail, an unknown, a blocked and a skipped one."""
    run = ExampleRun(run_dir, lab_kind=lab_kind, seed=seed, day=day)
    _remap_latency(run, remaps)
    _throughput(run)
    _undisturbed(run)
    run.start("fabric/identity", "check that the right drive answers after a remap")
    run.finish("fabric/identity")
    run.start("data/verify", "read back every byte after a remap")
    run.measure("data/verify", "verify.blocks", "1", [65536.0])
    run.finish("data/verify")
    run.start("data/stale_read", "check that no read after a remap sees the drive that was there")
    run.finish("data/stale_read", "fail", "product", "block 8192 of d02 holds generation 4, expected 5: stale data")
    run.start("power/cycle", "cut the power of a drive and see it come back")
    run.finish("power/cycle", "blocked", "lab", "pdu1 does not answer at 127.0.0.1:161")
    run.start("power/cycle_server", "cut the power of a server and see it come back")
    run.finish("power/cycle_server", "blocked", "lab", "blocked by pdu1, see power/cycle")
    run.start("fabric/expander", "check that an expander's drives follow its uplink")
    run.finish("fabric/expander", "skipped", None, "lab mock has no expander")
    run.start("tenancy/share", "check that every tenant gets its fair share")
    run.finish("tenancy/share", "unknown", "harness", "the oracle stopped: division by zero <in> a \x01 tenant's share")
    return run.close("fail", 1)


def _remap_latency(run: ExampleRun, remaps: int) -> None:
    test = "fabric/remap_latency"
    run.start(
        test, "measure how long a drive takes from the switch command to its first verified read", remaps=str(remaps)
    )
    for stack, samples in run.remaps(test, remaps).items():
        labels = {"stack": stack}
        run.measure(test, "remap.latency", "s", samples, labels)
        if stack == "comreset":
            run.measure(test, "remap.latency", "s", samples, labels, quantile=0.99, maximum=2e-3)
    text = run.run_dir / "switch.log"
    text.write_text("trigger, trigger, trigger\n")
    run.write(Attached(test, "Switch log", "switch.log", "text/plain"))
    run.finish(test)


def _throughput(run: ExampleRun) -> None:
    test = "fabric/switched_throughput"
    run.start(test, "measure what switching the drive at every read costs in throughput, by block size")
    for block in BLOCKS:
        for switching in (False, True):
            samples = [
                block / ((1.02e-3 + 1e-3 * switching + block / 280e6) * run.draws.uniform(0.97, 1.03))
                for _ in range(60)
            ]
            name = "throughput.switched" if switching else "throughput.steady"
            run.measure(test, name, "B/s", samples, {"block": format_quantity(block, "B")})
    run.clock.advance(3)
    run.finish(test)


def _undisturbed(run: ExampleRun) -> None:
    test = "fabric/undisturbed"
    run.start(test, "check that a remap disturbs no circuit but its own")
    begun = run.clock.now_ns()
    for second in range(4):
        run.act(test, DropSignal(frozenset({9 + second}), 5, second + 1), "switch")
        run.clock.advance(1)
    for job in ("srv1.p3", "srv2.p3"):
        points = [(begun + step * 100_000_000, run.draws.uniform(180e6, 200e6)) for step in range(40)]
        run.write(IoSeries(test, job, "throughput", "B/s", points))
        worst = [(begun + step * 100_000_000, run.draws.uniform(0.8e-3, 1.4e-3)) for step in range(40)]
        run.write(IoSeries(test, job, "worst latency", "s", worst))
    run.finish(test)

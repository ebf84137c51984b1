"""How long `rackloop lab check` takes for a fleet of a thousand racks, each the size of labs/mock.yaml.

Run it with the Python that has Rackloop installed: ``python benchmarks/bench_lab_check.py [--racks N] [--seed N]``.
The target is 10 s on two cores. For orientation it also reads the same files with PyYAML's CSafeLoader, which checks
nothing and guesses types.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

import yaml

from rackloop.clock import RealClock
from rackloop.lab import Lab, check_files
from rackloop.seed import Stream, stream

TARGET_S = 10.0
MOCK = Path(__file__).parents[1] / "labs" / "mock.yaml"


def rack(number: int, chance: Stream) -> str:
    """The mock rack under another name and with other drives."""
    text = MOCK.read_text(encoding="utf-8").replace("name: mock", f"name: rack{number}", 1)
    text = re.sub(r"serial: (?!auto)\w+", lambda _: f"serial: {number:05}{chance.getrandbits(48):012X}", text)
    text = re.sub(r"wwn: \w+", lambda _: f"wwn: 5{chance.getrandbits(60):015x}", text)
    return re.sub(r"eui64: \w+", lambda _: f"eui64: {chance.getrandbits(64):016x}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--racks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, clock = stream(options.seed, "bench_lab_check"), RealClock()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"rack{number}.yaml" for number in range(options.racks)]
        for number, file in enumerate(files):
            file.write_text(rack(number, chance), encoding="utf-8")
        size_mb = sum(file.stat().st_size for file in files) / 1e6

        start_ns = clock.now_ns()
        checked = check_files([Path(folder)])
        check_s = (clock.now_ns() - start_ns) / 1e9
        assert len(checked) == len(files)
        assert all(isinstance(lab, Lab) for _, lab in checked)

        start_ns = clock.now_ns()
        for file in files:
            yaml.load(file.read_bytes(), yaml.CSafeLoader)
        plain_s = (clock.now_ns() - start_ns) / 1e9

    print(f"seed {options.seed}: {len(files)} files, {size_mb:.1f} MB")
    print(
        f"rackloop.lab.check_files  {check_s:.2f} s  ({check_s / len(files) * 1e3:.2f} ms each, target {TARGET_S:g} s)"
    )
    print(f"yaml.load(CSafeLoader)    {plain_s:.2f} s  (checking takes {check_s / plain_s:.2f} of it)")
    return 0 if check_s <= TARGET_S else 1


if __name__ == "__main__":
    raise SystemExit(main())

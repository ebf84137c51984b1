"""Drive profiles: what their files say, and how a mistake in one is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.errors import BadInput, DescriptionError
from rackloop.lab import Profile, load_profile, profile_names

TIMING = {key: value for key, value in load_profile("sata-hdd").timing.items() if key not in {"kind", "rpm"}}
TIMING |= {"read_error_probability": 1e-4}
SOUND = """\
profile: slow-hdd
protocol: sata
model: RL Slow HDD
firmware: RL10
sector_bytes: 512
rotational: true
identifiers: [wwn, slot]
like: Some drive 4 TB
capacity: 4 TB
sources: ["product manual, table 2"]
timing:
  kind: hdd
  rpm: 5400
REST
published:
  - {figure: seek.read.average, value: 8.5 ms, within: 10%, source: product manual}
  - {figure: sequential.read.outer, value: 175 MB/s, within: 5%, source: product manual}
  - {figure: randread.iops.depth32.4KiB, value: 98 k, within: 0.1, source: product manual}
  - {figure: randread.latency.average.4KiB, value: 75.3 us, within: 10%, source: a review}
""".replace(
    "REST", "\n".join(f"  {key}: {value}" for key, value in (TIMING | {"read_error_probability": 1e-4}).items())
)


def read(folder: Path, text: str) -> Profile:
    path = folder / "slow-hdd.yaml"
    path.write_text(text)
    return load_profile(path)


def test_a_profile_has_its_values_in_their_types(tmp_path: Path) -> None:
    profile = read(tmp_path, SOUND)
    assert (profile.name, profile.protocol, profile.is_rotational) == ("slow-hdd", "sata", True)
    assert profile.capacity_bytes == 4 * 10**12
    assert profile.timing == {"kind": "hdd", "rpm": 5400, **TIMING}
    assert profile.timing["retry_ms"] == [20, 40]
    assert load_profile("sata-ssd").timing["power_loss_protection"] is True
    assert [(one.value, one.unit, one.within) for one in profile.published] == [
        (0.0085, "s", 0.1),
        (175e6, "B/s", 0.05),
        (98_000, "1", 0.1),
        (pytest.approx(75.3e-6), "s", 0.1),
    ]


def test_parameters_can_be_changed_by_name(tmp_path: Path) -> None:
    profile = read(tmp_path, SOUND).with_parameters({"rpm": "7200", "read_error_probability": "0"})
    assert (profile.timing["rpm"], profile.timing["read_error_probability"]) == (7200, 0)
    assert load_profile("sata-ssd").with_parameters({"full_duplex": "true"}).timing["full_duplex"] is True
    assert profile.timing["retry_ms"] == [20, 40]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rmp": "5400"}, r"slow-hdd has no parameter 'rmp'; did you mean 'rpm'\?"),
        ({"rpm": "fast"}, "rpm: expected a number such as 5400, found 'fast'"),
        ({"retry_ms": "20"}, "retry_ms: expected a list such as"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(tmp_path, SOUND).with_parameters(changes)


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="full_duplex: expected true or false such as False"):
        load_profile("sata-ssd").with_parameters({"full_duplex": "1"})


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        (
            "  heads: 10\n",
            "  haeds: 10\n",
            "slow-hdd.yaml:14:3: timing.haeds: a drive of kind hdd has no parameter 'haeds'; ",
        ),
        ("  heads: 10\n", "", "slow-hdd.yaml:11:1: timing: lacks heads; take what"),
        ("retry_ms: [20, 40]", "retry_ms: 20", "timing.retry_ms: expected a list such as [20, 40], found 20"),
        (
            "kind: hdd",
            "kind: hhd",
            "slow-hdd.yaml:12:9: timing.kind: expected a timing model, found 'hhd'; did",
        ),
        ("kind: hdd", "kind: ideal", "timing.rpm: a drive of kind ideal has no parameter 'rpm'"),
    ],
)
def test_a_wrong_timing_parameter_is_reported_at_its_place(
    tmp_path: Path, written: str, instead: str, said: str
) -> None:
    assert written in SOUND
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, SOUND.replace(written, instead))
    assert said in str(caught.value)


def test_an_ideal_drive_has_no_parameters(tmp_path: Path) -> None:
    head, tail = SOUND.partition("timing:")[0], SOUND.partition("published:")[2]
    assert read(tmp_path, f"{head}timing: {{kind: ideal}}\npublished:{tail}").timing == {"kind": "ideal"}


def test_every_problem_of_a_file_is_reported_at_its_place(tmp_path: Path) -> None:
    text = (
        SOUND.replace("protocol: sata", "protocol: stata")
        .replace("8.5 ms", "8.5 MB/s")
        .replace("capacity", "capcity")
        .replace("rpm: 5400", "rpm:")
    )
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert "slow-hdd.yaml:2:11: protocol: 'stata' is not known here; did you mean 'sata'?" in said
    assert "slow-hdd.yaml:13:7: timing.rpm: expected a number, true, false or a word, found nothing" in said
    assert "capcity: unknown key; did you mean 'capacity'?" in said
    assert "published[0].value: expected a quantity in s" in said


def test_an_unknown_profile_gets_a_guess() -> None:
    with pytest.raises(BadInput, match=r"no drive profile is named 'sata-hd' .*did you mean 'sata-hdd'\?"):
        load_profile("sata-hd")


@pytest.mark.parametrize("name", profile_names())
def test_a_shipped_profile_is_sound(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    # A drive that QEMU emulates takes what time that takes.
    assert profile.timing["kind"] in ({"ideal"} if name.startswith("qemu-") else {"hdd", "ssd"})
    assert profile.published or name.startswith("qemu-")

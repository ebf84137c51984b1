"""Emulated ``nvme`` against nvme-cli 2.3 on a real kernel."""

from __future__ import annotations

import pytest

from rackloop_labs.mock_hosts.tools._nvme_json import nvme_json
from tests.transcripts.drift import RECORDED, Declared, recording, undeclared
from tests.transcripts.guest import drift

RECORDINGS = sorted(path.stem for path in RECORDED.glob("nvme-*.cmd"))

_NQN = "an NVM subsystem has a name of its own, not QEMU's"
_ONE_FORMAT = "the drives have one LBA format, QEMU's have eight"
_FEWER_OPTIONS = "the output as bytes and the decoding of Identify are not emulated"
_FEWER_COMMANDS = "what the emulation does not know is unknown to it"
_RESET = "QEMU's controller cannot reset its subsystem, a mock server's can"

_FORMATS: Declared = {
    "stderr: missing   [  --output-format=<FMT>, -o <FMT> ]  --- Output format: normal|json|binary": _FEWER_OPTIONS,
    "stderr: extra   [  --output-format=<FMT>, -o <FMT> ]  --- Output format: normal|json": _FEWER_OPTIONS,
}
_RAW: Declared = {**_FORMATS, "stderr: missing   [  --raw-binary, -b ] *": _FEWER_OPTIONS}
_IDENTIFY: Declared = {
    **_RAW,
    "stderr: missing   [  --vendor-specific, -v ] *": _FEWER_OPTIONS,
    "stderr: missing   [  --human-readable, -H ] *": _FEWER_OPTIONS,
}
_NAMES: Declared = {"missing *org.qemu:NVMEDRIVE01*": _NQN, "extra *com.example:nvme:NVMEDRIVE01*": _NQN}
_LBA_FORMATS: Declared = {"missing lbaf *": _ONE_FORMAT}

DECLARED: dict[str, Declared] = {
    "nvme-error-log-help": _RAW,
    "nvme-id-ctrl": _NAMES,
    "nvme-id-ns": _LBA_FORMATS,
    "nvme-id-ns-n1": _LBA_FORMATS,
    "nvme-id-ns-help": {
        **_IDENTIFY,
        "stderr: missing   [  --force ] *": "every namespace is attached",
        "stderr: missing *not attached*": "every namespace is attached",
    },
    "nvme-list-subsys": _NAMES,
    "nvme-list-subsys-device": _NAMES,
    "nvme-list-v": _NAMES,
    "nvme-no-device": _RAW,
    "nvme-no-such": _IDENTIFY,
    "nvme-option-no-arg": _RAW,
    "nvme-option-no-such": _RAW,
    "nvme-short-name": _RAW,
    "nvme-smart-log-help": _RAW,
    "nvme-sub-no-such": {
        "missing   *": _FEWER_COMMANDS,
        "missing ": _FEWER_COMMANDS,
        "missing The following are all installed plugin extensions:": _FEWER_COMMANDS,
        "missing See 'nvme *": _FEWER_COMMANDS,
        "* The '<device>' may be either an NVMe character device*": "there is no management endpoint (MCTP)",
        "* nvme block device *": "there is no management endpoint (MCTP)",
        "missing mctp:*": "there is no management endpoint (MCTP)",
    },
    "nvme-subsystem-reset": {
        "stderr: missing Subsystem-reset: NVM Subsystem Reset not supported.": _RESET,
        "status 0, not 1": _RESET,
    },
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_nvme_answers_as_the_real_one(name: str) -> None:
    assert undeclared(drift(recording(name)), DECLARED.get(name, {})) == []


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name.endswith(".json")])
def test_json_is_laid_out_as_the_real_one(name: str) -> None:
    real = recording(name)
    assert nvme_json(real.document) == real.stdout

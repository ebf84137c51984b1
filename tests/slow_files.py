"""The files of tests that take longest, which begin first: the last to begin is not waited for by idle workers."""

SLOW_FILES = (
    "tests/contracts/test_provision.py",
    "tests/contracts/test_power_rack.py",
    "tests/contracts/test_power_contract.py",
    "tests/contracts/test_drivesim.py",
    "tests/contracts/test_host_crash.py",
    "tests/contracts/test_switched_breakables.py",
    "tests/contracts/test_power_conformance.py",
    "tests/contracts/test_served_drives.py",
    "tests/contracts/test_replay.py",
    "tests/contracts/test_host_breakables.py",
    "tests/contracts/test_md_kernel.py",
    "tests/contracts/test_nbd_conformance.py",
    "tests/e2e/test_storm_of_kills.py",
    "tests/e2e/test_characterize.py",
    "tests/e2e/test_run.py",
    "tests/e2e/test_schedules.py",
    "tests/e2e/test_leases.py",
    "tests/e2e/test_interrupted.py",
)

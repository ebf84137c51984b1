"""Playbooks run on the servers of a rack, through ansible-runner."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotConnected, ToolError
from rackloop.lab import Lab
from rackloop.names import guess
from rackloop_drivers.provision._inventory import SERVERS, SshReach, inventory, passwords, ssh_config
from rackloop_drivers.provision._run_folder import run_folder
from rackloop_drivers.provision._tasks import TaskDone, TaskReader, TaskStatus, redacting
from rackloop_drivers.provision._variables import require_variables

if TYPE_CHECKING:
    from ansible_runner import Runner, RunnerConfig  # type: ignore[import-untyped]

_MOST_FORKS = 16
# How often the runner looks whether it is to end while Ansible prints nothing.
_POLL_S = 1
_LAST_LINES = 15


@dataclass(frozen=True)
class HostTally:
    """The number of tasks of a playbook by their end, on one server."""

    ok: int
    changed: int
    skipped: int
    failed: int
    unreachable: int


@dataclass(frozen=True)
class Provisioned:
    """A playbook that ran to its end on every server: its tasks in the order they ended."""

    playbook: str
    tasks: tuple[TaskDone, ...]
    duration_s: float

    @property
    def hosts(self) -> dict[str, HostTally]:
        """The tally of each server."""
        counted = Counter((task.host, task.status) for task in self.tasks)
        return {
            host: HostTally(**{str(status): counted[host, status] for status in TaskStatus})
            for host in dict.fromkeys(task.host for task in self.tasks)
        }


class Provisioner:
    """Runs playbooks on the servers in ``reaches``, with the OpenSSH client and Ansible beside this Python.

    Everything Ansible writes on this machine is in a folder of its own that is removed afterwards; where it cannot be,
    that is said. Passwords reach it by its environment alone. ``working_for`` names the lab and the lease, parted by a
    slash: it begins the RACKLOOP_COMMAND of what the plays run on servers, where they take ``rackloop_environment`` for
    theirs, by which another process finds what they left there.
    """

    def __init__(self, lab: Lab, reaches: Mapping[str, SshReach], clock: Clock, working_for: str = "") -> None:
        self._lab = lab
        self._reaches = reaches
        self._clock = clock
        self._environment = {"RACKLOOP_COMMAND": f"{working_for}/{secrets.token_hex(8)}"} if working_for else {}

    def run(
        self,
        playbook: Path,
        deadline: Deadline,
        *,
        roles: Collection[str] = (),
        servers: Collection[str] = (),
        variables: Mapping[str, Any] | None = None,
        on_task: Callable[[TaskDone], object] = lambda _task: None,
        check: Callable[[], object] = lambda: None,
    ) -> Provisioned:
        """Run ``playbook`` on ``servers``, of it only what is tagged with one of ``roles``; without any, all of them.

        ``on_task`` is called with each task that ends, and ``check`` every second, such as whether a lease is over, on
        another thread; what they raise ends the run and is raised here. Raises LabError naming play, task, server and
        what was said where a task fails, NotConnected where a server is not reached, DeadlineExceeded where it takes
        too long, ToolError where Ansible itself fails, BadInput where a secret is missing, a server is none of these,
        the playbook has no task for any of them, or a shipped one takes no such variable.
        """
        require_variables(playbook, variables or {})
        reaches = self._chosen(servers)
        given = passwords(reaches)
        with run_folder() as folder:
            run = _Run(folder, deadline, redacting(given.values()), on_task, check)
            (folder / "ssh_config").write_text(ssh_config(reaches, folder))
            _write_json(folder / "inventory.json", inventory(self._lab, reaches, self._environment))
            # A file rather than an argument: everybody on this machine sees arguments.
            _write_json(folder / "variables.json", dict(variables or {}))
            started_ns = self._clock.now_ns()
            run.carry_out(playbook, self._settings(folder), given, roles)
            return Provisioned(playbook.stem, tuple(run.done), (self._clock.now_ns() - started_ns) / 1e9)

    def _chosen(self, servers: Collection[str]) -> Mapping[str, SshReach]:
        for name in servers:
            if name not in self._reaches:
                raise BadInput(f"there is no server {name!r} to provision; {guess(name, self._reaches)}")
        return {name: self._reaches[name] for name in servers or self._reaches}

    def _settings(self, folder: Path) -> dict[str, str]:
        """Ansible's environment, over that of this process: nothing of the user's own settings decides."""
        return {
            "ANSIBLE_FORKS": str(min(max(len(self._reaches), 1), _MOST_FORKS)),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "ANSIBLE_NOCOLOR": "True",
            "ANSIBLE_SSH_ARGS": f"-F {folder / 'ssh_config'}",
            "LC_ALL": "C.UTF-8",
        }


class _Run:
    """One run of a playbook: what ended so far, and why it is to end."""

    def __init__(
        self,
        folder: Path,
        deadline: Deadline,
        redact: Callable[[str], str],
        on_task: Callable[[TaskDone], object],
        check: Callable[[], object],
    ) -> None:
        self.done: list[TaskDone] = []
        self._folder = folder
        self._deadline = deadline
        self._redact = redact
        self._reader = TaskReader(redact)
        self._on_task = on_task
        self._check = check
        self._ended_by: BaseException | None = None
        self._is_given_up = False

    def carry_out(
        self, playbook: Path, settings: Mapping[str, str], secrets: Mapping[str, str], roles: Collection[str]
    ) -> None:
        """Run the playbook and wait for its end; raises what :meth:`Provisioner.run` does."""
        runner = self._runner(playbook, settings, secrets, roles)
        thread = threading.Thread(target=self._guarded, args=(runner,), name=f"playbook {playbook.stem}")
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL_S)
        finally:
            self._is_given_up = True
            thread.join()
        self._judge(playbook, runner)

    def _runner(
        self, playbook: Path, settings: Mapping[str, str], secrets: Mapping[str, str], roles: Collection[str]
    ) -> Runner:
        # Heavy, and only needed here.
        import ansible_runner

        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        own = playbook.with_name("ansible.cfg")
        chosen = {"ANSIBLE_CONFIG": str(own)} if own.is_file() else {}
        config = ansible_runner.RunnerConfig(
            private_data_dir=str(self._folder),
            project_dir=str(playbook.parent),
            artifact_dir=str(self._folder / "artifacts"),
            playbook=str(playbook),
            inventory=str(self._folder / "inventory.json"),
            cmdline=f"--extra-vars @{self._folder / 'variables.json'}",
            tags=",".join(roles) or None,
            envvars={**chosen, **settings, **secrets, "PATH": path},
            settings={"pexpect_timeout": _POLL_S},
            # Only then does Ansible say which condition left a task out.
            verbosity=1,
            suppress_env_files=True,
            quiet=True,
        )
        config.prepare()
        return ansible_runner.Runner(
            config, event_handler=self._take, status_handler=self._forget_environment, cancel_callback=self._is_over
        )

    def _guarded(self, runner: Runner) -> None:
        try:
            runner.run()
        except Exception as error:  # noqa: BLE001 - raised again on the thread that waits
            self._ended_by = self._ended_by or error

    def _take(self, event: dict[str, Any]) -> bool:
        """Read one event, on the runner's thread; False: it need not be kept in a file."""
        task = self._reader.read(event)
        if task is not None and self._ended_by is None:
            self.done.append(task)
            try:
                self._on_task(task)
            except Exception as error:  # noqa: BLE001 - raised again on the thread that waits
                self._ended_by = error
        return False

    def _forget_environment(self, _status: Mapping[str, Any], runner_config: RunnerConfig) -> None:
        """Remove the file that the runner writes Ansible's environment to, passwords and all, before it starts."""
        Path(runner_config.artifact_dir, "command").unlink(missing_ok=True)

    def _is_over(self) -> bool:
        try:
            self._check()
        except Exception as error:  # noqa: BLE001 - raised again on the thread that waits
            self._ended_by = self._ended_by or error
        return self._is_given_up or self._ended_by is not None or self._deadline.is_over()

    def _judge(self, playbook: Path, runner: Runner) -> None:
        if self._ended_by is not None:
            raise self._ended_by
        unreached = [task for task in self.done if task.status is TaskStatus.UNREACHABLE]
        failed = [task for task in self.done if task.status is TaskStatus.FAILED]
        if runner.rc == 0:  # a failure that the playbook itself took care of (rescue) is none
            if not self.done:
                raise BadInput(
                    f"{playbook.name} did nothing on any server: no play is for one of them; they are in the group "
                    f"{SERVERS!r}, so write `hosts: {SERVERS}`"
                )
            return
        if failed:
            raise LabError(_failures(playbook, failed + unreached))
        if unreached:
            children = {task.host: LabError(task.reason or "") for task in unreached}
            raise NotConnected(f"{playbook.name} does not reach every server; look at their SSH", children)
        if runner.status == "canceled":
            where = self._reader.under_way or "its start"
            raise DeadlineExceeded(f"{playbook.name} was ended at its deadline, in the task {where!r}")
        with runner.stdout as printed:
            last = "\n".join(self._redact(printed.read()).strip().splitlines()[-_LAST_LINES:])
        raise ToolError(f"ansible-playbook {playbook.name} ended with status {runner.rc}: {last}")


def _failures(playbook: Path, failed: list[TaskDone]) -> str:
    """One message for every server on which the playbook failed, by the task it was in."""
    by_task: dict[tuple[str, str, str], list[TaskDone]] = {}
    for task in failed:
        by_task.setdefault((task.play, task.role, task.task), []).append(task)
    lines = [f"{playbook.name} failed:"]
    for (play, role, name), tasks in by_task.items():
        where = f"role {role}, " if role else ""
        lines.append(f"  play {play!r}, {where}task {name!r}:")
        lines += [f"    {task.host}: {task.reason}" for task in tasks]
    return "\n".join(lines)


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))

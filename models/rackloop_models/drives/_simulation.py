"""drivesim, run as a process: a drive model in virtual time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.errors import EXIT_BAD_INPUT, BadInput, ProtocolError, ToolError
from rackloop.lab import Profile
from rackloop.native import find_binary
from rackloop_models.drives._box import BoxResult
from rackloop_models.drives._experiments import Document, Experiment
from rackloop_models.drives._results import Result
from rackloop_models.drives._tenants import TenantsResult

Record = Callable[[int, TenantsResult | BoxResult], None]

# Places in the document, which is written here and is no file of the caller's.
_OWN_WORDS = re.compile(r"^drivesim: (?:standard input: )?| at line \d+ column \d+$")
_DOCUMENT = TypeAdapter(Document)
_RESULT: TypeAdapter[Result] = TypeAdapter(Annotated[Result, Field(discriminator="kind")])


class DriveSim:
    """Simulates drives of one profile, each as new, of ``size_bytes`` and with a ``seed`` for its chance.

    Each run is of so many ``drives``, which all go through its experiments; a box has all of them, and the results of
    other experiments are those of the first. ``record`` is told of the seed and the result of each tenants and box
    experiment, possibly in several threads.

    ``binary`` is the path of drivesim; without one it is looked for, and ToolError raised where it is not found.
    Several threads may use it where they may use ``executor``.
    """

    def __init__(
        self,
        executor: Executor,
        profile: Profile,
        *,
        size_bytes: int,
        seed: int,
        drives: int = 1,
        record: Record | None = None,
        binary: str | None = None,
    ) -> None:
        self._executor = executor
        self._profile = profile
        self._size_bytes = size_bytes
        self._seed = seed
        self._drives = drives
        self._record = record
        self._binary = binary or str(find_binary("drivesim"))

    @property
    def profile(self) -> Profile:
        """The profile of the drives."""
        return self._profile

    @property
    def size_bytes(self) -> int:
        """The size of the drives."""
        return self._size_bytes

    def run(
        self,
        experiments: Sequence[Experiment],
        deadline: Deadline,
        *,
        branches: Sequence[Sequence[Experiment]] = (),
    ) -> tuple[Result, ...]:
        """Put new drives through ``experiments``; a result for each, then for each of each of the ``branches``.

        A branch is of further experiments, on drives in the state in which ``experiments`` have left them: what one
        does, another does not find.

        Raises BadInput where the model refuses its parameters or an experiment, ToolError where drivesim fails, and
        DeadlineExceeded.
        """
        document = Document(
            timing=dict(self._profile.timing),
            bytes=self._size_bytes,
            sector_bytes=self._profile.sector_bytes,
            seed=self._seed,
            experiments=tuple(experiments),
            branches=tuple(tuple(branch) for branch in branches),
            drives=self._drives,
        )
        text = _DOCUMENT.dump_json(document, exclude_none=True).decode()
        done = self._executor.run((self._binary,), deadline, stdin=text)
        if done.status == EXIT_BAD_INPUT:
            raise BadInput(f"profile {self._profile.name}: {_OWN_WORDS.sub('', done.stderr.strip())}")
        if done.status != 0:
            raise ToolError(f"drivesim ended with status {done.status}: {done.stderr.strip()}")
        try:
            results = tuple(_RESULT.validate_json(line) for line in done.stdout.splitlines())
        except ValidationError as error:
            raise ProtocolError(f"drivesim printed what is no result: {error}") from error
        asked = len(document.experiments) + sum(map(len, document.branches))
        if len(results) != asked:
            raise ProtocolError(f"drivesim gave {len(results)} results for {asked} experiments")
        for result in results:
            if self._record is not None and isinstance(result, TenantsResult | BoxResult):
                self._record(self._seed, result)
        return results

"""Box profiles: kinds of storage boxes, with the source of every parameter and what was published of each.

One YAML file a kind; those shipped lie in ``labs/boxes/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from rackloop.data import data_path
from rackloop.lab import Published
from rackloop.lab.yaml import (
    Description,
    Scalar,
    Text,
    compose_file,
    examine,
    find_description,
    matching,
    one_of,
    text_of,
    whole,
    wrong,
)
from rackloop.names import kind_of
from rackloop.units import NUMBER
from rackloop_models.drives._box import Cores, Hardware, Link, Serve


def _number(value: object, _info: object) -> float:
    text = text_of(value, "a number")
    if not NUMBER.fullmatch(text) or not 0 <= float(text) <= 1e6:
        raise wrong(f"expected a number from 0 to 1000000, found {kind_of(text)}")
    return float(text)


Number = Annotated[float, Scalar(_number, {"type": "number", "minimum": 0})]


class WrittenCores(Description):
    """Cores, as a box profile has them; times are of one request."""

    kind: Annotated[str, one_of(("a72", "x86"))]
    """The kind of core."""
    count: Annotated[int, whole(1, 1024)]
    """Their number."""
    serve: Annotated[str, one_of(("drives", "connections"))]
    """The assignment of requests to cores: by drives or by connections."""
    submission_us: Number
    """Work from the command capsule to the drive."""
    completion_us: Number
    """Work from the drive's completion to the response."""
    submission_us_per_kib: Number = 0.0
    """Work on a submission for each KiB."""
    completion_us_per_kib: Number = 0.0
    """Work on a completion for each KiB."""
    notice_us: Number = 0.0
    """Time until a core takes notice, which does not occupy it."""


class WrittenLink(Description):
    """The link, as a box profile has it."""

    mb_s: Number
    """Data rate of a direction, 10^6 bytes a second."""
    propagation_us: Number
    """Time from one end to the other, with that of the network adapters."""


class BoxFigure(Published):
    """A figure that was published of a box; one that the model does not meet says so."""

    differs: Annotated[str, matching(r"(?s)\S.{0,300}", "a reason")] | None = None
    """The reason why the model is further from it than ``within``."""


class BoxProfile(Description):
    """A kind of storage box, as its file describes it."""

    name: Annotated[str, Field(alias="box"), matching(r"[a-z][a-z0-9-]{0,31}", "a name such as gimbal-smartnic")]
    """The profile's name; the file has the same."""
    like: Text
    """The published box whose figures these are."""
    drive: Text
    """The profile of its drives."""
    drives: Annotated[int, whole(1, 64)]
    """Their number."""
    sources: tuple[Annotated[str, matching(r"(?s)\S.{0,500}", "a document and where in it")], ...]
    """The documents the parameters come from."""
    cores: WrittenCores
    """Its cores."""
    link: WrittenLink
    """Its link."""
    memory_mb_s: Number | None = None
    """Data rate of the path between all drives and its memory; without it, that path takes no time."""
    published: tuple[BoxFigure, ...] = ()
    """The published figures that the model is held against."""

    def hardware(self, *, cores: int | None = None, serve: Serve | None = None) -> Hardware:
        """The parts besides the drives; with another number of cores, or another assignment to them, where given."""
        written = self.cores
        own: Serve = "drives" if written.serve == "drives" else "connections"
        found = Cores(
            count=written.count if cores is None else cores,
            submission_us=written.submission_us,
            completion_us=written.completion_us,
            submission_us_per_kib=written.submission_us_per_kib,
            completion_us_per_kib=written.completion_us_per_kib,
            notice_us=written.notice_us,
            serve=own if serve is None else serve,
        )
        link = Link(mb_s=self.link.mb_s, propagation_us=self.link.propagation_us)
        return Hardware(found, link, self.memory_mb_s)


def box_names() -> list[str]:
    """The names of the shipped box profiles."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def load_box(path_or_name: str | Path) -> BoxProfile:
    """The box profile in a file, or of that name among those shipped.

    Raises BadInput where there is none, DescriptionError with the problems of its file.
    """
    path = find_description(path_or_name, "box profile", (_folder(),))
    return examine(compose_file(path), BoxProfile).finish()


def _folder() -> Path:
    return data_path("labs") / "boxes"

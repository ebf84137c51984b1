"""Write the tables of docs/reference/tenancy-scenarios.md: every key of scenario files and of cost inputs.

``python tools/scenario_reference.py``, in the environment of the tests, after a change to either.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic_core import PydanticUndefined

from generated import below_mark
from rackloop.lab.yaml import Description, field_texts
from rackloop_models.economics import WrittenCosts
from rackloop_models.economics._input_file import WrittenBox, WrittenInput
from rackloop_models.tenancy._scenario_file import (
    WrittenBursts,
    WrittenKind,
    WrittenOperation,
    WrittenScenario,
    WrittenScenarios,
    WrittenSize,
    WrittenSlo,
    WrittenTrace,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "tenancy-scenarios.md"
MARK = "<!-- What follows is written by tools/scenario_reference.py. -->\n"
_TABLES: tuple[tuple[str, type[Description]], ...] = (
    ("The file", WrittenScenarios),
    ("A scenario", WrittenScenario),
    ("A kind of tenants", WrittenKind),
    ("One of `sizes`", WrittenSize),
    ("One of `operations`", WrittenOperation),
    ("`trace`", WrittenTrace),
    ("`bursts`", WrittenBursts),
    ("`slo`", WrittenSlo),
    ("Inputs of `rackloop model cost`", WrittenCosts),
    ("A box in them", WrittenBox),
    ("One input", WrittenInput),
)


def page() -> str:
    """The whole page: what people wrote above the mark, and the tables below it."""
    return below_mark(PAGE, MARK, "".join(f"{line}\n" for line in _tables()))


def _tables() -> Iterator[str]:
    for title, model in _TABLES:
        yield f"\n## {title}\n"
        yield "| key | | default |"
        yield "|---|---|---|"
        texts = field_texts(model)
        for name, field in model.model_fields.items():
            key = field.alias or name
            yield f"| `{key}` | {texts[key].removesuffix('.')} | {_default(field.default)} |"


def _default(value: object) -> str:
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

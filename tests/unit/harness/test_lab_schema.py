"""The JSON Schema for editors agrees with the reader, and the reference page with both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from rackloop.lab import json_schema, load_profile, profile_names
from rackloop_cli.lab import check as lab_check

ROOT = Path(__file__).parents[3]


def test_the_schema_is_a_schema_of_2020_12() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", sorted((ROOT / "labs").glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_labs_satisfy_it_as_an_editor_reads_them(path: Path) -> None:
    errors = Draft202012Validator(json_schema()).iter_errors(yaml.safe_load(path.read_text()))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ((), {"colour": "red"}),
        (("fabric",), {"driver": "flexfabrik"}),
        (("servers", "srv1"), {"stack": "fast"}),
        (("servers", "srv1", "ports"), {"p9": "one"}),
        (("drives", "d01"), {"profile": "ssd"}),
        (("drives", "d01"), {"scratch": "maybe"}),
        (("servers", "srv1"), {"password": "hunter2"}),
        (("servers", "srv1"), {"password": {"env": "A", "file": "b"}}),
    ],
)
def test_it_refuses_what_the_reader_refuses(section: tuple[str, ...], change: dict[str, Any]) -> None:
    lab = yaml.safe_load((ROOT / "labs" / "mock.yaml").read_text())
    part = lab
    for key in section:
        part = part[key]
    part.update(change)
    assert not Draft202012Validator(json_schema()).is_valid(lab)


def parts() -> dict[str, dict[str, Any]]:
    schema = json_schema()
    found = {"Lab": schema}
    for name, part in schema["$defs"].items():
        # A box that a driver works has the keys of each driver.
        of_drivers = {f"{name} {one['title']}": one for one in part.get("anyOf", ())}
        found |= of_drivers or {name: part}
    return found


def test_every_key_is_described() -> None:
    for name, part in parts().items():
        for key, field in part["properties"].items():
            assert field.get("description"), f"{name}.{key}"


def test_the_reference_page_has_every_key_with_its_words() -> None:
    rows = (ROOT / "docs" / "reference" / "lab-description.md").read_text().splitlines()
    for name, part in parts().items():
        for key, field in part["properties"].items():
            found = [
                row for row in rows if row.startswith(f"| `{key}` |") and row.endswith(f" {field['description']} |")
            ]
            assert found, f"{name}.{key}"
            assert any(("| required |" in row) == (key in part.get("required", [])) for row in found), f"{name}.{key}"


def test_the_reference_page_has_every_profile() -> None:
    rows = (ROOT / "docs" / "reference" / "lab-description.md").read_text().splitlines()
    for name in profile_names():
        profile = load_profile(name)
        start = f"| `{name}` | {profile.protocol} | {profile.model} | {profile.firmware} | {profile.sector_bytes} B |"
        [row] = [row for row in rows if row.startswith(start)]
        assert row.endswith(f"{'yes' if profile.is_rotational else 'no'} | {', '.join(profile.identifiers)} |")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert lab_check.run([], schema=True) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(json_schema()))

"""Circles of imports between the modules of the Rust crates."""

from pathlib import Path

from import_circles import circles
from rust_circles import ALLOWED, imports
from tests.meta.tree import ROOT


def test_no_rust_modules_use_each_other_in_a_circle() -> None:
    assert circles(imports(ROOT)) == ALLOWED
    assert len(ALLOWED) <= 1


def test_a_circle_of_rust_modules_is_found(tmp_path: Path) -> None:
    source = tmp_path / "native" / "crates" / "rack" / "src"
    (source / "drive").mkdir(parents=True)
    (source / "lib.rs").write_text("mod clock; mod drive; mod link; pub use drive::Drive;")
    (source / "drive.rs").write_text("mod media; fn read() { debug!(media::Media) } pub struct Drive;")
    (source / "drive" / "media.rs").write_text("use std::fmt; use crate::{clock, link::Link as Cable};")
    (source / "link.rs").write_text("use super::Drive; mod inner { use super::super::clock::now; }")
    (source / "clock.rs").write_text("#[cfg(test)] mod tests { use crate::link::Link; }")
    assert circles(imports(tmp_path)) == [["rack::drive", "rack::drive::media", "rack::link"]]

//! Loop devices upon block devices: the kernel opens what they stand on without a claim, and names no holder there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::node::{name_of, node_name, subfolders, text, Roots};

// What the kernel writes behind a node that is not there any more.
const GONE: &str = " (deleted)";

/// A loop device.
pub struct Loop {
    /// Its folder in sysfs.
    pub folder: PathBuf,
    /// The kernel's name of the device that it stands on.
    pub stands_on: String,
}

/// Every loop device that stands on a block device.
pub fn all(roots: &Roots) -> Vec<Loop> {
    found(roots, &BTreeSet::new())
}

/// The same but those that Rackloop made for an array of regions of drives, which it holds meanwhile.
pub fn of_others(roots: &Roots) -> Vec<Loop> {
    let notes = subfolders(&roots.run.join("rackloop-md"));
    let own = notes
        .iter()
        .flat_map(|note| text(note).lines().map(str::to_owned).collect::<Vec<_>>());
    found(roots, &own.collect())
}

/// All but `own`, each with its name, that of its drive, and where its region begins.
fn found(roots: &Roots, own: &BTreeSet<String>) -> Vec<Loop> {
    let links = subfolders(&roots.sys.join("block"));
    let loops = links.into_iter().filter_map(|link| {
        let name = name_of(&link);
        let file = name
            .starts_with("loop")
            .then(|| text(&link.join("loop/backing_file")))?;
        let stands_on = node_name(roots, file.strip_suffix(GONE).unwrap_or(&file))?;
        let offset = text(&link.join("loop/offset"));
        if own.contains(&format!("{name} {stands_on} {offset}")) {
            return None;
        }
        let folder = link.canonicalize().ok()?;
        Some(Loop { folder, stands_on })
    });
    loops.collect()
}

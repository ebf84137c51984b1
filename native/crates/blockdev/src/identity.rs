//! The identity of a claimed drive as read by the kernel, and its persistent names.
//!
//! Sources: Linux `Documentation/ABI/stable/sysfs-block` (`wwid`), SPC (vital product data page 80h: its length in bytes
//! 2 and 3, then the unit serial number), udev's `60-persistent-storage.rules` for the names under `/dev/disk/by-id`,
//! Linux `Documentation/admin-guide/md.rst` for an array's `uuid`.

use std::fs;

use crate::node::{text, Node, Roots};

const SECTOR_BYTES: u64 = 512;
const ARRAY_UUID: &str = "md/uuid";

/// The expected drive, or array by its UUID. `names` are its WWN, EUI-64 and NGUID, in hexadecimal digits, lower case.
#[derive(Debug)]
pub struct Wanted {
    /// Its serial number, or the UUID of an array of drives.
    pub serial: String,
    /// Its size.
    pub bytes: u64,
    /// Its world-wide identifiers.
    pub names: Vec<String>,
}

/// Descriptions of the mismatches between the claimed and the expected drive; empty if it is the expected one.
#[must_use]
pub fn differences(node: &Node, wanted: &Wanted) -> Vec<String> {
    if !node.folder.exists() {
        return vec![format!(
            "{} is gone: the drive was taken out",
            node.kernel_name
        )];
    }
    let mut found = Vec::new();
    let serial = serial_of(node);
    let wwid = wwid_of(node);
    match &serial {
        Some(serial) if *serial != normal(&wanted.serial) => {
            found.push(format!("its serial is {serial}, not {}", wanted.serial));
        }
        Some(_) => {}
        None if wwid.is_none() || wanted.names.is_empty() => found.push(
            "the kernel read neither its serial nor a WWN that is described, so it is unknown which drive it is".into(),
        ),
        None => {}
    }
    if let Some(wwid) = wwid.filter(|_| !wanted.names.is_empty()) {
        let digits = wwid
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if !wanted.names.contains(&digits) {
            found.push(format!(
                "its wwid is {wwid}, not {}",
                wanted.names.join(" or ")
            ));
        }
    }
    let bytes = node.attribute("size").parse::<u64>().unwrap_or(0) * SECTOR_BYTES;
    if bytes != wanted.bytes {
        found.push(format!("it has {bytes} bytes, not {}", wanted.bytes));
    }
    found
}

/// Whether the node is an md array that is expected as such, by its UUID.
#[must_use]
pub fn is_array(node: &Node, wanted: &Wanted) -> bool {
    let uuid = node.attribute(ARRAY_UUID);
    !uuid.is_empty() && uuid == wanted.serial
}

/// A name under `/dev/disk/by-id` that contains the drive's WWN, EUI-64, NGUID or serial, and resolves to it now.
#[must_use]
pub fn stable_name(roots: &Roots, node: &Node, wanted: &Wanted) -> Option<String> {
    let serial = normal(&wanted.serial).replace(' ', "_");
    let mut names: Vec<(u8, String)> = fs::read_dir(roots.dev.join("disk/by-id"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| Some((rank(&name, &serial, &wanted.names)?, name)))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|(_, name)| format!("/dev/disk/by-id/{name}"))
        .find(|name| node.is_behind(roots, name))
}

/// The rank of a name: by a world-wide identifier, else by the serial; `None` if it matches neither.
fn rank(name: &str, serial: &str, unique: &[String]) -> Option<u8> {
    let is_of = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| unique.iter().any(|wanted| wanted == rest))
    };
    if is_of("wwn-0x") || is_of("nvme-eui.") || is_of("nvme-nguid.") || is_of("nvme-uuid.") {
        return Some(0);
    }
    // Names of partitions have a suffix.
    let before = name.strip_suffix(serial).filter(|_| !serial.is_empty())?;
    before.ends_with(['_', '-']).then_some(1)
}

fn serial_of(node: &Node) -> Option<String> {
    let page = fs::read(node.folder.join("device/vpd_pg80")).unwrap_or_default();
    let length = page
        .get(2..4)
        .map_or(0, |two| usize::from(two[0]) << 8 | usize::from(two[1]));
    let unit = page.get(4..).map(|rest| &rest[..rest.len().min(length)]);
    let unit = normal(&String::from_utf8_lossy(unit.unwrap_or_default()));
    [
        node.attribute("device/serial"),
        unit,
        node.attribute("serial"),
        node.attribute(ARRAY_UUID),
    ]
    .into_iter()
    .map(|serial| normal(&serial))
    .find(|serial| !serial.is_empty())
}

/// The world-wide identifier, `naa.` or `eui.` and its digits.
fn wwid_of(node: &Node) -> Option<String> {
    [node.folder.join("wwid"), node.folder.join("device/wwid")]
        .iter()
        .map(|path| text(path))
        .find(|wwid| wwid.starts_with("naa.") || wwid.starts_with("eui."))
}

/// Without padding: no space or zero byte at its ends, one space where there were several.
fn normal(value: &str) -> String {
    let words: Vec<&str> = value
        .split(|letter: char| letter.is_whitespace() || letter == '\0')
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

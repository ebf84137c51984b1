//! Users of a block device: from sysfs, configfs and procfs, and from ZFS labels on the disk.
//!
//! Sources: Linux `Documentation/ABI/stable/sysfs-block`, its `drivers/nvme/target/configfs.c` for what NVMe over
//! Fabrics offers, its `drivers/target/target_core_configfs.c` for what LIO does, and its `drivers/block/loop.c` for
//! what a loop device stands on, `proc(5)` for mountinfo and swaps, "ZFS On-Disk Specification" (Sun Microsystems,
//! 2006), chapter 1: a label is 256 KiB, its second half an array of uberblocks, each starting with the magic number in
//! the byte order of the machine that wrote it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::loops::{self, Loop};
use crate::node::{name_of, node_name, subfolders, text, Node, Roots};

const SECTOR_BYTES: u64 = 512;
const LABEL_BYTES: u64 = 256 << 10;
const UBERBLOCK_BYTES: usize = 1024;
const UBERBLOCK_MAGIC: u64 = 0x00ba_b10c;

/// Descriptions of every use of the device, of its partitions, and of devices built upon them.
pub fn of(roots: &Roots, node: &Node) -> Vec<String> {
    built(node)
        .chain(upon(roots, node, &loops::all(roots)))
        .collect()
}

/// The same without the loop devices of an array of Rackloop: for the holder of the device.
pub fn of_others(roots: &Roots, node: &Node) -> Vec<String> {
    built(node).chain(of_others_upon(roots, node)).collect()
}

/// The same where the device may be an array itself.
pub fn of_others_upon(roots: &Roots, node: &Node) -> Vec<String> {
    upon(roots, node, &loops::of_others(roots))
}

fn built(node: &Node) -> impl Iterator<Item = String> {
    let is_built = ["dm", "md"]
        .iter()
        .any(|kind| node.folder.join(kind).is_dir());
    is_built
        .then(|| "it is itself a volume or an array; give the drive beneath".to_owned())
        .into_iter()
}

fn upon(roots: &Roots, node: &Node, loops: &[Loop]) -> Vec<String> {
    let mut claims = Vec::new();
    if node.folder.join("partition").exists() {
        claims.push("it is a partition; give the whole drive".to_owned());
    }
    if node.attribute("ro") == "1" {
        claims.push("it is read-only".to_owned());
    }
    let mut above = BTreeSet::new();
    climb(&node.folder, loops, &mut above, &mut claims);
    claims.extend(mounts(roots, &above));
    claims.extend(swaps(roots, &above));
    let pools = subfolders(&roots.sys.join("fs/btrfs"));
    for name in &above {
        if pools
            .iter()
            .any(|pool| pool.join("devices").join(name).exists())
        {
            claims.push(format!("{name} belongs to a Btrfs file system"));
        }
    }
    claims.extend(exports(roots, &above));
    claims.extend(zfs(node));
    claims
}

/// Descriptions of the uses of the device, its partitions, and devices built upon them that no claim on it prevents.
///
/// NVMe over Fabrics, LIO's files and loop devices open it without a claim of their own, so that `O_EXCL` finds
/// nothing. Loop devices of an array of Rackloop's are none of them.
pub fn offers(roots: &Roots, node: &Node) -> Vec<String> {
    let mut above = BTreeSet::new();
    let mut claims = Vec::new();
    let loops = loops::of_others(roots);
    climb(&node.folder, &loops, &mut above, &mut claims);
    claims.extend(exports(roots, &above));
    claims
}

fn exports(roots: &Roots, above: &BTreeSet<String>) -> Vec<String> {
    let config = roots.sys.join("kernel/config");
    let offered = |offer: &Path, node: &str| {
        let name = node_name(roots, &text(&offer.join(node)))?;
        (above.contains(&name) && text(&offer.join("enable")) == "1").then_some(name)
    };
    let mut found = Vec::new();
    for subsystem in subfolders(&config.join("nvmet/subsystems")) {
        for namespace in subfolders(&subsystem.join("namespaces")) {
            if let Some(name) = offered(&namespace, "device_path") {
                let (number, nqn) = (name_of(&namespace), name_of(&subsystem));
                found.push(format!(
                    "{name} is namespace {number} of {nqn}, for NVMe over Fabrics"
                ));
            }
        }
    }
    for adapter in subfolders(&config.join("target/core")) {
        for backstore in subfolders(&adapter) {
            if let Some(name) = offered(&backstore, "udev_path") {
                let (adapter, backstore) = (name_of(&adapter), name_of(&backstore));
                found.push(format!(
                    "{name} is the backstore {adapter}/{backstore} of LIO, for SCSI initiators"
                ));
            }
        }
    }
    found
}

/// The device and all devices built upon it, by name; each holder and each loop device is a claim.
fn climb(folder: &Path, loops: &[Loop], above: &mut BTreeSet<String>, claims: &mut Vec<String>) {
    let name = name_of(folder);
    if !above.insert(name.clone()) {
        return;
    }
    for part in subfolders(folder) {
        if part.join("partition").exists() {
            climb(&part, loops, above, claims);
        }
    }
    for link in subfolders(&folder.join("holders")) {
        claims.push(format!("{name} is held by {}", name_of(&link)));
        if let Ok(holder) = link.canonicalize() {
            climb(&holder, loops, above, claims);
        }
    }
    for upon in loops.iter().filter(|one| one.stands_on == name) {
        let of = name_of(&upon.folder);
        claims.push(format!(
            "{name} backs {of}; detach it with `losetup --detach /dev/{of}`"
        ));
        climb(&upon.folder, loops, above, claims);
    }
}

/// The mounts of `above`, in this mount namespace or in that of the first process.
fn mounts(roots: &Roots, above: &BTreeSet<String>) -> Vec<String> {
    let own = roots.proc.join("self/mountinfo");
    let Ok(table) = fs::read_to_string(&own) else {
        return vec![format!(
            "{} cannot be read: what is mounted is unknown",
            own.display()
        )];
    };
    let first = fs::read_to_string(roots.proc.join("1/mountinfo")).unwrap_or_default();
    let mut found = Vec::new();
    for line in table.lines().chain(first.lines()) {
        let fields: Vec<&str> = line.split(' ').collect();
        let source = fields
            .iter()
            .position(|field| *field == "-")
            .and_then(|dash| fields.get(dash + 2));
        let by_number = fields.get(2).and_then(|number| {
            let folder = roots.sys.join("dev/block").join(number).canonicalize();
            folder.ok().map(|folder| name_of(&folder))
        });
        let by_source = source.and_then(|source| node_name(roots, &unescaped(source)));
        for name in [by_number, by_source].into_iter().flatten() {
            let place = unescaped(fields.get(4).unwrap_or(&""));
            let claim = format!("{name} is mounted at {place}");
            if above.contains(&name) && !found.contains(&claim) {
                found.push(claim);
            }
        }
    }
    found
}

fn swaps(roots: &Roots, above: &BTreeSet<String>) -> Vec<String> {
    let table = text(&roots.proc.join("swaps"));
    let nodes = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    nodes
        .filter_map(|node| node_name(roots, &unescaped(node)))
        .filter(|name| above.contains(name))
        .map(|name| format!("{name} is swap"))
        .collect()
}

/// Membership in a ZFS pool, by the label: the kernel shows no holder.
fn zfs(node: &Node) -> Vec<String> {
    let mut starts = vec![(node.kernel_name.clone(), 0)];
    for part in subfolders(&node.folder) {
        if part.join("partition").exists() {
            let start = text(&part.join("start")).parse::<u64>().unwrap_or(0);
            starts.push((name_of(&part), start * SECTOR_BYTES));
        }
    }
    let mut found = Vec::new();
    for (name, start) in starts {
        match has_zfs_label(node, start) {
            Ok(true) => found.push(format!(
                "{name} carries a ZFS label; clear it with `zpool labelclear` if the pool is gone"
            )),
            Ok(false) => {}
            Err(error) => {
                found.push(format!(
                    "it is unknown whether {name} carries a ZFS label: {error}"
                ));
            }
        }
    }
    found
}

fn has_zfs_label(node: &Node, start: u64) -> std::io::Result<bool> {
    let mut ring = vec![0; (LABEL_BYTES / 2) as usize];
    for label in 0..2 {
        let at = start + label * LABEL_BYTES + LABEL_BYTES / 2;
        let mut filled = 0;
        while filled < ring.len() {
            match node.file.read_at(&mut ring[filled..], at + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        let magics = [UBERBLOCK_MAGIC.to_le_bytes(), UBERBLOCK_MAGIC.to_be_bytes()];
        let mut blocks = ring[..filled].chunks_exact(UBERBLOCK_BYTES);
        if blocks.any(|block| magics.iter().any(|magic| block.starts_with(magic))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Decode escapes like `\040` of the tables of procfs.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .get(..3)
            .and_then(|octal| u8::from_str_radix(octal, 8).ok())
        {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

//! Holding a drive for a writer: claimed, checked and compared on one open descriptor.

use blockdev::{claims_on, differences, offers_of, stable_name, Node, Roots, Wanted};
use serde::Deserialize;
use serde_json::{json, Value};

use crate::cli::{HoldArgs, IdentityArgs};
use crate::failure::Failure;
use crate::lines;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Command {
    Check,
    Quit,
}

/// Hold the drive and answer commands, until `quit` or the end of the input.
///
/// # Errors
/// [`Failure::Target`] with every reason if the drive is another one, is in use, or cannot be claimed.
pub fn run(args: &HoldArgs) -> Result<(), Failure> {
    let wanted = wanted(&args.identity);
    let holder = Holder::take(Roots::default(), &args.node, wanted)
        .map_err(|reasons| Failure::Target(format!("{}: {}", args.node, reasons.join("; "))))?;
    lines::emit(&holder.held());
    for command in lines::commands::<Command>() {
        match command {
            Ok(Command::Check) => lines::emit(&holder.check()),
            Ok(Command::Quit) => break,
            Err(message) => lines::emit(&json!({"event": "error", "message": message})),
        }
    }
    Ok(())
}

/// The drive that arguments describe.
pub fn wanted(args: &IdentityArgs) -> Wanted {
    let names = [&args.wwn, &args.eui64, &args.nguid];
    Wanted {
        serial: args.serial.clone(),
        bytes: args.size,
        names: names
            .into_iter()
            .flatten()
            .map(|name| name.to_ascii_lowercase())
            .collect(),
    }
}

/// A drive held by an open descriptor, and its persistent name.
struct Holder {
    roots: Roots,
    node: Node,
    name: String,
    wanted: Wanted,
}

impl Holder {
    fn take(roots: Roots, path: &str, wanted: Wanted) -> Result<Self, Vec<String>> {
        let node = Node::claim(&roots, path).map_err(|reason| vec![reason])?;
        let mut reasons = differences(&node, &wanted);
        reasons.extend(claims_on(&roots, &node));
        let name = stable_name(&roots, &node, &wanted);
        if name.is_none() {
            reasons.push(format!(
                "nothing under /dev/disk/by-id with its serial or WWN leads to {}: a name that goes with the drive is \
                 what it is written by; is udev running?",
                node.kernel_name
            ));
        }
        match name {
            Some(name) if reasons.is_empty() => Ok(Self {
                roots,
                node,
                name,
                wanted,
            }),
            _ => Err(reasons),
        }
    }

    fn held(&self) -> Value {
        json!({
            "event": "held",
            "name": self.name,
            "kernel_name": self.node.kernel_name,
            "number": self.node.number,
            "claim": if self.node.is_block { "exclusive" } else { "lock" },
        })
    }

    /// Check that the descriptor is still that drive, that the name still resolves to it, and that it is not offered.
    fn check(&self) -> Value {
        let mut reasons = differences(&self.node, &self.wanted);
        if !self.node.is_behind(&self.roots, &self.name) {
            reasons.push(format!("{} does not lead to it any more", self.name));
        }
        reasons.extend(offers_of(&self.roots, &self.node));
        json!({"event": "checked", "reasons": reasons})
    }
}

#[cfg(test)]
mod tests {
    use blockdev::testing::{Tree, BYTES, SERIAL, WWN};

    use super::*;

    fn take(tree: &Tree) -> Result<Holder, Vec<String>> {
        let wanted = Wanted {
            serial: SERIAL.into(),
            bytes: BYTES,
            names: vec![WWN.into()],
        };
        Holder::take(tree.roots(), &tree.node("sda"), wanted)
    }

    fn reasons(tree: &Tree) -> String {
        match take(tree) {
            Ok(_) => panic!("it is held"),
            Err(reasons) => reasons.join("; "),
        }
    }

    #[test]
    fn a_drive_that_is_itself_and_unused_is_held_by_the_name_that_goes_with_it() {
        let tree = Tree::new();
        let holder = take(&tree).unwrap();
        assert_eq!(
            holder.held()["name"],
            format!("/dev/disk/by-id/wwn-0x{WWN}")
        );
        assert_eq!(holder.check()["reasons"], json!([]));
    }

    #[test]
    fn it_is_held_once() {
        let tree = Tree::new();
        let first = take(&tree).unwrap();
        assert!(reasons(&tree).contains("it is in use"));
        drop(first);
        assert!(take(&tree).is_ok());
    }

    #[test]
    fn another_drive_is_not_held() {
        let tree = Tree::new();
        tree.file("sys/devices/sda/device/vpd_pg80", "\0\u{80}\0\u{5}OTHER");
        assert!(reasons(&tree).contains("its serial is OTHER, not RL000001"));
        let tree = Tree::new();
        tree.file("sys/devices/sda/device/wwid", "naa.5000c500a00000ff");
        assert!(reasons(&tree).contains("its wwid is naa.5000c500a00000ff"));
        let tree = Tree::new();
        tree.file("sys/devices/sda/size", "16");
        assert!(reasons(&tree).contains("8192 bytes"));
    }

    #[test]
    fn a_drive_that_says_nothing_of_itself_is_not_held() {
        let tree = Tree::new();
        tree.remove("sys/devices/sda/device/vpd_pg80");
        tree.remove("sys/devices/sda/device/wwid");
        assert!(reasons(&tree).contains("the kernel read neither its serial nor a WWN"));
    }

    #[test]
    fn a_drive_without_a_name_of_its_own_is_not_held() {
        let tree = Tree::new();
        tree.remove(&format!("dev/disk/by-id/wwn-0x{WWN}"));
        tree.link("dev/disk/by-id/ata-RL_SSD_OTHER", "../../sda");
        assert!(reasons(&tree).contains("nothing under /dev/disk/by-id"));
        tree.link(&format!("dev/disk/by-id/ata-RL_SSD_{SERIAL}"), "../../sda");
        assert!(take(&tree).is_ok());
    }

    #[test]
    fn a_drive_that_was_exchanged_is_found_out() {
        let tree = Tree::new();
        let holder = take(&tree).unwrap();
        tree.remove(&format!("dev/disk/by-id/wwn-0x{WWN}"));
        let checked = holder.check();
        assert!(checked["reasons"][0]
            .as_str()
            .unwrap()
            .contains("does not lead to it any more"));
        tree.remove_all("sys/devices/sda");
        assert!(holder.check()["reasons"][0]
            .as_str()
            .unwrap()
            .contains("is gone"));
    }

    #[test]
    fn who_uses_it_is_named() {
        let tree = Tree::new();
        tree.file("sys/devices/sda/sda1/partition", "1");
        tree.file("sys/devices/sda/sda1/dev", "8:1");
        tree.link("sys/dev/block/8:1", "../../devices/sda/sda1");
        tree.link(
            "sys/devices/sda/sda1/holders/dm-0",
            "../../../../devices/dm-0",
        );
        tree.file("sys/devices/dm-0/dm/uuid", "LVM-x");
        tree.file("sys/devices/dm-0/dev", "253:0");
        tree.link("sys/dev/block/253:0", "../../devices/dm-0");
        tree.file(
            "proc/1/mountinfo",
            "1 1 253:0 / /srv/data\\040x rw - ext4 /dev/mapper/x rw\n",
        );
        let said = reasons(&tree);
        assert!(said.contains("sda1 is held by dm-0"), "{said}");
        assert!(said.contains("dm-0 is mounted at /srv/data x"), "{said}");
    }

    #[test]
    fn swap_btrfs_and_zfs_are_found() {
        let tree = Tree::new();
        tree.file(
            "proc/swaps",
            "Filename Type Size Used Priority\n/dev/sda partition 1 0 -2\n",
        );
        tree.file("sys/fs/btrfs/uuid/devices/sda", "");
        tree.zfs_label();
        let said = reasons(&tree);
        for part in ["is swap", "Btrfs", "ZFS"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_is_offered_over_fabrics_is_not_held_nor_written_when_it_is_offered_later() {
        let namespace = "sys/kernel/config/nvmet/subsystems/nqn.2014-08.org:x/namespaces/2";
        let tree = Tree::new();
        let holder = take(&tree).unwrap();
        tree.file(
            &format!("{namespace}/device_path"),
            &format!("/dev/disk/by-id/wwn-0x{WWN}\n"),
        );
        tree.file(&format!("{namespace}/enable"), "0\n");
        assert_eq!(holder.check()["reasons"], json!([]));
        tree.file(&format!("{namespace}/enable"), "1\n");
        let said = "sda is namespace 2 of nqn.2014-08.org:x, for NVMe over Fabrics";
        assert_eq!(holder.check()["reasons"], json!([said]));
        drop(holder);
        assert_eq!(reasons(&tree), said);
    }

    #[test]
    fn where_mounts_cannot_be_read_nothing_is_held() {
        let tree = Tree::new();
        tree.remove("proc/self/mountinfo");
        assert!(reasons(&tree).contains("what is mounted is unknown"));
    }
}

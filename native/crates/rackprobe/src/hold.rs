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
    Check { id: u64 },
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
            Ok(Command::Check { id }) => lines::emit(&checked(id, &holder.check())),
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
    fn check(&self) -> Vec<String> {
        let mut reasons = differences(&self.node, &self.wanted);
        if !self.node.is_behind(&self.roots, &self.name) {
            reasons.push(format!("{} does not lead to it any more", self.name));
        }
        reasons.extend(offers_of(&self.roots, &self.node));
        reasons
    }
}

/// The answer to a check, with its id, by which a late answer is told from the next one.
fn checked(id: u64, reasons: &[String]) -> Value {
    json!({"event": "checked", "id": id, "reasons": reasons})
}

#[cfg(test)]
mod tests {
    use blockdev::testing::{Tree, BYTES, SERIAL, WWN};
    use clap::CommandFactory;

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
        assert_eq!(holder.check(), [""; 0]);
    }

    #[test]
    fn the_answer_to_a_check_has_its_id() {
        let parsed: Command = serde_json::from_str(r#"{"op": "check", "id": 7}"#).unwrap();
        assert!(matches!(parsed, Command::Check { id: 7 }));
        assert_eq!(
            checked(7, &["it is gone".to_owned()]),
            json!({"event": "checked", "id": 7, "reasons": ["it is gone"]})
        );
    }

    #[test]
    fn what_the_help_shows_is_a_command() {
        let mut program = crate::cli::Cli::command();
        let hold = program.find_subcommand_mut("hold").unwrap();
        let help = hold.render_help().to_string();
        let (_, shown) = help.split_once(r#"{"op""#).unwrap();
        let (shown, _) = shown.split_once('}').unwrap();
        let parsed = serde_json::from_str(&format!(r#"{{"op"{shown}}}"#));
        assert!(matches!(parsed, Ok(Command::Check { .. })), "{parsed:?}");
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
        assert!(checked[0].contains("does not lead to it any more"));
        tree.remove_all("sys/devices/sda");
        assert!(holder.check()[0].contains("is gone"));
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
        is_not_held_nor_written_when_it_is_offered_later(
            "nvmet/subsystems/nqn.2014-08.org:x/namespaces/2",
            "device_path",
            "sda is namespace 2 of nqn.2014-08.org:x, for NVMe over Fabrics",
        );
    }

    #[test]
    fn what_lio_offers_is_not_held_nor_written_when_it_is_offered_later() {
        is_not_held_nor_written_when_it_is_offered_later(
            "target/core/iblock_0/d01",
            "udev_path",
            "sda is the backstore iblock_0/d01 of LIO, for SCSI initiators",
        );
    }

    fn is_not_held_nor_written_when_it_is_offered_later(offer: &str, path: &str, said: &str) {
        let tree = Tree::new();
        tree.file("sys/kernel/config/target/core/alua/lu_gps/ignored", "");
        let holder = take(&tree).unwrap();
        let file = |name: &str, text: &str| {
            tree.file(&format!("sys/kernel/config/{offer}/{name}"), text);
        };
        file(path, &format!("/dev/disk/by-id/wwn-0x{WWN}\n"));
        file("enable", "0\n");
        assert_eq!(holder.check(), [""; 0]);
        file("enable", "1\n");
        assert_eq!(holder.check(), [said]);
        drop(holder);
        assert_eq!(reasons(&tree), said);
    }

    fn loop_upon(tree: &Tree, backing: &str, offset: u64) {
        tree.file(
            "sys/devices/loop7/loop/backing_file",
            &format!("{backing}\n"),
        );
        tree.file("sys/devices/loop7/loop/offset", &format!("{offset}\n"));
        tree.link("sys/block/loop7", "../devices/loop7");
    }

    #[test]
    fn what_stands_on_a_loop_device_of_it_is_found_and_nothing_is_written_beneath_one_that_came_later(
    ) {
        let tree = Tree::new();
        let holder = take(&tree).unwrap();
        loop_upon(&tree, "/dev/sda", 1 << 20);
        tree.link("sys/dev/block/7:7", "../../devices/loop7");
        let backs = "sda backs loop7; detach it with `losetup --detach /dev/loop7`";
        assert_eq!(holder.check(), [backs]);
        drop(holder);
        tree.file(
            "proc/1/mountinfo",
            "1 1 7:7 / /srv rw - ext4 /dev/loop7 rw\n",
        );
        assert_eq!(reasons(&tree), format!("{backs}; loop7 is mounted at /srv"));
    }

    #[test]
    fn its_holder_goes_on_with_loop_devices_of_an_array_of_its_own() {
        let tree = Tree::new();
        let holder = take(&tree).unwrap();
        loop_upon(&tree, "/dev/sda (deleted)", 4096);
        tree.file("run/rackloop-md/array0", "loop7 sda 4096\n");
        assert_eq!(holder.check(), [""; 0]);
        tree.file("run/rackloop-md/array0", "loop7 sda 8192\n");
        assert_ne!(holder.check(), [""; 0]);
        drop(holder);
        tree.file("run/rackloop-md/array0", "loop7 sda 4096\n");
        assert!(reasons(&tree).contains("sda backs loop7"));
    }

    #[test]
    fn where_mounts_cannot_be_read_nothing_is_held() {
        let tree = Tree::new();
        tree.remove("proc/self/mountinfo");
        assert!(reasons(&tree).contains("what is mounted is unknown"));
    }
}

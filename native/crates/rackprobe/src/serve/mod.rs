//! A drive of this machine as an NBD export whose only connection is standard input and output.

mod export;
mod session;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use blockdev::{content, opened, Content, Medium, Node, Roots, Use, Wanted};

use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::hold::wanted;
use export::Export;

/// Serve the drive until its client leaves.
///
/// # Errors
/// [`Failure::BadInput`] where the permission is another drive's; [`Failure::Target`] with every reason if the drive is
/// another one or must not be written, or where the client broke the protocol.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let purpose = match (args.may_write()?, args.claimed) {
        (false, _) => Use::Read,
        (true, false) => Use::Write,
        (true, true) => Use::WriteClaimed,
    };
    let wanted = wanted(&args.identity);
    let failed = |reason: String| Failure::Target(format!("{}: {reason}", args.node));
    let roots = Roots::default();
    let node = opened(&roots, &args.node, &wanted, purpose)
        .map_err(|reasons| failed(reasons.join("; ")))?;
    let medium = medium(node, &wanted, purpose != Use::Read).map_err(failed)?;
    let connection = || -> io::Result<(File, File)> {
        let from = io::stdin().as_fd().try_clone_to_owned()?;
        let to = io::stdout().as_fd().try_clone_to_owned()?;
        Ok((from.into(), to.into()))
    };
    connection()
        .and_then(|(from, to)| session::serve(from, to, medium, &wanted.serial))
        .map_err(|error| failed(format!("the session with its client ended: {error}")))
}

fn medium(node: Node, wanted: &Wanted, may_write: bool) -> Result<Box<dyn Medium>, String> {
    Ok(match content(node, wanted.bytes, may_write)? {
        Content::Blocks(device) => Box::new(device),
        Content::Export { node, uri, text } => {
            let export = Export::connect(node, uri, wanted.bytes, may_write);
            Box::new(export.map_err(|what| format!("{text}: {what}"))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use blockdev::testing::{Tree, BYTES, SERIAL, WWN};

    use super::*;

    fn wanted(serial: &str) -> Wanted {
        Wanted {
            serial: serial.into(),
            bytes: BYTES,
            names: vec![WWN.into()],
        }
    }

    fn opened_for(tree: &Tree, serial: &str, purpose: Use) -> Result<Node, String> {
        opened(&tree.roots(), &tree.node("sda"), &wanted(serial), purpose)
            .map_err(|reasons| reasons.join("; "))
    }

    #[test]
    fn another_drive_is_not_even_read() {
        let tree = Tree::new();
        let said = opened_for(&tree, "OTHER", Use::Read).unwrap_err();
        assert!(said.contains("its serial is RL000001, not OTHER"), "{said}");
    }

    #[test]
    fn a_drive_in_use_is_read_and_not_written() {
        let tree = Tree::new();
        tree.file("proc/swaps", "Filename\n/dev/sda partition 1 0 -2\n");
        assert!(opened_for(&tree, SERIAL, Use::Read).is_ok());
        for purpose in [Use::Write, Use::WriteClaimed] {
            let said = opened_for(&tree, SERIAL, purpose).unwrap_err();
            assert!(said.contains("is swap"), "{said}");
        }
    }

    #[test]
    fn whoever_writes_unclaimed_claims_it() {
        let tree = Tree::new();
        let held = opened_for(&tree, SERIAL, Use::Write).unwrap();
        assert!(opened_for(&tree, SERIAL, Use::Write)
            .unwrap_err()
            .contains("it is in use"));
        assert!(opened_for(&tree, SERIAL, Use::WriteClaimed).is_ok());
        drop(held);
        assert!(opened_for(&tree, SERIAL, Use::Write).is_ok());
    }

    #[test]
    fn an_array_is_written_by_its_uuid_where_the_drives_beneath_are_held() {
        const UUID: &str = "8b2c1f5e-3a90-4f0e-9d1c-0123456789ab";
        let tree = Tree::new();
        tree.remove("sys/devices/sda/device/vpd_pg80");
        tree.remove("sys/devices/sda/device/wwid");
        tree.file("sys/devices/sda/md/uuid", &format!("{UUID}\n"));
        assert!(opened_for(&tree, UUID, Use::WriteClaimed).is_ok());
        let said = opened_for(&tree, UUID, Use::Write).unwrap_err();
        assert!(said.contains("itself a volume or an array"), "{said}");
        let said = opened_for(&tree, SERIAL, Use::WriteClaimed).unwrap_err();
        assert!(said.contains(&format!("its serial is {UUID}")), "{said}");
        tree.file("proc/swaps", "Filename\n/dev/sda partition 1 0 -2\n");
        let said = opened_for(&tree, UUID, Use::WriteClaimed).unwrap_err();
        assert!(said.contains("is swap"), "{said}");
    }

    #[test]
    fn a_file_that_is_neither_a_drive_nor_names_one_is_not_served() {
        let tree = Tree::new();
        for content in ["", "nothing", "nbd+unix:///x?nonsense"] {
            tree.file("dev/sda", content);
            let node = opened_for(&tree, SERIAL, Use::Read).unwrap();
            assert!(medium(node, &wanted(SERIAL), false).is_err(), "{content}");
        }
    }
}

//! Block devices of this machine: opened, compared with the drive that is expected, claimed where they are to be written,
//! and read and written beside the page cache. Everything about a drive is asked of the descriptor that was opened.

mod buffer;
mod claims;
mod device;
mod identity;
mod loops;
mod medium;
mod node;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::os::unix::fs::FileExt;

use nbd::uri::NbdUri;

pub use buffer::Buffer;
pub use device::Device;
pub use identity::{differences, stable_name, Wanted};
pub use medium::Medium;
pub use node::{Node, Roots};

const MOST_URI_BYTES: usize = 4096;

/// The use for which a drive is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Shared read access.
    Read,
    /// Write access, with a claim of its own.
    Write,
    /// Write access under the claim of the caller.
    WriteClaimed,
}

/// The open drive at `path`, once it is the expected one, and unused where it is to be written.
///
/// An array is written where its caller holds the drives beneath, and expects it by its UUID.
///
/// # Errors
/// Every reason why it is not the expected drive, or must not be written.
pub fn opened(
    roots: &Roots,
    path: &str,
    wanted: &Wanted,
    purpose: Use,
) -> Result<Node, Vec<String>> {
    let node = match purpose {
        Use::Write => Node::claim(roots, path),
        Use::Read | Use::WriteClaimed => Node::look(roots, path),
    };
    let node = node.map_err(|reason| vec![reason])?;
    let mut reasons = differences(&node, wanted);
    match purpose {
        Use::Read => {}
        Use::WriteClaimed if identity::is_array(&node, wanted) => {
            reasons.extend(claims::of_others_upon(roots, &node));
        }
        Use::WriteClaimed => reasons.extend(claims::of_others(roots, &node)),
        Use::Write => reasons.extend(claims_on(roots, &node)),
    }
    if reasons.is_empty() {
        Ok(node)
    } else {
        Err(reasons)
    }
}

/// Descriptions of every use of the device, of its partitions, and of devices built upon them.
#[must_use]
pub fn claims_on(roots: &Roots, node: &Node) -> Vec<String> {
    claims::of(roots, node)
}

/// Descriptions of the uses of the device that no claim on it prevents: by NVMe over Fabrics, LIO, and others' loop
/// devices.
#[must_use]
pub fn offers_of(roots: &Roots, node: &Node) -> Vec<String> {
    claims::offers(roots, node)
}

/// The content of a drive: its node, or where a regular file stands for that, the file or the export that it names.
pub enum Content {
    /// Blocks of this machine.
    Blocks(Device),
    /// The drive of a simulated server.
    Export {
        /// The node, whose file names the export.
        node: Node,
        /// The export.
        uri: NbdUri,
        /// The same as it is written there.
        text: String,
    },
}

/// The content of a drive of `bytes` that was opened.
///
/// # Errors
/// The reason, where it cannot be opened for I/O, or a regular file neither is the drive's content nor names an export.
pub fn content(node: Node, bytes: u64, may_write: bool) -> Result<Content, String> {
    let is_content = |node: &Node| {
        let file = node.file.metadata();
        file.is_ok_and(|file| file.len() == bytes)
    };
    if node.is_block || is_content(&node) {
        let device = Device::open(node, bytes, may_write);
        return device
            .map(Content::Blocks)
            .map_err(|error| format!("it cannot be opened for I/O: {error}"));
    }
    let mut text = vec![0; MOST_URI_BYTES];
    let filled = node
        .file
        .read_at(&mut text, 0)
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&text[..filled]);
    let text = text.trim().to_owned();
    if !NbdUri::is_meant(&text) {
        return Err("it is no block device, and no simulated one".into());
    }
    let uri = NbdUri::parse(&text).map_err(|error| error.to_string())?;
    Ok(Content::Export { node, uri, text })
}

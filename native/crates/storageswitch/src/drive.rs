//! The drive that tenants share.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use backing::{Backing, Memory};
use nbd::proto::flag;
use nbd::uri::NbdUri;

use crate::config::DriveConfig;
use crate::lane::Lane;
use crate::upstream::Upstream;

/// The drive, and the ways to it.
pub struct Drive {
    pub bytes: u64,
    /// Transmission flags of its exports.
    pub flags: u16,
    pub access: Access,
}

/// The execution of requests.
pub enum Access {
    /// By the thread that dispatches them: an ideal drive.
    AtOnce(Backing),
    /// By a thread for each of these.
    Lanes(Vec<Box<dyn Lane>>),
}

const WRITABLE: u16 = flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN;
const WITHOUT_DATA: u16 = flag::SEND_TRIM | flag::SEND_WRITE_ZEROES;

impl Drive {
    /// Open the drive; the error says what is wrong with it.
    pub fn open(config: &DriveConfig) -> Result<Self, String> {
        match config {
            DriveConfig::Memory { bytes } => {
                let memory = Memory::new(*bytes, false)
                    .map_err(|error| format!("drive.bytes {bytes}: {error}"))?;
                Ok(Self {
                    bytes: *bytes,
                    flags: WRITABLE | WITHOUT_DATA,
                    access: Access::AtOnce(Backing::Memory(memory)),
                })
            }
            DriveConfig::File { path, threads } => file(path, *threads)
                .map_err(|what| format!("drive.path {}: {what}", path.display())),
            DriveConfig::Nbd { uri, connections } => {
                upstream(uri, *connections).map_err(|what| format!("drive.uri {uri}: {what}"))
            }
        }
    }
}

fn file(path: &Path, threads: usize) -> Result<Drive, String> {
    let said = |error: std::io::Error| error.to_string();
    let kind = path.metadata().map_err(said)?.file_type();
    let is_device = kind.is_block_device();
    if !is_device && !kind.is_file() {
        return Err("it is neither a file nor a block device".to_owned());
    }
    let mut options = File::options();
    // No permit for a real drive reaches this program: it never writes to one.
    let mut file = options
        .read(true)
        .write(!is_device)
        .open(path)
        .map_err(said)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(said)?;
    let backing = Arc::new(Backing::File(file));
    let lanes = (0..threads).map(|_| Box::new(backing.clone()) as Box<dyn Lane>);
    Ok(Drive {
        bytes,
        flags: if is_device {
            flag::READ_ONLY | flag::CAN_MULTI_CONN
        } else {
            WRITABLE | WITHOUT_DATA
        },
        access: Access::Lanes(lanes.collect()),
    })
}

fn upstream(uri: &str, connections: usize) -> Result<Drive, String> {
    let uri = NbdUri::parse(uri).map_err(|error| error.to_string())?;
    let uri = Arc::new(uri);
    let first = Upstream::connect(&uri).map_err(|error| error.to_string())?;
    let export = first.export();
    // One connection where the server does not promise that several see the same bytes.
    let more = if first.may_be_several() {
        connections - 1
    } else {
        0
    };
    let mut lanes: Vec<Box<dyn Lane>> = vec![Box::new(first)];
    for _ in 0..more {
        let one = Upstream::connect(&uri).map_err(|error| error.to_string())?;
        lanes.push(Box::new(one));
    }
    let read_only = export.flags & flag::READ_ONLY;
    Ok(Drive {
        bytes: export.bytes,
        flags: match read_only {
            0 => WRITABLE,
            _ => flag::READ_ONLY | flag::CAN_MULTI_CONN,
        } | export.flags & flag::ROTATIONAL,
        access: Access::Lanes(lanes),
    })
}

//! The drives that tenants share.

use std::sync::Arc;

use backing::{Backing, Memory};
use blockdev::{content, opened, Content, Medium, Node, Roots, Use, Wanted};
use drivesim::Preparation;
use nbd::proto::{flag, MAX_REQUEST_BYTES};
use nbd::uri::NbdUri;
use racksim::Timing;
use serde_json::Value;

use crate::config::{default_connections, default_pipeline, DriveConfig};
use crate::device::{AtOnce, Device, Model, Pipes};
use crate::files::{identified, plain, Way};
use crate::permission::Permission;

/// A drive and the way to it.
pub struct Drive {
    pub bytes: u64,
    /// Transmission flags of its exports.
    pub flags: u16,
    /// The bytes that requests are multiples of.
    pub minimum_block: u32,
    /// The longest request.
    pub maximum_block: u32,
    pub device: Arc<dyn Device>,
    /// The reason why it is not reached by io_uring though that was not ruled out.
    pub fallback: Option<String>,
    /// The claim on the node of a simulated server's drive, which is not what its I/O goes through.
    _held: Option<Node>,
}

const WRITABLE: u16 = flag::SEND_FLUSH | flag::SEND_FUA | flag::CAN_MULTI_CONN;
const WITHOUT_DATA: u16 = flag::SEND_TRIM | flag::SEND_WRITE_ZEROES;
const ONLY_READ: u16 = flag::READ_ONLY | flag::CAN_MULTI_CONN;

impl Drive {
    /// Open the drive, for writing where that needs no permission or has one; the error says what is wrong with it.
    pub fn open(config: &DriveConfig, permission: &Permission) -> Result<Self, String> {
        match config {
            DriveConfig::Memory { bytes } => {
                let device = AtOnce(Backing::Memory(memory(*bytes)?));
                Ok(Self::new(*bytes, WRITABLE | WITHOUT_DATA, Arc::new(device)))
            }
            DriveConfig::File {
                path,
                access,
                depth,
                threads,
            } => {
                let way = Way {
                    access: *access,
                    depth: *depth,
                    threads: *threads,
                };
                let file = plain(path, way)
                    .map_err(|what| format!("drive.path {}: {what}", path.display()))?;
                let flags = if file.is_device {
                    ONLY_READ
                } else {
                    WRITABLE | WITHOUT_DATA
                };
                let (device, fallback) = file.chosen;
                Ok(Self {
                    fallback,
                    ..Self::new(file.bytes, flags, device)
                })
            }
            DriveConfig::Device { node, .. } => {
                real(config, permission).map_err(|what| format!("drive.node {node}: {what}"))
            }
            DriveConfig::Nbd {
                uri,
                connections,
                depth,
            } => upstream(uri, *connections, *depth)
                .map_err(|what| format!("drive.uri {uri}: {what}")),
            DriveConfig::Model {
                timing,
                bytes,
                sector_bytes,
                seed,
                prepare,
            } => model(timing, *bytes, *sector_bytes, *seed, prepare),
        }
    }

    fn new(bytes: u64, flags: u16, device: Arc<dyn Device>) -> Self {
        Self {
            bytes,
            flags,
            minimum_block: 1,
            maximum_block: MAX_REQUEST_BYTES,
            device,
            fallback: None,
            _held: None,
        }
    }

    /// Whether its tenants may write.
    pub fn is_writable(&self) -> bool {
        self.flags & flag::READ_ONLY == 0
    }
}

fn memory(bytes: u64) -> Result<Memory, String> {
    Memory::new(bytes, false).map_err(|error| format!("drive.bytes {bytes}: {error}"))
}

/// A drive of this machine, compared with its description on the descriptor that was opened.
fn real(config: &DriveConfig, permission: &Permission) -> Result<Drive, String> {
    let DriveConfig::Device {
        node,
        serial,
        size,
        wwn,
        eui64,
        nguid,
        access,
        depth,
        threads,
    } = config
    else {
        unreachable!("it is called for a device");
    };
    let names = [wwn, eui64, nguid].into_iter().flatten();
    let wanted = Wanted {
        serial: serial.clone(),
        bytes: *size,
        names: names.map(|name| name.to_ascii_lowercase()).collect(),
    };
    let purpose = permission.of(serial);
    let may_write = purpose != Use::Read;
    let found = opened(&Roots::default(), node, &wanted, purpose);
    let found = found.map_err(|reasons| reasons.join("; "))?;
    match content(found, *size, may_write)? {
        Content::Blocks(device) => {
            let offer = device.offer();
            let way = Way {
                access: *access,
                depth: *depth,
                threads: *threads,
            };
            let (device, fallback) = identified(device, offer.minimum_block, way)?;
            Ok(Drive {
                minimum_block: offer.minimum_block,
                fallback,
                ..Drive::new(*size, offer.flags | flag::CAN_MULTI_CONN, device)
            })
        }
        Content::Export { node, uri, text } => {
            let pipes = Pipes::connect(uri, default_connections(), default_pipeline());
            let pipes = pipes.map_err(|error| format!("{text}: {error}"))?;
            if pipes.export().bytes < *size {
                let there = pipes.export().bytes;
                return Err(format!("{text}: it has {there} bytes, not {size}"));
            }
            let mut drive = behind(pipes);
            drive.bytes = *size;
            drive._held = Some(node);
            if !may_write {
                drive.flags |= flag::READ_ONLY;
            }
            Ok(drive)
        }
    }
}

fn upstream(uri: &str, connections: usize, depth: usize) -> Result<Drive, String> {
    let uri = NbdUri::parse(uri).map_err(|error| error.to_string())?;
    let pipes = Pipes::connect(uri, connections, depth).map_err(|error| error.to_string())?;
    Ok(behind(pipes))
}

/// The drive behind connections to an export.
fn behind(pipes: Pipes) -> Drive {
    let export = pipes.export();
    let passed_on = flag::READ_ONLY | flag::SEND_FLUSH | flag::SEND_FUA | flag::ROTATIONAL;
    let flags = export.flags & passed_on | flag::CAN_MULTI_CONN;
    Drive {
        minimum_block: export.minimum_block,
        maximum_block: export.max_request_bytes.clamp(1, MAX_REQUEST_BYTES),
        ..Drive::new(export.bytes, flags, Arc::new(pipes))
    }
}

fn model(
    timing: &Value,
    bytes: u64,
    sector_bytes: u32,
    seed: u64,
    prepare: &Value,
) -> Result<Drive, String> {
    let wrong = |field: &str, what: &dyn std::fmt::Display| format!("drive.{field}: {what}");
    let timing: Timing =
        serde_json::from_value(timing.clone()).map_err(|error| wrong("timing", &error))?;
    timing.check(bytes).map_err(|what| wrong("timing", &what))?;
    let preparation: Preparation = match prepare {
        Value::Null => Preparation::default(),
        some => serde_json::from_value(some.clone()).map_err(|error| wrong("prepare", &error))?,
    };
    let prepared = preparation.prepare(&timing, bytes, sector_bytes, seed);
    let (service, at_ns) = prepared.map_err(|failure| wrong("prepare", &failure))?;
    let device = Model::new(service, at_ns, Backing::Memory(memory(bytes)?));
    let rotational = match timing {
        Timing::Hdd(_) => flag::ROTATIONAL,
        Timing::Ideal {} | Timing::Ssd(_) => 0,
    };
    Ok(Drive {
        minimum_block: sector_bytes,
        ..Drive::new(
            bytes,
            WRITABLE | WITHOUT_DATA | rotational,
            Arc::new(device),
        )
    })
}

//! The drives of the configuration.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nbd::uri::{Endpoint, NbdUri};
use serde::Deserialize;
use serde_json::Value;

/// The most threads of a drive on a file, and connections to one behind NBD.
const MOST_LANES: usize = 256;

/// The most requests that are in flight at a drive at once.
const MOST_DEPTH: usize = 4096;

/// A drive that is shared, by its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub struct NamedDrive {
    pub name: String,
    pub config: DriveConfig,
}

/// The kind of a drive, and where it is.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DriveConfig {
    /// Memory of this process: an ideal drive.
    Memory { bytes: u64 },
    /// A file, or a block device, which is only read.
    File {
        path: PathBuf,
        /// Without one, io_uring where the kernel allows it, else threads.
        #[serde(default)]
        access: Option<Access>,
        #[serde(default = "default_depth")]
        depth: usize,
        #[serde(default = "default_threads")]
        threads: usize,
    },
    /// A drive of this machine by its identity, which is written where the command line permits it.
    Device {
        node: String,
        serial: String,
        /// Its bytes.
        size: u64,
        #[serde(default)]
        wwn: Option<String>,
        #[serde(default)]
        eui64: Option<String>,
        #[serde(default)]
        nguid: Option<String>,
        #[serde(default)]
        access: Option<Access>,
        #[serde(default = "default_depth")]
        depth: usize,
        #[serde(default = "default_threads")]
        threads: usize,
    },
    /// An export of an NBD server.
    Nbd {
        uri: String,
        #[serde(default = "default_connections")]
        connections: usize,
        /// Requests in flight on each connection.
        #[serde(default = "default_pipeline")]
        depth: usize,
    },
    /// A drive model over memory of this process.
    Model {
        timing: Value,
        bytes: u64,
        sector_bytes: u32,
        #[serde(default)]
        seed: u64,
        /// Experiments of drivesim.
        #[serde(default)]
        prepare: Value,
    },
}

/// The way to a file or a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// io_uring.
    Ring,
    /// Threads that carry out one request at a time each.
    Threads,
}

fn default_threads() -> usize {
    16
}

fn default_depth() -> usize {
    256
}

pub fn default_connections() -> usize {
    4
}

pub fn default_pipeline() -> usize {
    32
}

impl TryFrom<Value> for NamedDrive {
    type Error = String;

    fn try_from(mut value: Value) -> Result<Self, String> {
        let fields = value.as_object_mut().ok_or("a drive is no object")?;
        let name = match fields.remove("name") {
            Some(Value::String(name)) if !name.is_empty() => name,
            _ => return Err("a drive has no name: give one, as in \"name\": \"d0\"".to_owned()),
        };
        let config =
            serde_json::from_value(value).map_err(|error| format!("drive {name:?}: {error}"))?;
        Ok(Self { name, config })
    }
}

impl DriveConfig {
    /// The marks of the drive, each as the configuration writes it and as it can be compared.
    pub fn marks(&self) -> Vec<(String, Mark)> {
        match self {
            Self::Memory { .. } | Self::Model { .. } => Vec::new(),
            Self::File { path, .. } => {
                vec![(format!("path {}", path.display()), Mark::of_path(path))]
            }
            Self::Device { node, serial, .. } => vec![
                (format!("serial {serial}"), Mark::Serial(serial.clone())),
                (format!("node {node}"), Mark::of_path(Path::new(node))),
            ],
            // One that is none is refused when it is opened.
            Self::Nbd { uri, .. } => NbdUri::parse(uri)
                .map(|parsed| (format!("uri {uri}"), Mark::of_export(parsed)))
                .into_iter()
                .collect(),
        }
    }

    /// Check what can be without opening it; the error names the field.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Memory { bytes: 0 } => Err("bytes is 0; give the size of the drive".to_owned()),
            Self::Memory { .. } => Ok(()),
            Self::Device { size: 0, .. } => {
                Err("size is 0; give the bytes of the drive".to_owned())
            }
            Self::File { depth, threads, .. } | Self::Device { depth, threads, .. } => {
                within("threads", *threads, MOST_LANES)?;
                within("depth", *depth, MOST_DEPTH)
            }
            Self::Nbd {
                connections, depth, ..
            } => {
                within("connections", *connections, MOST_LANES)?;
                within("depth", *depth, MOST_DEPTH)
            }
            Self::Model {
                bytes,
                sector_bytes,
                ..
            } => match *sector_bytes {
                512 | 4096 if *bytes > 0 && bytes % u64::from(*sector_bytes) == 0 => Ok(()),
                512 | 4096 => Err(format!(
                    "bytes {bytes} is not a number of sectors of {sector_bytes} bytes"
                )),
                other => Err(format!("sector_bytes {other} is neither 512 nor 4096")),
            },
        }
    }
}

/// Something that only one drive has: its serial, its file, its export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Serial(String),
    /// A block device by its number.
    Block(u64),
    /// A file by the number of its file system and its own.
    File(u64, u64),
    /// A path with nothing there.
    Path(PathBuf),
    /// An export by the mark of its server's socket.
    UnixExport(Box<Mark>, String),
    TcpExport(String, u16, String),
}

impl Mark {
    fn of_path(path: &Path) -> Self {
        match path.metadata() {
            Ok(node) if node.file_type().is_block_device() => Self::Block(node.rdev()),
            Ok(file) => Self::File(file.dev(), file.ino()),
            Err(_) => Self::Path(path.to_owned()),
        }
    }

    fn of_export(NbdUri { endpoint, export }: NbdUri) -> Self {
        match endpoint {
            Endpoint::Unix(socket) => Self::UnixExport(Box::new(Self::of_path(&socket)), export),
            Endpoint::Tcp(host, port) => Self::TcpExport(host, port, export),
        }
    }

    /// Whether both are of one drive. Hosts are looked up only where all else is the same.
    pub fn is_that_of(&self, other: &Self, hosts: &mut Hosts) -> bool {
        match (self, other) {
            (Self::TcpExport(one, port, export), Self::TcpExport(two, its_port, its_export)) => {
                (port, export) == (its_port, its_export)
                    && (one == two || hosts.share_an_address(one, two))
            }
            _ => self == other,
        }
    }
}

/// The addresses of hosts. Each is looked up once: a name service that does not answer takes seconds to say so.
pub struct Hosts {
    look_up: fn(&str) -> Vec<IpAddr>,
    known: HashMap<String, Vec<IpAddr>>,
}

impl Hosts {
    pub fn new(look_up: fn(&str) -> Vec<IpAddr>) -> Self {
        Self {
            look_up,
            known: HashMap::new(),
        }
    }

    fn share_an_address(&mut self, one: &str, two: &str) -> bool {
        let of_one = self.addresses(one);
        self.addresses(two)
            .iter()
            .any(|address| of_one.contains(address))
    }

    fn addresses(&mut self, host: &str) -> Vec<IpAddr> {
        let known = self.known.entry(host.to_owned());
        known.or_insert_with(|| (self.look_up)(host)).clone()
    }
}

/// The addresses of a host. One that cannot be looked up has none: it is refused when its drive is opened.
pub fn look_up(host: &str) -> Vec<IpAddr> {
    let found = (host, 0).to_socket_addrs();
    found
        .map(|found| found.map(|address| address.ip()).collect())
        .unwrap_or_default()
}

fn within(what: &str, count: usize, most: usize) -> Result<(), String> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(format!("{what} is {count}; give 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

    fn look_up_nothing(_host: &str) -> Vec<IpAddr> {
        LOOKED_UP.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }

    #[test]
    fn each_host_is_looked_up_once() {
        let exports =
            ["a", "b", "c", "d"].map(|host| Mark::TcpExport(host.to_owned(), 10809, String::new()));
        let mut hosts = Hosts::new(look_up_nothing);
        for (n, one) in exports.iter().enumerate() {
            for (m, other) in exports.iter().enumerate() {
                assert_eq!(one.is_that_of(other, &mut hosts), n == m);
            }
        }
        assert_eq!(LOOKED_UP.load(Ordering::Relaxed), exports.len());
    }
}

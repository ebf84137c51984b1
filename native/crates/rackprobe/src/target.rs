//! Targets: an NBD export, a block device or a file, with stamped requests at a queue depth.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blockdev::Buffer;
use nbd::client::{Client, Command};
use nbd::proto::flag;
use nbd::uri::NbdUri;
use nbd::Patience;

use crate::by_path;
use crate::clock;
use crate::failure::Failure;
use crate::file_target::{FileTarget, Node};
use crate::io::{Access, Broken, Done, Request};

const MOST_URI_BYTES: usize = 4096;

enum Backend {
    Nbd {
        client: Box<Client<Buffer>>,
        submitted_ns: HashMap<u64, u64>,
    },
    File(FileTarget),
}

/// An open target.
pub struct Target {
    name: String,
    backend: Backend,
}

impl Target {
    /// Open `name`, an NBD URI or a path, for up to `depth` requests in flight.
    ///
    /// A port's path under `/dev/disk/by-path` is that of the drive there; on a simulated server a file below `/dev`
    /// stands for a drive's node, and names its export.
    ///
    /// # Errors
    /// [`Failure::BadInput`] for an invalid URI, [`Failure::Target`] if it cannot be opened.
    pub fn open(name: &str, access: Access, depth: usize) -> Result<Self, Failure> {
        let path = by_path::present(name);
        let export = if NbdUri::is_meant(name) {
            Some(name.to_owned())
        } else {
            export_named_in(Path::new(&*path))
        };
        let backend = if let Some(text) = export {
            let uri = NbdUri::parse(&text).map_err(|error| Failure::BadInput(error.to_string()))?;
            let client = Client::connect(&uri)
                .map_err(|error| Failure::Target(format!("{name}: {error}")))?;
            if access != Access::Read && client.export().has(flag::READ_ONLY) {
                return Err(Failure::Target(format!("{name}: the export is read-only")));
            }
            Backend::Nbd {
                client: Box::new(client),
                submitted_ns: HashMap::new(),
            }
        } else {
            let file = FileTarget::open(&path, access, depth)
                .map_err(|error| Failure::Target(format!("{name}: {error}")))?;
            if matches!(file.node(), Node::Device(device) if !by_path::is_of_port(&path, device)) {
                return Err(Failure::Target(format!(
                    "{name}: its link leads to a drive of another port, as that of a drive that went"
                )));
            }
            Backend::File(file)
        };
        Ok(Self {
            name: name.to_owned(),
            backend,
        })
    }

    /// The name it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its name leads to another device or file by now, or to none. Never so of an export.
    pub fn has_moved(&self) -> bool {
        match &self.backend {
            Backend::Nbd { .. } => false,
            Backend::File(file) => {
                Node::at(&by_path::present(&self.name)).ok() != Some(file.node())
            }
        }
    }

    /// A path that leads to what was opened, whatever becomes of its name; `None` for an export.
    pub fn path(&self) -> Option<String> {
        match &self.backend {
            Backend::Nbd { .. } => None,
            Backend::File(file) => Some(file.path()),
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.backend {
            Backend::Nbd { client, .. } => client.export().bytes,
            Backend::File(file) => file.bytes(),
        }
    }

    /// Maximum length of a request.
    pub fn max_request_bytes(&self) -> u64 {
        match &self.backend {
            Backend::Nbd { client, .. } => client.export().max_request_bytes.into(),
            Backend::File(_) => nbd::proto::MAX_REQUEST_BYTES.into(),
        }
    }

    /// Whether it supports [`Request::Flush`].
    pub fn can_flush(&self) -> bool {
        match &self.backend {
            Backend::Nbd { client, .. } => client.export().has(flag::SEND_FLUSH),
            Backend::File(_) => true,
        }
    }

    /// Send a request; its id comes back in [`Done`].
    ///
    /// # Errors
    /// [`Broken`] if the connection is lost.
    pub fn submit(&mut self, request: Request) -> Result<u64, Broken> {
        match &mut self.backend {
            Backend::Nbd {
                client,
                submitted_ns,
            } => {
                let submit_ns = clock::now_ns();
                let id = client.submit(match request {
                    Request::Read(offset, buffer) => Command::Read { offset, buffer },
                    Request::Write(offset, buffer) => Command::Write {
                        offset,
                        buffer,
                        fua: false,
                    },
                    Request::Flush => Command::Flush,
                })?;
                submitted_ns.insert(id, submit_ns);
                Ok(id)
            }
            Backend::File(file) => file.submit(request),
        }
    }

    /// The next completed request, in any order, or `None` if patience runs out first.
    ///
    /// # Errors
    /// [`Broken`] if the connection is lost.
    pub fn receive(&mut self, patience: Patience) -> Result<Option<Done>, Broken> {
        match &mut self.backend {
            Backend::Nbd {
                client,
                submitted_ns,
            } => {
                let completion = client.receive(patience)?;
                let complete_ns = clock::now_ns();
                Ok(completion.map(|completion| Done {
                    id: completion.cookie,
                    buffer: completion.buffer,
                    result: completion.result.map_err(errno_text),
                    submit_ns: submitted_ns
                        .remove(&completion.cookie)
                        .unwrap_or(complete_ns),
                    complete_ns,
                }))
            }
            Backend::File(file) => file.receive(patience),
        }
    }
}

/// The URI of the export that stands in for a drive whose node is a file below `/dev`.
fn export_named_in(path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    if !real.starts_with("/dev") || !real.is_file() {
        return None;
    }
    let mut text = vec![0; MOST_URI_BYTES];
    let filled = File::open(real).ok()?.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..filled]).ok()?.trim();
    NbdUri::is_meant(text).then(|| text.to_owned())
}

/// The protocol fixes its error numbers to Linux values, so the system knows their names.
fn errno_text(errno: u32) -> String {
    io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(i32::MAX)).to_string()
}

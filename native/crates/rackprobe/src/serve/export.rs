//! The drive of a simulated server, whose node is a regular file with the URI of its export in it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use blockdev::{Medium, Node};
use nbd::client::{Client, Command};
use nbd::proto::{errno, flag, MAX_REQUEST_BYTES};
use nbd::uri::NbdUri;
use nbd::Patience;
use nbdserver::Offer;

const ZEROES_BYTES: usize = 1 << 20;
const BLOCK: u32 = 4096;

/// An export, with a connection for each thread that is at it.
pub struct Export {
    node: Node,
    uri: NbdUri,
    bytes: u64,
    may_write: bool,
    idle: Mutex<Vec<Client<Vec<u8>>>>,
}

impl Export {
    /// The export at `uri`, which the file of a node named.
    ///
    /// # Errors
    /// The reason, where it does not answer, is too small, or is read-only and should be written.
    pub fn connect(node: Node, uri: NbdUri, bytes: u64, may_write: bool) -> Result<Self, String> {
        let client = Client::connect(&uri).map_err(|error| error.to_string())?;
        let there = client.export();
        if there.bytes < bytes {
            return Err(format!("it has {} bytes, not {bytes}", there.bytes));
        }
        if may_write && there.has(flag::READ_ONLY) {
            return Err("it is read-only".to_owned());
        }
        Ok(Self {
            node,
            uri,
            bytes,
            may_write,
            idle: Mutex::new(vec![client]),
        })
    }

    /// Have the export answer one request; its buffer comes back.
    fn ask(&self, command: Command<Vec<u8>>) -> io::Result<Vec<u8>> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut client = match taken {
            Some(client) => client,
            None => Client::connect(&self.uri).map_err(|_| gone())?,
        };
        let answered = client
            .submit(command)
            .and_then(|_| client.receive(Patience::WITHOUT_END))
            .map_err(|_| gone())?
            .ok_or_else(gone)?;
        // A connection that failed is not kept.
        idle().push(client);
        answered.result.map_err(os_error)?;
        Ok(answered.buffer.unwrap_or_default())
    }
}

impl Medium for Export {
    fn offer(&self) -> Offer {
        let more = if self.may_write {
            flag::SEND_FUA | flag::SEND_WRITE_ZEROES
        } else {
            flag::READ_ONLY
        };
        let is_rotational = self.node.attribute("queue/rotational") == "1";
        Offer {
            bytes: self.bytes,
            flags: flag::SEND_FLUSH | more | if is_rotational { flag::ROTATIONAL } else { 0 },
            minimum_block: 512,
            preferred_block: BLOCK,
            maximum_block: MAX_REQUEST_BYTES,
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let filled = self.ask(Command::Read {
            offset,
            buffer: vec![0; buffer.len()],
        })?;
        buffer.copy_from_slice(&filled);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let buffer = data.to_vec();
        self.ask(Command::Write {
            offset,
            buffer,
            fua: false,
        })
        .map(drop)
    }

    fn flush(&self) -> io::Result<()> {
        self.ask(Command::Flush).map(drop)
    }

    fn trim(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(os_error(errno::EINVAL))
    }

    fn zero(&self, offset: u64, length: u64, _keeps_place: bool) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let part = (length - done).min(ZEROES_BYTES as u64);
            self.write(offset + done, &vec![0; part as usize])?;
            done += part;
        }
        Ok(())
    }

    fn is_gone(&self) -> bool {
        // Another drive has another file in the place of its node.
        let is_replaced = self
            .node
            .file
            .metadata()
            .is_ok_and(|file| file.nlink() == 0);
        is_replaced || !self.node.folder.exists()
    }
}

fn gone() -> io::Error {
    os_error(errno::ESHUTDOWN)
}

/// The protocol fixes its error numbers to Linux values.
fn os_error(errno: u32) -> io::Error {
    io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(i32::MAX))
}

//! An NBD client with many requests in flight on one connection.

use std::collections::HashMap;

use crate::negotiation::{negotiate, Export};
use crate::proto::{self, chunk, cmd, u16_at, u32_at, u64_at};
use crate::stream::{Error, Patience, Stream};
use crate::uri::NbdUri;

/// Maximum accepted length of an error message.
const MAX_ERROR_BYTES: u32 = 64 << 10;

/// A request. Buffers are lent to the client and come back in the [`Completion`].
#[derive(Debug)]
pub enum Command<B> {
    /// Read as many bytes as the buffer is long.
    Read {
        /// Byte offset.
        offset: u64,
        /// Filled on success.
        buffer: B,
    },
    /// Write the whole buffer.
    Write {
        /// Byte offset.
        offset: u64,
        /// The data to write.
        buffer: B,
    },
    /// Make completed writes durable.
    Flush,
}

/// An answered request.
#[derive(Debug)]
pub struct Completion<B> {
    /// The request's identity, as returned by [`Client::submit`].
    pub cookie: u64,
    /// The buffer of a read or a write.
    pub buffer: Option<B>,
    /// The error number of [`proto::errno`] if the request failed.
    pub result: Result<(), u32>,
}

#[derive(Debug)]
struct Pending<B> {
    offset: u64,
    is_read: bool,
    buffer: Option<B>,
    filled: usize,
    result: Result<(), u32>,
}

/// A connection to one export. `B` is what reads fill and writes send.
#[derive(Debug)]
pub struct Client<B> {
    stream: Stream,
    export: Export,
    next_cookie: u64,
    pending: HashMap<u64, Pending<B>>,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Client<B> {
    /// Connect and negotiate.
    ///
    /// # Errors
    /// [`Error`] where nothing answers, the export is refused, or the server does not speak fixed newstyle.
    pub fn connect(uri: &NbdUri) -> Result<Self, Error> {
        let mut stream = Stream::connect(&uri.endpoint)?;
        let export = negotiate(&mut stream, &uri.export)?;
        Ok(Self {
            stream,
            export,
            next_cookie: 0,
            pending: HashMap::new(),
        })
    }

    /// The server's description of the export.
    #[must_use]
    pub fn export(&self) -> Export {
        self.export
    }

    /// Send a request and return its cookie.
    ///
    /// # Errors
    /// [`Error`] where the connection is broken.
    ///
    /// # Panics
    /// When the buffer is longer than 4 GiB.
    pub fn submit(&mut self, command: Command<B>) -> Result<u64, Error> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        let (code, offset, buffer) = match command {
            Command::Read { offset, buffer } => (cmd::READ, offset, Some(buffer)),
            Command::Write { offset, buffer } => (cmd::WRITE, offset, Some(buffer)),
            Command::Flush => (cmd::FLUSH, 0, None),
        };
        let length = buffer.as_ref().map_or(0, |buffer| buffer.as_ref().len());
        let request = proto::Request {
            flags: 0,
            command: code,
            cookie,
            offset,
            length: u32::try_from(length).expect("a request is shorter than 4 GiB"),
        };
        self.stream.write_all(&request.encode())?;
        if let (cmd::WRITE, Some(buffer)) = (code, &buffer) {
            self.stream.write_all(buffer.as_ref())?;
        }
        let pending = Pending {
            offset,
            is_read: code == cmd::READ,
            buffer,
            filled: 0,
            result: Ok(()),
        };
        self.pending.insert(cookie, pending);
        Ok(cookie)
    }

    /// The next answered request in the server's order, or `None` if patience runs out first.
    ///
    /// # Errors
    /// [`Error`] where the connection is broken or the server broke the protocol.
    pub fn receive(&mut self, patience: Patience) -> Result<Option<Completion<B>>, Error> {
        while self.stream.wait(patience)? {
            if let Some(completion) = self.read_reply()? {
                return Ok(Some(completion));
            }
        }
        Ok(None)
    }

    fn read_reply(&mut self) -> Result<Option<Completion<B>>, Error> {
        match u32::from_be_bytes(self.stream.read_array()?) {
            proto::SIMPLE_REPLY_MAGIC => self.read_simple().map(Some),
            proto::STRUCTURED_REPLY_MAGIC => self.read_chunk(),
            magic => Err(Error::Protocol(format!(
                "a reply begins with {magic:#010x}"
            ))),
        }
    }

    fn read_simple(&mut self) -> Result<Completion<B>, Error> {
        let raw: [u8; 12] = self.stream.read_array()?;
        let (errno, cookie) = (u32_at(&raw, 0), u64_at(&raw, 4));
        let pending = self
            .pending
            .get_mut(&cookie)
            .ok_or_else(|| unknown_cookie(cookie))?;
        if errno != 0 {
            pending.result = Err(errno);
        } else if let (true, Some(buffer)) = (pending.is_read, &mut pending.buffer) {
            self.stream.read_exact(buffer.as_mut())?;
            pending.filled = buffer.as_ref().len();
        }
        self.finish(cookie)
    }

    fn read_chunk(&mut self) -> Result<Option<Completion<B>>, Error> {
        let raw: [u8; 16] = self.stream.read_array()?;
        let (flags, kind, cookie, length) = (
            u16_at(&raw, 0),
            u16_at(&raw, 2),
            u64_at(&raw, 4),
            u32_at(&raw, 12),
        );
        let pending = self
            .pending
            .get_mut(&cookie)
            .ok_or_else(|| unknown_cookie(cookie))?;
        match kind {
            chunk::NONE if length == 0 => (),
            chunk::OFFSET_DATA if length > 8 => {
                let offset = u64::from_be_bytes(self.stream.read_array()?);
                self.stream.read_exact(pending.part(offset, length - 8)?)?;
            }
            chunk::OFFSET_HOLE if length == 12 => {
                let raw: [u8; 12] = self.stream.read_array()?;
                pending.part(u64_at(&raw, 0), u32_at(&raw, 8))?.fill(0);
            }
            chunk::ERROR | chunk::ERROR_OFFSET if (6..=MAX_ERROR_BYTES).contains(&length) => {
                let mut payload = vec![0; length as usize];
                self.stream.read_exact(&mut payload)?;
                pending.result = Err(u32_at(&payload, 0));
            }
            _ => {
                return Err(Error::Protocol(format!(
                    "a reply chunk of type {kind} and {length} bytes"
                )))
            }
        }
        if flags & chunk::FLAG_DONE == 0 {
            return Ok(None);
        }
        self.finish(cookie).map(Some)
    }

    fn finish(&mut self, cookie: u64) -> Result<Completion<B>, Error> {
        let pending = self
            .pending
            .remove(&cookie)
            .ok_or_else(|| unknown_cookie(cookie))?;
        let wanted = pending
            .buffer
            .as_ref()
            .map_or(0, |buffer| buffer.as_ref().len());
        if pending.is_read && pending.result.is_ok() && pending.filled != wanted {
            return Err(Error::Protocol(format!(
                "{} of {wanted} bytes came for a read",
                pending.filled
            )));
        }
        Ok(Completion {
            cookie,
            buffer: pending.buffer,
            result: pending.result,
        })
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Pending<B> {
    /// The part of a read's buffer that a chunk covers.
    fn part(&mut self, offset: u64, length: u32) -> Result<&mut [u8], Error> {
        self.filled += length as usize;
        let buffer = self
            .buffer
            .as_mut()
            .filter(|_| self.is_read)
            .map(AsMut::as_mut);
        let start = offset
            .checked_sub(self.offset)
            .and_then(|start| usize::try_from(start).ok());
        let part = buffer.zip(start).and_then(|(buffer, start)| {
            let end = start.checked_add(length as usize)?;
            buffer.get_mut(start..end)
        });
        part.ok_or_else(|| {
            Error::Protocol(format!(
                "a chunk of {length} bytes at {offset} that was not requested"
            ))
        })
    }
}

impl<B> Drop for Client<B> {
    fn drop(&mut self) {
        let goodbye = proto::Request {
            flags: 0,
            command: cmd::DISC,
            cookie: u64::MAX,
            offset: 0,
            length: 0,
        };
        // It fails only if the server is gone already.
        let _ = self.stream.write_all(&goodbye.encode());
    }
}

fn unknown_cookie(cookie: u64) -> Error {
    Error::Protocol(format!(
        "a reply to request {cookie}, which is not in flight"
    ))
}

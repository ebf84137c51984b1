//! An NBD client with many requests in flight on one connection.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::negotiation::{negotiate, Export};
use crate::proto::{self, chunk, cmd, u16_at, u32_at, u64_at};
use crate::stream::{Error, Patience, Reader, Stream};
use crate::uri::NbdUri;

/// Maximum accepted length of an error message.
const MAX_ERROR_BYTES: u32 = 64 << 10;
/// A buffer grown beyond this for one large write is given back afterwards.
const KEEP_BYTES: usize = 1 << 20;

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
        /// On stable media before it completes; only where the export has [`proto::flag::SEND_FUA`].
        fua: bool,
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
    /// The parts that were filled of a read that comes in several.
    parts: Vec<Range<usize>>,
    result: Result<(), u32>,
}

/// The requests in flight on a connection, by their cookies.
#[derive(Debug)]
struct InFlight<B>(Arc<Mutex<HashMap<u64, Pending<B>>>>);

impl<B> InFlight<B> {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Pending<B>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Clone for InFlight<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A connection to one export. `B` is what reads fill and writes send.
#[derive(Debug)]
pub struct Client<B> {
    sender: Sender<B>,
    receiver: Receiver<B>,
    export: Export,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Client<B> {
    /// Connect and negotiate.
    ///
    /// # Errors
    /// [`Error`] where nothing answers, the export is refused, or the server does not speak fixed newstyle.
    pub fn connect(uri: &NbdUri) -> Result<Self, Error> {
        let mut stream = Stream::connect(&uri.endpoint)?;
        let export = negotiate(&mut stream, &uri.export)?;
        let in_flight = InFlight(Arc::default());
        Ok(Self {
            sender: Sender {
                stream: stream.try_clone()?,
                next_cookie: 0,
                in_flight: in_flight.clone(),
                wire: Vec::new(),
            },
            receiver: Receiver {
                stream: Reader::new(stream),
                in_flight,
            },
            export,
        })
    }

    /// The server's description of the export.
    #[must_use]
    pub fn export(&self) -> Export {
        self.export
    }

    /// The two directions of the connection, for a thread each.
    #[must_use]
    pub fn split(self) -> (Sender<B>, Receiver<B>) {
        (self.sender, self.receiver)
    }

    /// Send a request and return its cookie.
    ///
    /// # Errors
    /// [`Error`] where the connection is broken.
    ///
    /// # Panics
    /// When the buffer is longer than 4 GiB.
    pub fn submit(&mut self, command: Command<B>) -> Result<u64, Error> {
        self.sender.submit(command)
    }

    /// The next answered request in the server's order, or `None` if patience runs out first.
    ///
    /// # Errors
    /// [`Error`] where the connection is broken or the server broke the protocol.
    pub fn receive(&mut self, patience: Patience) -> Result<Option<Completion<B>>, Error> {
        self.receiver.receive(patience)
    }
}

/// The requests' direction of a connection. The server is told goodbye when it is dropped.
#[derive(Debug)]
pub struct Sender<B> {
    stream: Stream,
    next_cookie: u64,
    in_flight: InFlight<B>,
    /// The bytes of a request, kept for the next one.
    wire: Vec<u8>,
}

impl<B: AsRef<[u8]>> Sender<B> {
    /// The cookie of the next request.
    #[must_use]
    pub fn next_cookie(&self) -> u64 {
        self.next_cookie
    }

    /// End the connection, so that a receiver which waits for the server wakes up.
    pub fn hang_up(&self) {
        self.stream.shutdown();
    }

    /// Send a request and return its cookie. It waits while the server does not read.
    ///
    /// # Errors
    /// [`Error`] where the connection is broken.
    ///
    /// # Panics
    /// When the buffer is longer than 4 GiB.
    pub fn submit(&mut self, command: Command<B>) -> Result<u64, Error> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        let (code, flags, offset, buffer) = match command {
            Command::Read { offset, buffer } => (cmd::READ, 0, offset, Some(buffer)),
            Command::Write {
                offset,
                buffer,
                fua,
            } => {
                let flags = if fua { cmd::FLAG_FUA } else { 0 };
                (cmd::WRITE, flags, offset, Some(buffer))
            }
            Command::Flush => (cmd::FLUSH, 0, 0, None),
        };
        let length = buffer.as_ref().map_or(0, |buffer| buffer.as_ref().len());
        let request = proto::Request {
            flags,
            command: code,
            cookie,
            offset,
            length: u32::try_from(length).expect("a request is shorter than 4 GiB"),
        };
        let is_read = code == cmd::READ;
        self.wire.clear();
        self.wire.extend_from_slice(&request.encode());
        if let (false, Some(buffer)) = (is_read, &buffer) {
            self.wire.extend_from_slice(buffer.as_ref());
        }
        let pending = Pending {
            offset,
            is_read,
            buffer,
            filled: 0,
            parts: Vec::new(),
            result: Ok(()),
        };
        // Before it is sent: its answer may come while this thread still sends.
        self.in_flight.lock().insert(cookie, pending);
        let sent = self.stream.write_all(&self.wire);
        if self.wire.len() > KEEP_BYTES {
            self.wire = Vec::new();
        }
        sent?;
        Ok(cookie)
    }
}

/// The answers' direction of a connection.
#[derive(Debug)]
pub struct Receiver<B> {
    stream: Reader,
    in_flight: InFlight<B>,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Receiver<B> {
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

    /// Whether a part of a further answer has been read already.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.stream.has_some()
    }

    /// End the connection, so that a sender which waits for the server wakes up.
    pub fn hang_up(&self) {
        self.stream.stream().shutdown();
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
        let mut pending = self.take(cookie)?;
        if errno != 0 {
            pending.result = Err(errno);
        } else if let (true, Some(buffer)) = (pending.is_read, &mut pending.buffer) {
            self.stream.read_exact(buffer.as_mut())?;
            pending.filled = buffer.as_ref().len();
        }
        pending.finish(cookie)
    }

    fn read_chunk(&mut self) -> Result<Option<Completion<B>>, Error> {
        let raw: [u8; 16] = self.stream.read_array()?;
        let (flags, kind, cookie, length) = (
            u16_at(&raw, 0),
            u16_at(&raw, 2),
            u64_at(&raw, 4),
            u32_at(&raw, 12),
        );
        let mut pending = self.take(cookie)?;
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
            self.in_flight.lock().insert(cookie, pending);
            return Ok(None);
        }
        pending.finish(cookie).map(Some)
    }

    /// A request that a reply has come for: it is read into without the lock, which the sender needs as well.
    fn take(&self, cookie: u64) -> Result<Pending<B>, Error> {
        let taken = self.in_flight.lock().remove(&cookie);
        taken.ok_or_else(|| unknown_cookie(cookie))
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Pending<B> {
    fn finish(self, cookie: u64) -> Result<Completion<B>, Error> {
        let wanted = self
            .buffer
            .as_ref()
            .map_or(0, |buffer| buffer.as_ref().len());
        if self.is_read && self.result.is_ok() && self.filled != wanted {
            return Err(Error::Protocol(format!(
                "{} of {wanted} bytes came for a read",
                self.filled
            )));
        }
        Ok(Completion {
            cookie,
            buffer: self.buffer,
            result: self.result,
        })
    }

    /// The part of a read's buffer that a chunk covers. No other covers any of it: what is missing in its stead would be
    /// taken for read.
    fn part(&mut self, offset: u64, length: u32) -> Result<&mut [u8], Error> {
        let wrong = |what: &str| {
            Error::Protocol(format!("a chunk of {length} bytes at {offset} that {what}"))
        };
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
            let whole = buffer.len();
            Some((buffer.get_mut(start..end)?, start..end, whole))
        });
        let (part, place, whole) = part.ok_or_else(|| wrong("was not requested"))?;
        let is_over = |other: &Range<usize>| other.start < place.end && place.start < other.end;
        if self.filled + place.len() > whole || self.parts.iter().any(is_over) {
            return Err(wrong("has come already"));
        }
        self.filled += place.len();
        match self.parts.last_mut() {
            // Of a read that comes in order there is one part.
            Some(last) if last.end == place.start => last.end = place.end,
            _ if self.filled < whole => self.parts.push(place),
            _ => {}
        }
        Ok(part)
    }
}

impl<B> Drop for Sender<B> {
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

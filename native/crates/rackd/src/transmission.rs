//! The transmission phase: requests are read in batches, and each batch is answered with one send.

use std::io;
use std::sync::Arc;

use nbd::proto::{cmd, errno, Request, REQUEST_LEN};
use nbd::server::{refusal, Inbox, Style};
use racksim::{Io, Kind, OnReadError};
use socket2::Socket;

use crate::clock::now_ns;
use crate::connection::Connection;
use crate::drive::{Bytes, Manner};
use crate::exports::Chosen;
use crate::io_path::IoPath;

/// Size at which a batch of replies is sent.
const BATCH_BYTES: usize = 256 << 10;
/// A buffer grown beyond this for one large read is given back afterwards.
const KEEP_BYTES: usize = 4 << 20;

/// Serve requests until the client disconnects or breaks the protocol.
pub fn serve(
    socket: &Socket,
    mut inbox: Inbox,
    chosen: Chosen,
    style: Style,
    path: &Arc<IoPath>,
) -> io::Result<()> {
    let connection = Arc::new(Connection::new(socket.try_clone()?, style));
    let mut session = Session {
        path,
        on_read_error: chosen.on_read_error,
        only: chosen.only,
        connection: &connection,
        batch: Batch::default(),
    };
    let ended = session.run(socket, &mut inbox);
    // Answer the requests completed before the client disconnected.
    let sent = session.send();
    connection.close();
    path.forget(&connection);
    ended.and(sent)
}

/// Replies gathered for one send. The buffer keeps its length, so that it is zeroed once and not per reply.
#[derive(Default)]
struct Batch {
    buffer: Vec<u8>,
    used: usize,
}

impl Batch {
    /// Room for `length` more bytes; they count once [`Batch::keep`] is called.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        &mut self.buffer[self.used..end]
    }

    fn keep(&mut self, length: usize) {
        self.used += length;
    }

    fn push(&mut self, reply: &[u8]) {
        self.room(reply.len()).copy_from_slice(reply);
        self.keep(reply.len());
    }
}

struct Session<'a> {
    path: &'a Arc<IoPath>,
    on_read_error: OnReadError,
    only: Option<usize>,
    connection: &'a Arc<Connection>,
    batch: Batch,
}

impl Session<'_> {
    fn run(&mut self, socket: &Socket, inbox: &mut Inbox) -> io::Result<()> {
        let mut batch_ns = now_ns();
        loop {
            if !inbox.has(REQUEST_LEN) {
                self.send()?;
                match inbox.fill(socket, REQUEST_LEN) {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    filled => filled?,
                }
                batch_ns = now_ns();
            }
            let header = inbox
                .take(REQUEST_LEN)
                .try_into()
                .expect("the length of a header");
            let Some(request) = Request::decode(header) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "no request"));
            };
            if request.command == cmd::DISC {
                return Ok(());
            }
            let payload_len = match request.command {
                cmd::WRITE => request.length as usize,
                _ => 0,
            };
            let checked = self.check(&request);
            if payload_len > 0 && !inbox.has(payload_len) {
                self.send()?;
                if checked.is_err() {
                    inbox.discard(socket, payload_len as u64)?;
                } else {
                    inbox.fill(socket, payload_len)?;
                }
                batch_ns = now_ns();
            } else if checked.is_err() {
                inbox.take(payload_len);
            }
            match checked {
                Ok((io, manner)) => {
                    let payload = inbox.take(payload_len);
                    self.carry_out(request.cookie, io, manner, payload, batch_ns)?;
                }
                Err(code) => self.answer(request.command == cmd::READ, request.cookie, code),
            }
            if self.batch.used >= BATCH_BYTES {
                self.send()?;
            }
        }
    }

    /// The request to the drive, or the error number of an invalid one.
    fn check(&self, request: &Request) -> Result<(Io, Manner), u32> {
        if let Some(code) = refusal(request, self.path.bytes) {
            return Err(code);
        }
        let kind = match request.command {
            cmd::READ => Kind::Read,
            cmd::WRITE => Kind::Write,
            cmd::FLUSH => Kind::Flush,
            cmd::TRIM => Kind::Trim,
            cmd::WRITE_ZEROES => Kind::WriteZeroes,
            _ => return Err(errno::EINVAL),
        };
        let (offset, length) = match kind {
            Kind::Flush => (0, 0),
            _ => (request.offset, u64::from(request.length)),
        };
        let manner = Manner {
            fua: request.flags & cmd::FLAG_FUA != 0,
            no_hole: request.flags & cmd::FLAG_NO_HOLE != 0,
            on_read_error: self.on_read_error,
            only: self.only,
        };
        Ok((
            Io {
                kind,
                offset,
                length,
            },
            manner,
        ))
    }

    fn carry_out(
        &mut self,
        cookie: u64,
        io: Io,
        manner: Manner,
        payload: &[u8],
        came_ns: u64,
    ) -> io::Result<()> {
        let style = self.connection.style;
        let header = style.read_header_len();
        let reply_len = header + io.length as usize;
        let bytes = match io.kind {
            Kind::Read => Bytes::Fill(&mut self.batch.room(reply_len)[header..]),
            Kind::Write => Bytes::Store(payload),
            Kind::Flush | Kind::Trim | Kind::WriteZeroes => Bytes::None,
        };
        match self.path.attempt(&io, manner, bytes, came_ns) {
            Some(Ok(())) if io.kind == Kind::Read && io.length > 0 => {
                let length = io.length as u32;
                let room = self.batch.room(header);
                style.read_header(cookie, io.offset, length, room);
                self.batch.keep(reply_len);
            }
            Some(result) => {
                let code = result.err().unwrap_or(0);
                self.answer(io.kind == Kind::Read, cookie, code);
            }
            None => {
                // The client may have to read these answers before this request can be deferred.
                self.send()?;
                let pending = self.connection.defer(cookie, io, manner, payload, came_ns);
                self.path.submit(pending);
            }
        }
        Ok(())
    }

    fn answer(&mut self, is_read: bool, cookie: u64, errno: u32) {
        let reply = self.connection.style.without_data(is_read, cookie, errno);
        self.batch.push(&reply);
    }

    fn send(&mut self) -> io::Result<()> {
        let replies = &self.batch.buffer[..std::mem::take(&mut self.batch.used)];
        if replies.is_empty() {
            return Ok(());
        }
        let sent = self.connection.send(replies);
        if self.batch.buffer.len() > KEEP_BYTES {
            self.batch = Batch::default();
        }
        sent
    }
}

//! One client connection: replies from several threads, and the requests that wait for a drive.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use device::{Io, Kind};
use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use crate::drive::{Bytes, Manner};
use crate::reply::Style;

/// Limits of what one client may have waiting; beyond them its further requests stay in its socket.
const WAITING_REQUESTS: usize = 4096;
const WAITING_BYTES: usize = 256 << 20;
/// What gathers at the most before the first of it is sent.
const GATHERED_BYTES: usize = 256 << 10;
/// Replies left for another thread to send before their producer waits.
const LEFT_BYTES: usize = 4 << 20;

/// Replies that could not be sent yet.
#[derive(Default)]
struct Outbox {
    /// A thread is writing to the socket; it also writes what others leave here.
    busy: bool,
    left: Vec<u8>,
}

#[derive(Default)]
struct Waiting {
    requests: usize,
    bytes: usize,
}

pub struct Connection {
    socket: Socket,
    pub style: Style,
    closed: AtomicBool,
    outbox: Mutex<Outbox>,
    outbox_taken: Condvar,
    waiting: Mutex<Waiting>,
    fewer_wait: Condvar,
}

impl Connection {
    pub fn new(socket: Socket, style: Style) -> Self {
        Self {
            socket,
            style,
            closed: AtomicBool::new(false),
            outbox: Mutex::default(),
            outbox_taken: Condvar::new(),
            waiting: Mutex::default(),
            fewer_wait: Condvar::new(),
        }
    }

    /// Send replies, waiting while the client does not read.
    pub fn send(&self, replies: &[u8]) -> io::Result<()> {
        {
            let mut outbox = self.outbox.lock();
            while outbox.left.len() > LEFT_BYTES && !self.is_closed() {
                self.outbox_taken.wait(&mut outbox);
            }
            if outbox.busy {
                outbox.left.extend_from_slice(replies);
                return self.check_open();
            }
            outbox.busy = true;
        }
        let sent = (&self.socket)
            .write_all(replies)
            .and_then(|()| self.send_left());
        self.close_on_error(sent)
    }

    /// Send replies without waiting: what the socket does not take now is sent by a thread of its own.
    pub fn send_soon(self: &Arc<Self>, replies: &[u8]) {
        let mut outbox = self.outbox.lock();
        if outbox.busy {
            outbox.left.extend_from_slice(replies);
            return;
        }
        outbox.busy = true;
        drop(outbox);
        self.send_now(replies);
    }

    /// Be the busy one, so that replies gather until [`Connection::send_gathered`]; `false` where a thread is it
    /// already, and sends what others leave.
    fn gather(&self) -> bool {
        !std::mem::replace(&mut self.outbox.lock().busy, true)
    }

    fn send_gathered(self: &Arc<Self>) {
        let gathered = std::mem::take(&mut self.outbox.lock().left);
        self.send_now(&gathered);
    }

    /// Send replies, then what others left. The caller is the busy one.
    fn send_now(self: &Arc<Self>, replies: &[u8]) {
        let taken = match self.socket.send_with_flags(replies, MSG_DONTWAIT) {
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return drop(self.close_on_error(Err(error))),
        };
        let mut outbox = self.outbox.lock();
        if taken == replies.len() && outbox.left.is_empty() {
            outbox.busy = false;
            return;
        }
        let mut left = replies[taken..].to_vec();
        left.append(&mut outbox.left);
        outbox.left = left;
        drop(outbox);
        let connection = self.clone();
        let flusher = thread::Builder::new().spawn(move || {
            let sent = connection.send_left();
            // The connection is closed where this fails; its reading thread finds out.
            let _ = connection.close_on_error(sent);
        });
        if flusher.is_err() {
            // Out of threads: this client loses its connection, nobody else anything.
            self.close();
        }
    }

    /// Send what others left, until nothing is. The caller is the busy one.
    fn send_left(&self) -> io::Result<()> {
        loop {
            let left = {
                let mut outbox = self.outbox.lock();
                if outbox.left.is_empty() {
                    outbox.busy = false;
                    return Ok(());
                }
                self.outbox_taken.notify_all();
                std::mem::take(&mut outbox.left)
            };
            (&self.socket).write_all(&left)?;
        }
    }

    fn close_on_error(&self, sent: io::Result<()>) -> io::Result<()> {
        if sent.is_err() {
            self.close();
        }
        sent
    }

    /// Nothing is answered from now on. The one who was busy stays it, so that nobody writes again.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // The peer is gone already where this fails.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        // Under the locks, so that nobody checks the flag before and waits after.
        drop(self.outbox.lock());
        self.outbox_taken.notify_all();
        drop(self.waiting.lock());
        self.fewer_wait.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn check_open(&self) -> io::Result<()> {
        if self.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// Keep a request for later; returns once the client has few enough of them.
    pub fn defer(
        self: &Arc<Self>,
        cookie: u64,
        io: Io,
        manner: Manner,
        payload: &[u8],
        came_ns: u64,
    ) -> Pending {
        let bytes = match io.kind {
            Kind::Read => io.length as usize,
            _ => payload.len(),
        };
        let mut waiting = self.waiting.lock();
        while waiting.requests > 0
            && (waiting.requests >= WAITING_REQUESTS || waiting.bytes + bytes > WAITING_BYTES)
            && !self.is_closed()
        {
            self.fewer_wait.wait(&mut waiting);
        }
        waiting.requests += 1;
        waiting.bytes += bytes;
        drop(waiting);
        Pending {
            io,
            manner,
            came_ns,
            cookie,
            connection: self.clone(),
            buffer: payload.to_vec(),
            bytes,
        }
    }
}

const MSG_DONTWAIT: i32 = 0x40;

/// Answers to several clients that leave together, one send to each.
#[derive(Default)]
pub struct Gathering {
    connections: Vec<Arc<Connection>>,
    bytes: usize,
}

impl Gathering {
    /// The answer to this request leaves with the others.
    pub fn include(&mut self, pending: &Pending) {
        self.bytes += pending.bytes;
        let connection = &pending.connection;
        if !self
            .connections
            .iter()
            .any(|one| Arc::ptr_eq(one, connection))
            && connection.gather()
        {
            self.connections.push(connection.clone());
        }
    }

    /// Whether the first answers have waited for enough others.
    pub fn is_enough(&self) -> bool {
        self.bytes >= GATHERED_BYTES
    }

    /// Send everything, without waiting.
    pub fn send(&mut self) {
        for connection in self.connections.drain(..) {
            connection.send_gathered();
        }
        self.bytes = 0;
    }
}

/// A request that waits: for its time, or for a drive.
pub struct Pending {
    pub io: Io,
    pub manner: Manner,
    /// When it was read off the wire.
    pub came_ns: u64,
    cookie: u64,
    connection: Arc<Connection>,
    /// A write's payload, or a read's whole reply once it is being executed.
    buffer: Vec<u8>,
    bytes: usize,
}

impl Pending {
    /// Whether nobody waits for the answer any more.
    pub fn is_orphaned(&self) -> bool {
        self.connection.is_closed()
    }

    pub fn is_of(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }

    /// The bytes to move.
    pub fn bytes(&mut self) -> Bytes<'_> {
        match self.io.kind {
            Kind::Read => {
                let header = self.connection.style.read_header_len();
                self.buffer.resize(header + self.io.length as usize, 0);
                Bytes::Fill(&mut self.buffer[header..])
            }
            Kind::Write => Bytes::Store(&self.buffer),
            Kind::Flush | Kind::Trim | Kind::WriteZeroes => Bytes::None,
        }
    }

    /// Answer the client; never waits.
    pub fn answer(mut self, result: Result<(), u32>) {
        let style = self.connection.style;
        let is_read = self.io.kind == Kind::Read;
        if is_read && result.is_ok() && self.io.length > 0 {
            let header = style.read_header_len();
            let length = self.io.length as u32;
            style.read_header(
                self.cookie,
                self.io.offset,
                length,
                &mut self.buffer[..header],
            );
        } else {
            self.buffer = style.without_data(is_read, self.cookie, result.err().unwrap_or(0));
        }
        self.connection.send_soon(&self.buffer);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut waiting = self.connection.waiting.lock();
        waiting.requests -= 1;
        waiting.bytes -= self.bytes;
        drop(waiting);
        self.connection.fewer_wait.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Arc<Connection>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (
            Arc::new(Connection::new(ours.into(), Style::Simple)),
            theirs,
        )
    }

    /// Replies that fit no socket buffer, each filled with a byte of its own.
    fn replies() -> Vec<Vec<u8>> {
        (0..20_u8).map(|number| vec![number; 100_000]).collect()
    }

    fn read_replies(client: &mut UnixStream, count: usize) -> Vec<u8> {
        let mut numbers: Vec<u8> = (0..count)
            .map(|_| {
                let mut reply = vec![0; 100_000];
                client.read_exact(&mut reply).unwrap();
                assert!(
                    reply.iter().all(|byte| *byte == reply[0]),
                    "replies were mixed"
                );
                reply[0]
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn replies_for_a_client_that_does_not_read_yet_wait_without_their_sender() {
        let (connection, mut client) = pair();
        for reply in replies() {
            connection.send_soon(&reply);
        }
        assert_eq!(read_replies(&mut client, 20), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn answers_that_gather_leave_together_and_in_order() {
        let (connection, mut client) = pair();
        let mut gathering = Gathering::default();
        client.set_nonblocking(true).unwrap();
        for cookie in 0..3 {
            let io = Io {
                kind: Kind::Flush,
                offset: 0,
                length: 0,
            };
            let pending = connection.defer(cookie, io, Manner::default(), &[], 0);
            gathering.include(&pending);
            pending.answer(Ok(()));
            let nothing = client.read(&mut [0; 64]).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        }
        gathering.send();
        let mut replies = [0; 3 * 16];
        client.read_exact(&mut replies).unwrap();
        let cookies: Vec<u8> = replies.chunks(16).map(|reply| reply[15]).collect();
        assert_eq!(cookies, [0, 1, 2]);
        connection.send_soon(&[0; 16]);
        client.read_exact(&mut replies[..16]).unwrap();
    }

    #[test]
    fn replies_of_several_threads_stay_whole() {
        let (connection, mut client) = pair();
        let senders = replies().into_iter().enumerate().map(|(turn, reply)| {
            let connection = connection.clone();
            thread::spawn(move || match turn % 2 {
                0 => connection.send(&reply).unwrap(),
                _ => connection.send_soon(&reply),
            })
        });
        let senders: Vec<_> = senders.collect();
        assert_eq!(read_replies(&mut client, 20), (0..20).collect::<Vec<_>>());
        for sender in senders {
            sender.join().unwrap();
        }
    }

    #[test]
    fn a_client_that_left_closes_the_connection() {
        let (connection, client) = pair();
        drop(client);
        assert!(connection.send(&[0; 16]).is_err());
        assert!(connection.is_closed());
        connection.send_soon(&[0; 16]);
    }

    #[test]
    fn a_request_waits_its_turn_when_the_client_has_too_many() {
        let (connection, _client) = pair();
        let defer = |connection: &Arc<Connection>| {
            let io = Io {
                kind: Kind::Read,
                offset: 0,
                length: WAITING_BYTES as u64,
            };
            connection.defer(1, io, Manner::default(), &[], 0)
        };
        let first = defer(&connection);
        let waiting = connection.clone();
        let second = thread::spawn(move || drop(defer(&waiting)));
        drop(first);
        second.join().unwrap();
        assert_eq!(connection.waiting.lock().requests, 0);
    }
}

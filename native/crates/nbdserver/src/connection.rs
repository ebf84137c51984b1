//! A client connection: replies from several threads, and limits on waiting requests.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use crate::reply::Style;

/// Limits of one client's waiting requests; beyond them its further requests stay in its socket.
pub const WAITING_REQUESTS: usize = 4096;
pub const WAITING_BYTES: usize = 256 << 20;

/// Bytes of replies queued for another thread before their producer waits.
const LEFT_BYTES: usize = 4 << 20;

/// Replies that could not be sent yet.
#[derive(Default)]
struct Outbox {
    /// A thread is writing to the socket; it also writes what others queue here.
    busy: bool,
    left: Vec<u8>,
}

/// A client's waiting requests and replies, which together are limited: see [`Pending`](crate::Pending).
#[derive(Default)]
pub struct Waiting {
    pub requests: usize,
    pub bytes: usize,
    /// Bytes of replies that the client has not read.
    pub unread: usize,
}

impl Waiting {
    /// Whether another request may be accepted. A single one may have any size.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        let others = self.bytes + self.unread;
        self.requests < WAITING_REQUESTS && (others == 0 || others + bytes <= WAITING_BYTES)
    }
}

/// A client that requests are answered to.
pub struct Connection {
    socket: Socket,
    /// The style of its replies.
    pub style: Style,
    closed: AtomicBool,
    outbox: Mutex<Outbox>,
    outbox_taken: Condvar,
    pub(crate) waiting: Mutex<Waiting>,
    pub(crate) fewer_wait: Condvar,
}

impl Connection {
    /// The client of a socket, once negotiation has ended.
    #[must_use]
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
    ///
    /// # Errors
    /// As the socket has them; the connection is closed then.
    pub fn send(&self, replies: &[u8]) -> io::Result<()> {
        {
            let mut outbox = self.outbox.lock();
            while outbox.left.len() > LEFT_BYTES && !self.is_closed() {
                self.outbox_taken.wait(&mut outbox);
            }
            if outbox.busy {
                self.leave(&mut outbox, replies);
                return self.check_open();
            }
            outbox.busy = true;
        }
        let sent = (&self.socket)
            .write_all(replies)
            .and_then(|()| self.send_left());
        self.close_on_error(sent)
    }

    /// Send replies without waiting: what the socket does not accept now is sent by a separate thread.
    pub fn send_soon(self: &Arc<Self>, replies: &[u8]) {
        let mut outbox = self.outbox.lock();
        if outbox.busy {
            self.leave(&mut outbox, replies);
            return;
        }
        outbox.busy = true;
        drop(outbox);
        self.send_now(replies);
    }

    /// Become the sending thread, so that replies gather until [`Connection::send_gathered`]; `false` if another thread
    /// sends already, including what others queue.
    pub(crate) fn gather(&self) -> bool {
        !std::mem::replace(&mut self.outbox.lock().busy, true)
    }

    pub(crate) fn send_gathered(self: &Arc<Self>) {
        let gathered = std::mem::take(&mut self.outbox.lock().left);
        self.outbox_taken.notify_all();
        self.send_now(&gathered);
        self.taken(gathered.len());
    }

    /// Send replies, then what others queued meanwhile. The caller is the sending thread.
    fn send_now(self: &Arc<Self>, replies: &[u8]) {
        let mut from_outbox: Vec<u8>;
        let mut sending = replies;
        loop {
            let taken = match self.socket.send_with_flags(sending, MSG_DONTWAIT) {
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return drop(self.close_on_error(Err(error))),
            };
            let mut outbox = self.outbox.lock();
            if taken < sending.len() {
                let rest = &sending[taken..];
                self.waiting.lock().unread += rest.len();
                outbox.left.splice(..0, rest.iter().copied());
                drop(outbox);
                return self.start_flusher();
            }
            if outbox.left.is_empty() {
                outbox.busy = false;
                return;
            }
            from_outbox = std::mem::take(&mut outbox.left);
            drop(outbox);
            self.outbox_taken.notify_all();
            // What the socket does not accept of it counts again.
            self.taken(from_outbox.len());
            sending = &from_outbox;
        }
    }

    /// Have a separate thread send what is queued.
    fn start_flusher(self: &Arc<Self>) {
        let connection = self.clone();
        let flusher = thread::Builder::new().spawn(move || {
            let sent = connection.send_left();
            // On failure the connection is closed; its reading thread notices.
            let _ = connection.close_on_error(sent);
        });
        if flusher.is_err() {
            // Out of threads: only this client loses its connection.
            self.close();
        }
    }

    /// Send what others queue until nothing is left. The caller is the sending thread.
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
            self.taken(left.len());
        }
    }

    /// Queue replies for the sending thread.
    fn leave(&self, outbox: &mut Outbox, replies: &[u8]) {
        outbox.left.extend_from_slice(replies);
        self.waiting.lock().unread += replies.len();
    }

    /// Account for queued replies that have been sent.
    fn taken(&self, bytes: usize) {
        self.waiting.lock().unread -= bytes;
        self.fewer_wait.notify_all();
    }

    fn close_on_error(&self, sent: io::Result<()>) -> io::Result<()> {
        if sent.is_err() {
            self.close();
        }
        sent
    }

    /// Close the connection. The sending thread stays marked as such, so that no other thread writes.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // It fails only if the peer is gone already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        // Under the locks, so that no thread checks the flag before and waits after.
        drop(self.outbox.lock());
        self.outbox_taken.notify_all();
        drop(self.waiting.lock());
        self.fewer_wait.notify_all();
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn check_open(&self) -> io::Result<()> {
        if self.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

const MSG_DONTWAIT: i32 = 0x40;

#[cfg(test)]
pub mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    pub fn pair() -> (Arc<Connection>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (
            Arc::new(Connection::new(ours.into(), Style::Simple)),
            theirs,
        )
    }

    /// Replies larger than any socket buffer, each filled with a different byte.
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
}

//! A client connection: replies from several threads.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use socket2::Socket;

use crate::reply::Style;
use crate::room::Room;

/// Bytes of replies queued for another thread before their producer waits.
const LEFT_BYTES: usize = 4 << 20;

/// Replies that could not be sent yet.
#[derive(Default)]
struct Outbox {
    /// A thread is writing to the socket; it also writes what others queue here.
    busy: bool,
    left: Vec<u8>,
    /// Requests that have their places and were not answered.
    pending: usize,
}

/// A client that requests are answered to.
pub struct Connection {
    socket: Socket,
    /// The style of its replies.
    pub style: Style,
    closed: AtomicBool,
    outbox: Mutex<Outbox>,
    /// Replies were taken from the outbox, or nothing of it is left.
    outbox_taken: Condvar,
    pub(crate) room: Arc<Room>,
    /// Bytes of its replies that take room because they were not read.
    unread: AtomicUsize,
}

impl Connection {
    /// The client of a socket, once negotiation has ended. What waits of it takes room of `room`.
    #[must_use]
    pub fn new(socket: Socket, style: Style, room: Arc<Room>) -> Self {
        Self {
            socket,
            style,
            closed: AtomicBool::new(false),
            outbox: Mutex::default(),
            outbox_taken: Condvar::new(),
            room,
            unread: AtomicUsize::new(0),
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
                self.keep(rest.len());
                outbox.left.splice(..0, rest.iter().copied());
                drop(outbox);
                return self.start_flusher();
            }
            if outbox.left.is_empty() {
                self.rest(&mut outbox);
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
                    self.rest(&mut outbox);
                    return Ok(());
                }
                self.outbox_taken.notify_all();
                std::mem::take(&mut outbox.left)
            };
            (&self.socket).write_all(&left)?;
            self.taken(left.len());
        }
    }

    /// End the work of the sending thread, which has sent everything.
    fn rest(&self, outbox: &mut Outbox) {
        outbox.busy = false;
        self.outbox_taken.notify_all();
    }

    /// Count a request that has its place.
    pub(crate) fn begin(&self) {
        self.outbox.lock().pending += 1;
    }

    /// Count a request no more that has left its place.
    pub(crate) fn end(&self) {
        let mut outbox = self.outbox.lock();
        outbox.pending -= 1;
        if outbox.pending == 0 {
            self.outbox_taken.notify_all();
        }
    }

    /// Wait, though no longer than `limit`, until every request was answered and the socket has taken the answers, or
    /// the connection is closed; `false` where the limit was too short.
    pub(crate) fn settle(&self, limit: Duration) -> bool {
        let is_busy =
            |outbox: &mut Outbox| !self.is_closed() && (outbox.pending > 0 || outbox.busy);
        let mut outbox = self.outbox.lock();
        let waited = self
            .outbox_taken
            .wait_while_for(&mut outbox, is_busy, limit);
        !waited.timed_out()
    }

    /// Queue replies for the sending thread.
    fn leave(&self, outbox: &mut Outbox, replies: &[u8]) {
        outbox.left.extend_from_slice(replies);
        self.keep(replies.len());
    }

    /// Account for queued replies that wait.
    fn keep(&self, bytes: usize) {
        self.unread.fetch_add(bytes, Ordering::Relaxed);
        self.room.keep(bytes);
    }

    /// Account for queued replies that have been sent.
    fn taken(&self, bytes: usize) {
        self.unread.fetch_sub(bytes, Ordering::Relaxed);
        self.room.read(bytes);
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
        // Under the lock, so that no thread checks the flag before and waits after.
        drop(self.outbox.lock());
        self.outbox_taken.notify_all();
        self.room.wake();
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

impl Drop for Connection {
    /// Replies that were never read take no room of others any more.
    fn drop(&mut self) {
        self.room.read(*self.unread.get_mut());
    }
}

const MSG_DONTWAIT: i32 = 0x40;

#[cfg(test)]
pub mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    pub fn pair() -> (Arc<Connection>, UnixStream) {
        pair_in(Arc::default())
    }

    pub fn pair_in(room: Arc<Room>) -> (Arc<Connection>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (
            Arc::new(Connection::new(ours.into(), Style::Simple, room)),
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

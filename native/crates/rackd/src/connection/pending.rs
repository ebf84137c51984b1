//! Pending requests, and batches of answers to several of them.

use std::sync::Arc;

use racksim::{Io, Kind};

use super::Connection;
use crate::drive::{Bytes, Manner};

/// Limits of one client's waiting requests; beyond them its further requests stay in its socket.
pub(super) const WAITING_REQUESTS: usize = 4096;
pub(super) const WAITING_BYTES: usize = 256 << 20;
/// Maximum size of a batch of answers.
const GATHERED_BYTES: usize = 256 << 10;

/// A request that waits for its completion time or for a drive.
pub struct Pending {
    pub io: Io,
    pub manner: Manner,
    /// The time it was read from the socket.
    pub came_ns: u64,
    cookie: u64,
    connection: Arc<Connection>,
    /// A write's payload, or a read's whole reply once it is being executed.
    buffer: Vec<u8>,
    bytes: usize,
}

impl Pending {
    /// Whether the client has disconnected.
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

impl Connection {
    /// Defer a request; blocks while the client has too many of them or too many unread answers.
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
        while !waiting.has_room_for(bytes) && !self.is_closed() {
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

/// Answers to several clients, batched into one send to each.
#[derive(Default)]
pub struct Gathering {
    connections: Vec<Arc<Connection>>,
    bytes: usize,
}

impl Gathering {
    /// Add the answer to this request.
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

    /// Whether the batch is full.
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

#[cfg(test)]
mod tests {
    use std::io::{self, Read};
    use std::thread;

    use super::super::tests::pair;
    use super::*;

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
    fn a_request_waits_until_the_client_has_read_enough_answers() {
        let (connection, mut client) = pair();
        let read = |connection: &Arc<Connection>| {
            let io = Io {
                kind: Kind::Read,
                offset: 0,
                length: WAITING_BYTES as u64 / 2,
            };
            connection.defer(1, io, Manner::default(), &[], 0)
        };
        let mut replies = 0;
        for mut pending in [read(&connection), read(&connection)] {
            assert!(matches!(pending.bytes(), Bytes::Fill(_)));
            pending.answer(Ok(()));
            replies += 16 + WAITING_BYTES / 2;
        }
        let waiting = connection.clone();
        let third = thread::spawn(move || drop(read(&waiting)));
        // Only this admits the third: no request waits, and the replies fill the client's limit.
        assert_eq!(connection.waiting.lock().requests, 0);
        assert!(!connection.waiting.lock().has_room_for(WAITING_BYTES / 2));
        io::copy(&mut client.by_ref().take(replies as u64), &mut io::sink()).unwrap();
        third.join().unwrap();
        assert_eq!(connection.waiting.lock().unread, 0);
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

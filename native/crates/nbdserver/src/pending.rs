//! Pending requests, and batches of answers to several of them.

use std::sync::Arc;

use nbd::proto::{cmd, Request};

use crate::bytes::Bytes;
use crate::connection::Connection;

/// Maximum size of a batch of answers.
const GATHERED_BYTES: usize = 256 << 10;

/// A request that waits to be carried out, and is answered then.
pub struct Pending<J> {
    /// The request in the server's own terms.
    pub job: J,
    /// The time it was read from the socket.
    pub came_ns: u64,
    /// A write's payload, or a read's whole reply once it is being executed.
    buffer: Vec<u8>,
    place: Place,
}

/// A request's place in the room of its connection, until it is dropped.
pub struct Place {
    request: Request,
    connection: Arc<Connection>,
}

/// The data of a request, lent to what moves it: of a read, the place for it.
#[derive(Debug)]
pub struct Body {
    buffer: Vec<u8>,
    from: usize,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.from..]
    }
}

impl AsMut<[u8]> for Body {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.from..]
    }
}

impl Place {
    /// The request with its data, where it is a write, to be carried out later.
    #[must_use]
    pub fn defer<J>(self, job: J, payload: Vec<u8>, came_ns: u64) -> Pending<J> {
        Pending {
            job,
            came_ns,
            buffer: payload,
            place: self,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connection.room.leave(data_bytes(&self.request));
        self.connection.end();
    }
}

impl<J> Pending<J> {
    /// Whether the client has disconnected.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.place.connection.is_closed()
    }

    /// Whether it is a request of this client.
    #[must_use]
    pub fn is_of(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.place.connection, connection)
    }

    /// The bytes to move.
    pub fn bytes(&mut self) -> Bytes<'_> {
        let Place {
            request,
            connection,
        } = &self.place;
        match request.command {
            cmd::READ => {
                let header = connection.style.read_header_len();
                let length = header + request.length as usize;
                self.buffer.resize(length, 0);
                Bytes::Fill(&mut self.buffer[header..])
            }
            cmd::WRITE => Bytes::Store(&self.buffer),
            _ => Bytes::None,
        }
    }

    /// Lend the bytes to move, so that they outlive this borrow; a read needs them back before it is answered.
    pub fn lend(&mut self) -> Body {
        let from = match self.bytes() {
            Bytes::Fill(_) => self.place.connection.style.read_header_len(),
            Bytes::Store(_) | Bytes::None => 0,
        };
        Body {
            buffer: std::mem::take(&mut self.buffer),
            from,
        }
    }

    /// Take the bytes back.
    pub fn take_back(&mut self, body: Body) {
        self.buffer = body.buffer;
    }

    /// Answer the client; never waits.
    pub fn answer(mut self, result: Result<(), u32>) {
        let Place {
            request,
            connection,
        } = &self.place;
        let style = connection.style;
        let is_read = request.command == cmd::READ;
        if is_read && result.is_ok() && request.length > 0 {
            let header = &mut self.buffer[..style.read_header_len()];
            style.read_header(request.cookie, request.offset, request.length, header);
        } else {
            let code = result.err().unwrap_or(0);
            self.buffer = style.without_data(is_read, request.cookie, code);
        }
        connection.send_soon(&self.buffer);
    }
}

/// Bytes that a request reads or writes.
fn data_bytes(request: &Request) -> usize {
    match request.command {
        cmd::READ | cmd::WRITE => request.length as usize,
        _ => 0,
    }
}

impl Connection {
    /// Whether this request could enter now without blocking.
    pub(crate) fn has_room_for(&self, request: &Request) -> bool {
        self.room.fits(data_bytes(request))
    }

    /// Give a request its place; blocks while the client has too many of them or too many unread answers.
    #[must_use]
    pub fn enter(self: &Arc<Self>, request: &Request) -> Place {
        self.room.enter(data_bytes(request), || self.is_closed());
        self.begin();
        Place {
            request: *request,
            connection: self.clone(),
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
    pub fn include<J>(&mut self, pending: &Pending<J>) {
        self.bytes += data_bytes(&pending.place.request);
        let connection = &pending.place.connection;
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
    #[must_use]
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
    use std::time::Duration;

    use super::*;
    use crate::connection::tests::{pair, pair_in};
    use crate::room::WAITING_BYTES;

    fn request(command: u16, cookie: u64, length: usize) -> Request {
        Request {
            flags: 0,
            command,
            cookie,
            offset: 0,
            length: length as u32,
        }
    }

    #[test]
    fn answers_that_gather_leave_together_and_in_order() {
        let (connection, mut client) = pair();
        let mut gathering = Gathering::default();
        client.set_nonblocking(true).unwrap();
        for cookie in 0..3 {
            let flush = request(cmd::FLUSH, cookie, 0);
            let pending = connection.enter(&flush).defer((), vec![], 0);
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
    fn a_connection_is_settled_once_every_answer_has_left() {
        let (connection, _client) = pair();
        assert!(connection.settle(Duration::ZERO));
        let flush = request(cmd::FLUSH, 1, 0);
        let pending = connection.enter(&flush).defer((), vec![], 0);
        assert!(!connection.settle(Duration::ZERO));
        let mut gathering = Gathering::default();
        gathering.include(&pending);
        pending.answer(Ok(()));
        assert!(!connection.settle(Duration::ZERO));
        gathering.send();
        assert!(connection.settle(Duration::ZERO));
        let _hangs = connection.enter(&flush);
        connection.close();
        assert!(connection.settle(Duration::ZERO));
    }

    #[test]
    fn a_request_waits_until_the_client_has_read_enough_answers() {
        let (connection, mut client) = pair();
        let read = |connection: &Arc<Connection>| {
            let half = request(cmd::READ, 1, WAITING_BYTES / 2);
            connection.enter(&half).defer((), vec![], 0)
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
        assert_eq!(connection.room.counts().0, 0);
        assert!(!connection.room.fits(WAITING_BYTES / 2));
        io::copy(&mut client.by_ref().take(replies as u64), &mut io::sink()).unwrap();
        third.join().unwrap();
        assert_eq!(connection.room.counts(), (0, 0, 0));
    }

    #[test]
    fn a_request_waits_its_turn_when_the_client_has_too_many() {
        let (connection, _client) = pair();
        let defer = |connection: &Arc<Connection>| {
            let all = request(cmd::READ, 1, WAITING_BYTES);
            connection.enter(&all).defer((), vec![], 0)
        };
        let first = defer(&connection);
        let waiting = connection.clone();
        let second = thread::spawn(move || drop(defer(&waiting)));
        drop(first);
        second.join().unwrap();
        assert_eq!(connection.room.counts(), (0, 0, 0));
    }

    #[test]
    fn connections_that_share_a_room_wait_for_one_another() {
        let (first, _unread) = pair_in(Arc::default());
        let (second, _client) = pair_in(first.room.clone());
        let read = |connection: &Arc<Connection>| {
            let all = request(cmd::READ, 1, WAITING_BYTES);
            connection.enter(&all).defer((), vec![], 0)
        };
        let mut pending = read(&first);
        assert!(matches!(pending.bytes(), Bytes::Fill(_)));
        pending.answer(Ok(()));
        let waiting = second.clone();
        let other = thread::spawn(move || drop(read(&waiting)));
        // No request waits: it is what the first one's client does not read that keeps the other out.
        assert!(!second.room.fits(WAITING_BYTES));
        first.close();
        drop(first);
        other.join().unwrap();
        assert_eq!(second.room.counts(), (0, 0, 0));
    }
}

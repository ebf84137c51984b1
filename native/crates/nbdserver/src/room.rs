//! Room for the requests that wait in a server and for the answers that its clients have not read.

use parking_lot::{Condvar, Mutex};

/// Limits of what waits; beyond them further requests stay in their sockets.
pub const WAITING_REQUESTS: usize = 4096;
pub const WAITING_BYTES: usize = 256 << 20;

/// The requests and answers that wait together: of one connection, or of all connections of one client.
#[derive(Default)]
struct Waiting {
    requests: usize,
    bytes: usize,
    /// Bytes of replies that were not read.
    unread: usize,
}

impl Waiting {
    /// Whether another request may be accepted. A single one may have any size.
    fn has_room_for(&self, bytes: usize) -> bool {
        let others = self.bytes + self.unread;
        self.requests < WAITING_REQUESTS && (others == 0 || others + bytes <= WAITING_BYTES)
    }
}

/// The room that connections share.
#[derive(Default)]
pub struct Room {
    waiting: Mutex<Waiting>,
    fewer: Condvar,
}

impl Room {
    /// Whether a request of so many bytes could enter without waiting.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.waiting.lock().has_room_for(bytes)
    }

    /// Enter a request; waits until it fits, or until `is_closed`.
    pub(crate) fn enter(&self, bytes: usize, is_closed: impl Fn() -> bool) {
        let mut waiting = self.waiting.lock();
        while !waiting.has_room_for(bytes) && !is_closed() {
            self.fewer.wait(&mut waiting);
        }
        waiting.requests += 1;
        waiting.bytes += bytes;
    }

    /// Note the end of a request.
    pub(crate) fn leave(&self, bytes: usize) {
        let mut waiting = self.waiting.lock();
        waiting.requests -= 1;
        waiting.bytes -= bytes;
        drop(waiting);
        self.fewer.notify_all();
    }

    /// Note bytes of replies that wait for their reader.
    pub(crate) fn keep(&self, bytes: usize) {
        self.waiting.lock().unread += bytes;
    }

    /// Note that such bytes were read, or are gone with their reader.
    pub(crate) fn read(&self, bytes: usize) {
        self.waiting.lock().unread -= bytes;
        self.fewer.notify_all();
    }

    /// Let those who wait look again at whether they are closed.
    pub(crate) fn wake(&self) {
        // Under the lock, so that no thread looks before and waits after.
        drop(self.waiting.lock());
        self.fewer.notify_all();
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let waiting = self.waiting.lock();
        (waiting.requests, waiting.bytes, waiting.unread)
    }
}

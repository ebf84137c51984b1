//! Replies gathered for one send.

/// A buffer grown beyond this for one large read is given back afterwards.
const KEEP_BYTES: usize = 4 << 20;

/// Replies gathered for one send. The buffer keeps its length, so that it is zeroed once and not per reply.
#[derive(Default)]
pub struct Batch {
    buffer: Vec<u8>,
    used: usize,
}

impl Batch {
    /// Bytes that count.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Room for `length` more bytes; they count once [`Batch::keep`] is called.
    pub fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        &mut self.buffer[self.used..end]
    }

    pub fn keep(&mut self, length: usize) {
        self.used += length;
    }

    pub fn push(&mut self, reply: &[u8]) {
        self.room(reply.len()).copy_from_slice(reply);
        self.keep(reply.len());
    }

    /// Empty it by `send`, which is called unless it is empty already.
    pub fn send<E>(&mut self, send: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let replies = &self.buffer[..std::mem::take(&mut self.used)];
        let sent = if replies.is_empty() {
            Ok(())
        } else {
            send(replies)
        };
        if self.buffer.len() > KEEP_BYTES {
            *self = Self::default();
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_no_reply_used_is_given_back() {
        let mut batch = Batch::default();
        batch.room(KEEP_BYTES + 1);
        let sent = batch.send(|_| Err("nothing counts, and nothing is sent"));
        assert_eq!((sent, batch.buffer.capacity()), (Ok(()), 0));
    }
}

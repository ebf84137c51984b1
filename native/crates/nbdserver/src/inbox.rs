//! The receive buffer of a client, which reads many requests at a time.

use std::borrow::Cow;
use std::io::{self, Read};

const INBOX_BYTES: usize = 256 << 10;

/// Bytes that have come and were not taken yet.
#[derive(Debug)]
pub struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            buffer: vec![0; INBOX_BYTES],
            start: 0,
            end: 0,
        }
    }
}

impl Inbox {
    /// Whether this many bytes are buffered.
    #[must_use]
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// Read until `length` bytes are buffered, which are at most as many as the buffer has.
    ///
    /// # Errors
    /// `UnexpectedEof` if the client disconnects before, and as the connection has them.
    pub fn fill(&mut self, mut from: impl Read, length: usize) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.start + length > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while !self.has(length) {
            match from.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next `length` bytes, which [`Inbox::fill`] has read.
    ///
    /// # Panics
    /// When it has not.
    pub fn take(&mut self, length: usize) -> &[u8] {
        let taken = &self.buffer[self.start..][..length];
        self.start += length;
        taken
    }

    /// The next `length` bytes; those that are too many for the buffer have one of their own.
    ///
    /// # Errors
    /// As [`Inbox::fill`] has them.
    pub(crate) fn data(&mut self, mut from: impl Read, length: usize) -> io::Result<Cow<'_, [u8]>> {
        if length <= self.buffer.len() {
            self.fill(from, length)?;
            return Ok(Cow::Borrowed(self.take(length)));
        }
        let mut data = vec![0; length];
        let (came, missing) = data.split_at_mut(self.end - self.start);
        came.copy_from_slice(self.take(came.len()));
        from.read_exact(missing)?;
        Ok(Cow::Owned(data))
    }

    /// Read and drop `length` bytes.
    ///
    /// # Errors
    /// As [`Inbox::fill`] has them.
    pub fn discard(&mut self, mut from: impl Read, mut length: u64) -> io::Result<()> {
        while length > 0 {
            self.fill(&mut from, 1)?;
            let piece = length.min((self.end - self.start) as u64) as usize;
            self.take(piece);
            length -= piece as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_for_the_buffer_does_not_enlarge_it() {
        let sent: Vec<u8> = (0..INBOX_BYTES * 2).map(|at| (at % 251) as u8).collect();
        let (first, large) = sent.split_at(7);
        let (large, last) = large.split_at(INBOX_BYTES + 1);
        let mut from = &sent[..];
        let mut inbox = Inbox::default();
        for part in [first, large, last] {
            assert_eq!(inbox.data(&mut from, part.len()).unwrap(), part);
            assert_eq!(inbox.buffer.capacity(), INBOX_BYTES);
        }
        let short = inbox.data(&mut from, INBOX_BYTES + 1).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn as_many_bytes_as_the_buffer_has_fit_into_it() {
        let sent: Vec<u8> = (0..INBOX_BYTES + 7).map(|at| (at % 251) as u8).collect();
        let (first, whole) = sent.split_at(7);
        let mut from = &sent[..];
        let mut inbox = Inbox::default();
        // The rest of the first read has to move to the buffer's beginning.
        assert_eq!(inbox.data(&mut from, first.len()).unwrap(), first);
        let taken = inbox.data(&mut from, whole.len()).unwrap();
        assert!(matches!(taken, Cow::Borrowed(_)));
        assert_eq!(taken, whole);
    }
}

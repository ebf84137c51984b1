//! The receive buffer of a client, which reads many requests at a time.

use std::io::{self, Read};

const USUAL_BYTES: usize = 256 << 10;
/// A buffer grown beyond this for one large write is given back afterwards.
const KEEP_BYTES: usize = 4 << 20;

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
            buffer: vec![0; USUAL_BYTES],
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

    /// Read until `length` bytes are buffered.
    ///
    /// # Errors
    /// `UnexpectedEof` if the client disconnects before, and as the connection has them.
    pub fn fill(&mut self, mut from: impl Read, length: usize) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEEP_BYTES && length <= USUAL_BYTES {
                self.buffer = vec![0; USUAL_BYTES];
            }
        }
        if self.start + length > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if length > self.buffer.len() {
                // Room for the requests behind it, or each large write would move them.
                self.buffer.resize(length + USUAL_BYTES, 0);
            }
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

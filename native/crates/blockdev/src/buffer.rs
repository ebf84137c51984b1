//! Aligned buffers for direct I/O.

/// The alignment: that of pages, and of the largest sectors.
const ALIGN_BYTES: usize = 4096;

/// Bytes at an address that is a multiple of 4096.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// A zeroed buffer of `length` bytes.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGN_BYTES];
        let start = bytes.as_ptr().align_offset(ALIGN_BYTES);
        Self {
            bytes,
            start,
            length,
        }
    }

    /// Give it another length, whose bytes are undefined but initialized; `false` if it was made with less.
    pub fn resize(&mut self, length: usize) -> bool {
        let fits = length <= self.bytes.len() - ALIGN_BYTES;
        if fits {
            self.length = length;
        }
        fits
    }

    /// Change its length, up to the length it was made with.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

//! Aligned buffers for direct I/O.

use sector::SECTOR_BYTES;

/// Bytes at an address that is a multiple of 4096.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// A zeroed buffer of `length` bytes.
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + SECTOR_BYTES];
        let start = bytes.as_ptr().align_offset(SECTOR_BYTES);
        Self {
            bytes,
            start,
            length,
        }
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

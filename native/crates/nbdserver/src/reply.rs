//! Encoding of replies in the transmission phase.

use nbd::proto::{chunk, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC};

/// Header of a simple reply.
const SIMPLE_LEN: usize = 16;
/// Header of a structured chunk with an offset.
const OFFSET_DATA_LEN: usize = 28;
const CHUNK_LEN: usize = 20;

/// A simple reply without data; `errno` 0 is success.
fn simple(cookie: u64, errno: u32) -> [u8; SIMPLE_LEN] {
    let mut out = [0; SIMPLE_LEN];
    out[0..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    out[4..8].copy_from_slice(&errno.to_be_bytes());
    out[8..16].copy_from_slice(&cookie.to_be_bytes());
    out
}

fn chunk_header(kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_LEN] {
    let mut out = [0; CHUNK_LEN];
    out[0..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out[4..6].copy_from_slice(&chunk::FLAG_DONE.to_be_bytes());
    out[6..8].copy_from_slice(&kind.to_be_bytes());
    out[8..16].copy_from_slice(&cookie.to_be_bytes());
    out[16..20].copy_from_slice(&length.to_be_bytes());
    out
}

/// The header of a structured read of `length` (not 0) bytes.
fn offset_data(cookie: u64, offset: u64, length: u32) -> [u8; OFFSET_DATA_LEN] {
    let mut out = [0; OFFSET_DATA_LEN];
    out[..CHUNK_LEN].copy_from_slice(&chunk_header(chunk::OFFSET_DATA, cookie, length + 8));
    out[CHUNK_LEN..].copy_from_slice(&offset.to_be_bytes());
    out
}

/// The style of a connection's replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Every reply is a simple one.
    Simple,
    /// Reads are answered with structured chunks; everything else may stay simple.
    Structured,
}

impl Style {
    /// Length of the header before the data of a read.
    #[must_use]
    pub fn read_header_len(self) -> usize {
        match self {
            Self::Simple => SIMPLE_LEN,
            Self::Structured => OFFSET_DATA_LEN,
        }
    }

    /// Write the header of a read's data into `out`.
    ///
    /// # Panics
    /// When `out` is not [`Style::read_header_len`] long.
    pub fn read_header(self, cookie: u64, offset: u64, length: u32, out: &mut [u8]) {
        match self {
            Self::Simple => out.copy_from_slice(&simple(cookie, 0)),
            Self::Structured => out.copy_from_slice(&offset_data(cookie, offset, length)),
        }
    }

    /// The whole reply of a request that has no data to answer: not a read, or a failed or empty one.
    #[must_use]
    pub fn without_data(self, is_read: bool, cookie: u64, errno: u32) -> Vec<u8> {
        if self == Self::Simple || !is_read {
            return simple(cookie, errno).to_vec();
        }
        if errno == 0 {
            return chunk_header(chunk::NONE, cookie, 0).to_vec();
        }
        let mut out = chunk_header(chunk::ERROR, cookie, 6).to_vec();
        out.extend_from_slice(&errno.to_be_bytes());
        out.extend_from_slice(&0_u16.to_be_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use nbd::proto::errno;

    use super::*;

    #[test]
    fn a_failed_read_is_an_error_chunk_where_structured_replies_were_agreed() {
        let reply = Style::Structured.without_data(true, 5, errno::EIO);
        let expected = [
            0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 5,
            0, 0,
        ];
        assert_eq!(reply, expected);
    }

    #[test]
    fn everything_else_without_data_is_a_simple_reply() {
        let expected = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 5];
        for (style, is_read) in [(Style::Structured, false), (Style::Simple, true)] {
            assert_eq!(style.without_data(is_read, 5, errno::ENOSPC), expected);
        }
        assert_eq!(
            Style::Structured.without_data(true, 5, 0)[4..8],
            [0, 1, 0, 0]
        );
    }

    #[test]
    fn a_read_says_where_its_data_lies() {
        let header = offset_data(5, 0x0102, 512);
        assert_eq!(header[4..8], [0, 1, 0, 1]);
        assert_eq!(header[16..20], 520_u32.to_be_bytes());
        assert_eq!(header[20..], 0x0102_u64.to_be_bytes());
    }
}

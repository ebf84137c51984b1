//! A request to a drive.

use serde::Serialize;

/// The kind of a request. It is as wide as a word, since requests are copied by words, and a processor waits where what
/// it reads has just been written in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u64)]
pub enum Kind {
    /// Return bytes.
    Read,
    /// Store bytes.
    Write,
    /// Put all completed writes on stable media.
    Flush,
    /// Discard bytes.
    Trim,
    /// Store zeroes.
    WriteZeroes,
}

/// A request to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Its kind.
    pub kind: Kind,
    /// First byte.
    pub offset: u64,
    /// Byte count; 0 for a flush.
    pub length: u64,
}

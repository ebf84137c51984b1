//! A request to a drive.

use serde::Serialize;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Answer bytes.
    Read,
    /// Store bytes.
    Write,
    /// Put everything that was completed on stable media.
    Flush,
    /// Forget bytes.
    Trim,
    /// Store zeroes.
    WriteZeroes,
}

/// A request to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What it asks for.
    pub kind: Kind,
    /// First byte.
    pub offset: u64,
    /// Byte count; 0 for a flush.
    pub length: u64,
}

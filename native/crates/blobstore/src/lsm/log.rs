//! The write-ahead log: puts that arrive while an append is under way go with the next one.

use std::collections::VecDeque;

use crate::drives::Extent;
use crate::lsm::table::Entry;

/// A put that has not been answered.
#[derive(Debug, Clone, Copy)]
pub struct Put {
    pub token: u64,
    pub started_ns: u64,
    pub key: u64,
}

/// An append to the log.
#[derive(Debug, Default)]
pub struct Batch {
    pub puts: Vec<Put>,
    pub entries: Vec<Entry>,
}

/// The log of the present memtable, and the puts that wait for it.
#[derive(Debug, Default)]
pub struct Log {
    pub waiting: VecDeque<Put>,
    /// Whether an append is under way.
    pub is_busy: bool,
    blobs: Vec<Vec<Extent>>,
    /// Bytes of the last blob that are used.
    used: u64,
}

impl Log {
    /// Bytes left in the last blob.
    pub fn room(&self, blob_bytes: u64) -> u64 {
        self.blobs.last().map_or(0, |_| blob_bytes - self.used)
    }

    /// Go on in a new blob.
    pub fn extend(&mut self, blob: Vec<Extent>) {
        self.blobs.push(blob);
        self.used = 0;
    }

    /// Reserve the next bytes; returns their blob and the place in it.
    pub fn append(&mut self, bytes: u64) -> (Vec<Extent>, u64) {
        let at = self.used;
        self.used += bytes;
        (self.blobs.last().expect("it has room").clone(), at)
    }

    /// The blobs of a memtable that is full: the next append begins a new one.
    pub fn take_blobs(&mut self) -> Vec<Vec<Extent>> {
        self.used = 0;
        std::mem::take(&mut self.blobs)
    }
}

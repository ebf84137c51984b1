//! The work that a database has under way: walks of queries, log batches, and jobs in the background.

use std::collections::VecDeque;

use crate::lsm::log::Batch;
use crate::lsm::table::{Entry, TableId};

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The sequence number of a record, if there is one.
    Found(Option<u64>),
    /// The sequence number of a record that was written.
    Stored(u64),
    /// The records of a scan.
    Records(Vec<Entry>),
    /// The failure of a request to a drive, or of the database since an earlier one.
    Failed(String),
}

/// Blocks to read for a query, and its answer, which is known from their records in memory.
#[derive(Debug)]
pub struct Walk {
    pub token: u64,
    pub started_ns: u64,
    pub blocks: Vec<(TableId, u64)>,
    pub at: usize,
    pub answer: Answer,
    /// The key to write after it.
    pub then_put: Option<u64>,
}

impl Walk {
    /// The block that is being read.
    pub fn present(&self) -> (TableId, u64) {
        self.blocks[self.at]
    }
}

/// The purpose of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Load,
    Flush,
    Compaction,
}

/// A part of a table that is read or written by a job.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    pub table: TableId,
    /// First byte within the table.
    pub first: u64,
    pub bytes: u32,
    pub is_read: bool,
    pub purpose: Purpose,
}

/// Tables that are read, then others that are written.
#[derive(Debug)]
pub struct Job {
    pub inputs: Vec<TableId>,
    pub outputs: Vec<TableId>,
    pub into: usize,
    pub waiting: VecDeque<Chunk>,
    pub in_flight: usize,
    /// Whether the outputs exist.
    pub has_read: bool,
}

impl Job {
    pub fn of(inputs: Vec<TableId>, into: usize) -> Self {
        Self {
            inputs,
            outputs: Vec::new(),
            into,
            waiting: VecDeque::new(),
            in_flight: 0,
            has_read: true,
        }
    }
}

impl Purpose {
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Flush => "flush",
            Self::Compaction => "compaction",
        }
    }
}

/// A request of the database's own, by the tag of its I/O.
#[derive(Debug)]
pub enum Task {
    Walk(Walk),
    Append(Batch),
    Chunk(Chunk),
}

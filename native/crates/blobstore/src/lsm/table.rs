//! Sorted tables: their records, and the blobs that hold them.

use std::collections::HashMap;

use crate::drives::Extent;

/// A version of a record. A larger sequence number is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The key.
    pub key: u64,
    /// The number of the write.
    pub sequence: u64,
}

/// A table. A number is never used again.
pub type TableId = u64;

/// Records in order of their keys, in blobs.
#[derive(Debug)]
pub struct Table {
    pub entries: Vec<Entry>,
    pub blobs: Vec<Vec<Extent>>,
    /// Byte count, in whole blocks.
    pub bytes: u64,
    /// Readers that hold on to it.
    pins: u32,
    is_obsolete: bool,
}

impl Table {
    pub fn first_key(&self) -> u64 {
        self.entries[0].key
    }

    pub fn last_key(&self) -> u64 {
        self.entries[self.entries.len() - 1].key
    }

    /// Whether a key from `first` to `last` could be in it.
    pub fn overlaps(&self, first: u64, last: u64) -> bool {
        self.first_key() <= last && first <= self.last_key()
    }

    /// The place of a key's record, or the one that it would have.
    pub fn find(&self, key: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&key, |entry| entry.key)
    }
}

/// All tables with blobs: those of the tree, those being written, and those that are still read.
#[derive(Debug, Default)]
pub struct Tables {
    tables: HashMap<TableId, Table>,
    last: TableId,
}

impl Tables {
    pub fn get(&self, id: TableId) -> &Table {
        &self.tables[&id]
    }

    pub fn insert(&mut self, entries: Vec<Entry>, blobs: Vec<Vec<Extent>>, bytes: u64) -> TableId {
        self.last += 1;
        let table = Table {
            entries,
            blobs,
            bytes,
            pins: 0,
            is_obsolete: false,
        };
        self.tables.insert(self.last, table);
        self.last
    }

    /// Keep a table's blobs until it is released.
    pub fn pin(&mut self, id: TableId) {
        self.table(id).pins += 1;
    }

    /// Release a table; returns its blobs if nothing needs them any more.
    pub fn unpin(&mut self, id: TableId) -> Option<Vec<Vec<Extent>>> {
        self.table(id).pins -= 1;
        self.remove_unused(id)
    }

    /// Take a table out of use; returns its blobs if it is not being read.
    pub fn retire(&mut self, id: TableId) -> Option<Vec<Vec<Extent>>> {
        self.table(id).is_obsolete = true;
        self.remove_unused(id)
    }

    fn table(&mut self, id: TableId) -> &mut Table {
        self.tables.get_mut(&id).expect("a table that is in use")
    }

    fn remove_unused(&mut self, id: TableId) -> Option<Vec<Vec<Extent>>> {
        let table = &self.tables[&id];
        if !table.is_obsolete || table.pins > 0 {
            return None;
        }
        self.tables.remove(&id).map(|table| table.blobs)
    }
}

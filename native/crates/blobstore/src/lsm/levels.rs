//! The levels of the tree, and the choice of what to compact.

use std::collections::BTreeMap;

use crate::lsm::options::{TreeOptions, LOWEST_LEVEL};
use crate::lsm::table::{Entry, Table, TableId, Tables};

/// Tables to merge into a level.
#[derive(Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The input tables, newest first.
    pub inputs: Vec<TableId>,
    /// The level of the outputs.
    pub into: usize,
}

/// The tables of each level: those of the first overlap and are listed newest first, those of the others are in order of
/// their keys.
#[derive(Debug)]
pub struct Levels {
    levels: Vec<Vec<TableId>>,
    /// The key up to which each level has been compacted in its present turn.
    cursors: Vec<u64>,
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            levels: vec![Vec::new(); LOWEST_LEVEL + 1],
            cursors: vec![0; LOWEST_LEVEL + 1],
        }
    }
}

impl Levels {
    /// Tables of the first level.
    pub fn level0_tables(&self) -> usize {
        self.levels[0].len()
    }

    /// Bytes of each level.
    pub fn bytes(&self, tables: &Tables) -> Vec<u64> {
        let sum = |ids: &Vec<TableId>| ids.iter().map(|&id| tables.get(id).bytes).sum();
        self.levels.iter().map(sum).collect()
    }

    /// Put a newly flushed table in front.
    pub fn push_flushed(&mut self, id: TableId) {
        self.levels[0].insert(0, id);
    }

    /// Replace tables by those that were merged out of them.
    pub fn replace(&mut self, inputs: &[TableId], outputs: &[TableId], into: usize, of: &Tables) {
        for level in &mut self.levels {
            level.retain(|id| !inputs.contains(id));
        }
        let level = &mut self.levels[into];
        level.extend(outputs);
        level.sort_by_key(|&id| of.get(id).first_key());
    }

    /// Tables that may hold `key`, newest first.
    pub fn holding(&self, key: u64, of: &Tables) -> Vec<TableId> {
        let covers = |id: &TableId| of.get(*id).overlaps(key, key);
        let mut found: Vec<_> = self.levels[0].iter().copied().filter(covers).collect();
        for level in &self.levels[1..] {
            let place = level.partition_point(|&id| of.get(id).last_key() < key);
            found.extend(level.get(place).copied().filter(covers));
        }
        found
    }

    /// The tables with keys from `first` to `last`, newest first.
    pub fn between(&self, first: u64, last: u64, of: &Tables) -> Vec<TableId> {
        let overlaps = |id: &TableId| of.get(*id).overlaps(first, last);
        let all = self.levels.iter().flatten().copied();
        all.filter(overlaps).collect()
    }

    /// Every table from key `first` on that a scan of `count` records can reach in its level.
    pub fn from(&self, first: u64, count: usize, of: &Tables) -> Vec<TableId> {
        let reaches = |id: &TableId| of.get(*id).last_key() >= first;
        let mut found: Vec<_> = self.levels[0].iter().copied().filter(reaches).collect();
        for level in &self.levels[1..] {
            let place = level.partition_point(|&id| of.get(id).last_key() < first);
            let mut records = 0;
            for &id in &level[place..] {
                let table = of.get(id);
                let begins = table.find(first).unwrap_or_else(|place| place);
                found.push(id);
                records += table.entries.len() - begins;
                if records >= count {
                    break;
                }
            }
        }
        found
    }

    /// Pick the next compaction: the first level once it has enough tables, else the level that exceeds its size most.
    pub fn pick(&mut self, options: &TreeOptions, of: &Tables) -> Option<Compaction> {
        if self.levels[0].len() >= options.level0_tables {
            let inputs = self.levels[0].clone();
            return Some(self.with_overlap(inputs, 1, of));
        }
        let bytes = self.bytes(of);
        let excess = |level: usize| bytes[level] as f64 / options.level_bytes(level) as f64;
        let fullest = (1..LOWEST_LEVEL).max_by(|&a, &b| excess(a).total_cmp(&excess(b)))?;
        if excess(fullest) <= 1.0 {
            return None;
        }
        let cursor = self.cursors[fullest];
        let level = &self.levels[fullest];
        let next = level.iter().find(|&&id| of.get(id).first_key() > cursor);
        let chosen = *next.unwrap_or(&level[0]);
        self.cursors[fullest] = of.get(chosen).last_key();
        Some(self.with_overlap(vec![chosen], fullest + 1, of))
    }

    fn with_overlap(&self, mut inputs: Vec<TableId>, into: usize, of: &Tables) -> Compaction {
        let keys = |edge: fn(&Table) -> u64| inputs.iter().map(move |&id| edge(of.get(id)));
        let first = keys(Table::first_key).min().expect("an input");
        let last = keys(Table::last_key).max().expect("an input");
        let overlapping = self.levels[into].iter().copied();
        let below: Vec<_> = overlapping
            .filter(|&id| of.get(id).overlaps(first, last))
            .collect();
        inputs.extend(below);
        Compaction { inputs, into }
    }
}

/// The newest version of each key of some tables, in order.
pub fn merged(inputs: &[TableId], of: &Tables) -> Vec<Entry> {
    let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
    for &id in inputs {
        for entry in &of.get(id).entries {
            let sequence = newest.entry(entry.key).or_default();
            *sequence = entry.sequence.max(*sequence);
        }
    }
    let entry = |(key, sequence)| Entry { key, sequence };
    newest.into_iter().map(entry).collect()
}

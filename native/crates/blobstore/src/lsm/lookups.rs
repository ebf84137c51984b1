//! Gets and scans: walks over blocks, one after the other.

use std::collections::BTreeMap;

use schedulers::Priority;

use crate::allocator::GlobalAllocator;
use crate::lsm::database::Database;
use crate::lsm::log::Put;
use crate::lsm::table::{Entry, TableId};
use crate::lsm::tasks::{Answer, Task, Walk};

impl Database {
    /// Look a key up in the memtables, then in the tables that may hold it, newest first.
    pub(super) fn get(&mut self, token: u64, key: u64, then_put: bool, now_ns: u64) {
        let mut blocks = Vec::new();
        let mut found = self.in_memory(key);
        if found.is_none() {
            for id in self.levels.holding(key, &self.tables) {
                let table = self.tables.get(id);
                let place = table.find(key);
                if place.is_err() && !self.passes_filter(id, key) {
                    continue;
                }
                let (Ok(entry) | Err(entry)) = place;
                blocks.push((id, self.block_of(entry.min(table.entries.len() - 1))));
                if place.is_ok() {
                    found = Some(table.entries[entry].sequence);
                    break;
                }
            }
        }
        self.walk(Walk {
            token,
            started_ns: now_ns,
            blocks,
            at: 0,
            answer: Answer::Found(found),
            then_put: then_put.then_some(key),
        });
    }

    /// Read the records from a key on, out of every table that has some of that range.
    pub(super) fn scan(&mut self, token: u64, key: u64, count: usize, now_ns: u64) {
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        let mut take = |(key, sequence): (u64, u64)| {
            let known = newest.entry(key).or_default();
            *known = sequence.max(*known);
        };
        let memory = self.immutables.iter().map(|of| &of.entries);
        for entries in memory.chain([&self.memtable]) {
            let from = entries.range(key..).take(count);
            from.map(|(&key, &sequence)| (key, sequence))
                .for_each(&mut take);
        }
        for id in self.levels.from(key, count, &self.tables) {
            let table = self.tables.get(id);
            let (Ok(begin) | Err(begin)) = table.find(key);
            let from = table.entries[begin..].iter().take(count);
            from.map(|entry| (entry.key, entry.sequence))
                .for_each(&mut take);
        }
        let entry = |(key, sequence)| Entry { key, sequence };
        let records: Vec<_> = newest.into_iter().take(count).map(entry).collect();
        let mut blocks = Vec::new();
        if let Some(last) = records.last() {
            for id in self.levels.between(key, last.key, &self.tables) {
                let table = self.tables.get(id);
                let (Ok(begin) | Err(begin)) = table.find(key);
                let end = table.entries.partition_point(|entry| entry.key <= last.key);
                if begin < end {
                    let range = self.block_of(begin)..=self.block_of(end - 1);
                    blocks.extend(range.map(|block| (id, block)));
                }
            }
        }
        self.walk(Walk {
            token,
            started_ns: now_ns,
            blocks,
            at: 0,
            answer: Answer::Records(records),
            then_put: None,
        });
    }

    fn in_memory(&self, key: u64) -> Option<u64> {
        let full = self.immutables.iter().rev().map(|of| &of.entries);
        let mut newest_first = std::iter::once(&self.memtable).chain(full);
        newest_first.find_map(|entries| entries.get(&key).copied())
    }

    fn block_of(&self, entry: usize) -> u64 {
        let per_block = self.options.block_bytes / self.options.record_bytes;
        entry as u64 / u64::from(per_block)
    }

    /// Whether a table's filter lets a key pass that the table does not have.
    fn passes_filter(&self, id: TableId, key: u64) -> bool {
        let mixed = (key ^ id.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let share = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 11;
        (share as f64) < self.options.false_positives * (1_u64 << 53) as f64
    }

    fn walk(&mut self, walk: Walk) {
        self.counters.lookups += 1;
        for &(id, _) in &walk.blocks {
            self.tables.pin(id);
        }
        let tag = self.tasks.insert(Task::Walk(walk));
        self.step(tag);
    }

    /// Read the next block that is not in the cache; a walk without any is over at once.
    fn step(&mut self, tag: usize) {
        let Task::Walk(walk) = &mut self.tasks[tag] else {
            unreachable!("the tag of a walk")
        };
        while let Some(place) = walk.blocks.get(walk.at) {
            let is_cached = |cache: &mut lru::LruCache<_, _>| cache.get(place).is_some();
            if !self.cache.as_mut().is_some_and(is_cached) {
                break;
            }
            self.counters.cache_hits += 1;
            walk.at += 1;
        }
        if let Some(&(id, block)) = walk.blocks.get(walk.at) {
            self.counters.blocks_read += 1;
            let block_bytes = u64::from(self.options.block_bytes);
            let first = block * block_bytes;
            let blob_bytes = self.blob_bytes;
            let blob = &self.tables.get(id).blobs[(first / blob_bytes) as usize];
            let bytes = self.options.block_bytes;
            let at = first % blob_bytes;
            self.client
                .read(tag as u64, blob, at, bytes, Priority::High);
        } else {
            self.over.push(tag);
        }
    }

    /// Go on with a walk whose block has been read.
    pub(super) fn walked(&mut self, mut walk: Walk, result: Result<(), String>) {
        match result {
            Ok(()) => {
                let place = walk.present();
                if let Some(cache) = &mut self.cache {
                    cache.put(place, ());
                }
                walk.at += 1;
            }
            Err(failure) => {
                walk.at = walk.blocks.len();
                walk.answer = Answer::Failed(failure);
                walk.then_put = None;
            }
        }
        let blocks_left = walk.at < walk.blocks.len();
        let tag = self.tasks.insert(Task::Walk(walk));
        if blocks_left {
            self.step(tag);
        } else {
            self.over.push(tag);
        }
    }

    /// Answer the walks that are over, and begin the writes that follow them.
    pub(super) fn end_walks(&mut self, global: &mut GlobalAllocator, now_ns: u64) {
        while let Some(tag) = self.over.pop() {
            let Task::Walk(walk) = self.tasks.remove(tag) else {
                unreachable!("the tag of a walk")
            };
            for (id, _) in walk.blocks {
                let blobs = self.tables.unpin(id);
                self.release(blobs, global);
            }
            let (token, started_ns) = (walk.token, walk.started_ns);
            match walk.then_put {
                Some(key) => self.put(Put {
                    token,
                    started_ns,
                    key,
                }),
                None => self.finish(token, started_ns, walk.answer, now_ns),
            }
        }
    }
}

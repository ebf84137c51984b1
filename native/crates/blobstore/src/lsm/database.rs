//! A database of one client: queries in, requests to drives out.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

use lru::LruCache;
use schedulers::{Outcome, Priority};
use slab::Slab;

use crate::allocator::{GlobalAllocator, LocalAllocator};
use crate::client::{Client, Ended, Io};
use crate::drives::{DriveId, Extent};
use crate::lsm::content;
use crate::lsm::counters::Counters;
use crate::lsm::levels::Levels;
use crate::lsm::log::{Batch, Log, Put};
use crate::lsm::options::TreeOptions;
use crate::lsm::table::{Entry, TableId, Tables};
use crate::lsm::tasks::{Answer, Job, Task};
use crate::refusal::Refusal;

/// A query of a key-value store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Read a record.
    Get(u64),
    /// Write a record.
    Put(u64),
    /// Read a record, then write it.
    ReadModifyWrite(u64),
    /// Read so many records from a key on.
    Scan(u64, usize),
}

impl Query {
    /// The number of its kind, for tallies: gets 0, puts 1, scans 2, read-modify-writes 3.
    #[must_use]
    pub fn kind(&self) -> usize {
        match self {
            Self::Get(_) => 0,
            Self::Put(_) => 1,
            Self::Scan(..) => 2,
            Self::ReadModifyWrite(_) => 3,
        }
    }
}

/// A query that has been answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The caller's number of the query.
    pub token: u64,
    /// The time from its start.
    pub latency_ns: u64,
    /// The answer.
    pub answer: Answer,
}

/// A full memtable, with its log.
#[derive(Debug)]
pub(super) struct Immutable {
    pub entries: BTreeMap<u64, u64>,
    pub blobs: Vec<Vec<Extent>>,
}

/// A key-value store on a pool of drives.
///
/// The caller starts queries, carries out the requests that [`Database::next_io`] gives, completes them, and takes what is
/// finished. Time is an argument.
#[derive(Debug)]
pub struct Database {
    pub(super) options: TreeOptions,
    pub(super) client: Client,
    pub(super) allocator: LocalAllocator,
    pub(super) tables: Tables,
    pub(super) levels: Levels,
    pub(super) memtable: BTreeMap<u64, u64>,
    pub(super) immutables: VecDeque<Immutable>,
    pub(super) log: Log,
    pub(super) sequence: u64,
    pub(super) tasks: Slab<Task>,
    pub(super) cache: Option<LruCache<(TableId, u64), ()>>,
    pub(super) load: Option<Job>,
    pub(super) flush: Option<Job>,
    pub(super) compaction: Option<Job>,
    pub(super) finished: Vec<Finished>,
    pub(super) failure: Option<String>,
    pub(super) counters: Counters,
    pub(super) blob_bytes: u64,
    /// Walks that are over and not answered yet, by their tags.
    pub(super) over: Vec<usize>,
    /// Whether a job has ended since the last round of work: others may follow from it.
    pub(super) has_changed: bool,
    /// Whether tables were installed since there was nothing to compact.
    pub(super) may_compact: bool,
    ended: Vec<Ended>,
}

impl Database {
    /// An empty database.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for settings that do not fit together.
    pub fn new(
        options: TreeOptions,
        client: Client,
        global: &GlobalAllocator,
    ) -> Result<Self, Refusal> {
        options.check(&global.layout())?;
        let blocks = (options.cache_bytes / u64::from(options.block_bytes)) as usize;
        Ok(Self {
            options,
            client,
            allocator: LocalAllocator::new(),
            tables: Tables::default(),
            levels: Levels::default(),
            memtable: BTreeMap::new(),
            immutables: VecDeque::new(),
            log: Log::default(),
            sequence: 0,
            tasks: Slab::new(),
            cache: NonZeroUsize::new(blocks).map(LruCache::new),
            load: None,
            flush: None,
            compaction: None,
            finished: Vec::new(),
            failure: None,
            counters: Counters::default(),
            blob_bytes: global.layout().blob_bytes,
            over: Vec::new(),
            has_changed: false,
            may_compact: false,
            ended: Vec::new(),
        })
    }

    /// The client, for its credits and counts.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Counts of the work of the database.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes of each level.
    #[must_use]
    pub fn level_bytes(&self) -> Vec<u64> {
        self.levels.bytes(&self.tables)
    }

    /// The reason why the database takes no puts any more, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether a flush, a compaction or the load is under way.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.load.is_some() || self.flush.is_some() || self.compaction.is_some()
    }

    /// Start a query. Its answer bears the same token.
    pub fn start(&mut self, token: u64, query: Query, global: &mut GlobalAllocator, now_ns: u64) {
        match query {
            Query::Put(key) => {
                self.put(Put {
                    token,
                    started_ns: now_ns,
                    key,
                });
            }
            Query::Get(key) => self.get(token, key, false, now_ns),
            Query::ReadModifyWrite(key) => self.get(token, key, true, now_ns),
            Query::Scan(key, count) => self.scan(token, key, count, now_ns),
        }
        self.run(global, now_ns);
    }

    /// The next request to a drive that may go now.
    pub fn next_io(&mut self) -> Option<Io> {
        self.client.next_io()
    }

    /// Take note of a drive's credit.
    pub fn set_credit(&mut self, drive: DriveId, credit: u32) {
        self.client.set_credit(drive, credit);
    }

    /// Take note that a request to a drive has completed, with the credit that came with it.
    pub fn complete(
        &mut self,
        id: usize,
        outcome: Outcome,
        credit: Option<u32>,
        global: &mut GlobalAllocator,
        now_ns: u64,
    ) {
        self.client.complete(id, outcome, credit);
        self.run(global, now_ns);
    }

    /// Take note that a drive does not answer any more; those outstanding at it are still to be completed.
    pub fn fail_drive(&mut self, drive: DriveId, global: &mut GlobalAllocator, now_ns: u64) {
        self.client.fail_drive(drive);
        self.run(global, now_ns);
    }

    /// Queries that have been answered since the last call, appended in their order.
    pub fn take_finished(&mut self, finished: &mut Vec<Finished>) {
        finished.append(&mut self.finished);
    }

    /// Fill the buffer of a write that is to be carried out.
    pub fn fill(&self, io: &Io, buffer: &mut [u8]) {
        content::fill(
            self.entries_of(io),
            self.options.record_bytes as usize,
            buffer,
        );
    }

    /// Compare what a read returned with what was written, before the read is completed.
    ///
    /// # Errors
    /// The first record that differs, in words.
    pub fn verify(&self, io: &Io, buffer: &[u8]) -> Result<(), String> {
        content::verify(
            self.entries_of(io),
            self.options.record_bytes as usize,
            buffer,
        )
    }

    /// The records that a request covers.
    fn entries_of(&self, io: &Io) -> &[Entry] {
        let (id, first) = match &self.tasks[io.tag as usize] {
            Task::Append(batch) => return &batch.entries,
            Task::Chunk(chunk) => (chunk.table, chunk.first),
            Task::Walk(walk) => {
                let (id, block) = walk.present();
                (id, block * u64::from(self.options.block_bytes))
            }
        };
        let record = u64::from(self.options.record_bytes);
        let entries = &self.tables.get(id).entries;
        let begin = ((first / record) as usize).min(entries.len());
        let end = (((first + u64::from(io.bytes)) / record) as usize).min(entries.len());
        &entries[begin..end]
    }

    /// Go on with all that has ended, until nothing follows from it any more.
    pub(super) fn run(&mut self, global: &mut GlobalAllocator, now_ns: u64) {
        loop {
            let mut ended = std::mem::take(&mut self.ended);
            self.client.take_ended(&mut ended);
            for Ended { tag, result } in ended.drain(..) {
                let result = result.map_err(|failure| failure.to_string());
                match self.tasks.remove(tag as usize) {
                    Task::Walk(walk) => self.walked(walk, result),
                    Task::Append(batch) => self.appended(batch, result, now_ns),
                    Task::Chunk(chunk) => self.chunk_ended(&chunk, result),
                }
            }
            self.ended = ended;
            self.end_walks(global, now_ns);
            self.append(global, now_ns);
            self.work(global);
            if !std::mem::take(&mut self.has_changed) && !self.client.has_ended() {
                return;
            }
        }
    }

    pub(super) fn finish(&mut self, token: u64, started_ns: u64, answer: Answer, now_ns: u64) {
        self.finished.push(Finished {
            token,
            latency_ns: now_ns - started_ns,
            answer,
        });
    }

    pub(super) fn put(&mut self, put: Put) {
        self.log.waiting.push_back(put);
        self.counters.stalled_puts += u64::from(self.is_stalled());
    }

    fn is_stalled(&self) -> bool {
        self.immutables.len() + 1 >= self.options.memtables && self.memtable_is_full()
            || self.levels.level0_tables() >= self.options.level0_stop
    }

    fn memtable_is_full(&self) -> bool {
        let records = self.options.memtable_bytes / u64::from(self.options.record_bytes);
        self.memtable.len() as u64 >= records
    }

    /// Append the puts that wait, in one request.
    fn append(&mut self, global: &mut GlobalAllocator, now_ns: u64) {
        self.rotate();
        if let Some(failure) = self.failure.clone() {
            while let Some(put) = self.log.waiting.pop_front() {
                let answer = Answer::Failed(failure.clone());
                self.finish(put.token, put.started_ns, answer, now_ns);
            }
            return;
        }
        if self.log.is_busy || self.log.waiting.is_empty() || self.is_stalled() {
            return;
        }
        let (record, block) = (self.options.record_bytes, self.options.block_bytes);
        let most = (self.options.background_bytes / record) as usize;
        let count = self.log.waiting.len().min(most);
        let bytes = (count as u32 * record).next_multiple_of(block);
        if self.log.room(global.layout().blob_bytes) < u64::from(bytes) {
            match self.allocator.allocate(global) {
                Ok(blob) => self.log.extend(blob),
                Err(refusal) => {
                    self.failure = Some(format!("the log cannot grow: {refusal}"));
                    return self.append(global, now_ns);
                }
            }
        }
        let mut batch = Batch::default();
        for put in self.log.waiting.drain(..count) {
            self.sequence += 1;
            let sequence = self.sequence;
            let key = put.key;
            batch.puts.push(put);
            batch.entries.push(Entry { key, sequence });
        }
        let (blob, at) = self.log.append(u64::from(bytes));
        self.log.is_busy = true;
        self.counters.log_bytes += u64::from(bytes);
        let tag = self.tasks.insert(Task::Append(batch)) as u64;
        self.client.write(tag, &blob, at, bytes, Priority::High);
    }

    /// Take the puts of an append into the memtable.
    fn appended(&mut self, batch: Batch, result: Result<(), String>, now_ns: u64) {
        self.log.is_busy = false;
        if let Err(failure) = result {
            self.failure = Some(format!("an append to the log failed: {failure}"));
        }
        for (put, entry) in batch.puts.iter().zip(&batch.entries) {
            let answer = match &self.failure {
                Some(failure) => Answer::Failed(failure.clone()),
                None => {
                    self.memtable.insert(entry.key, entry.sequence);
                    self.counters.put_bytes += u64::from(self.options.record_bytes);
                    Answer::Stored(entry.sequence)
                }
            };
            self.finish(put.token, put.started_ns, answer, now_ns);
        }
    }

    /// Begin a new memtable where the present one is full, unless too many wait to be flushed.
    fn rotate(&mut self) {
        if self.memtable_is_full() && self.immutables.len() + 1 < self.options.memtables {
            self.immutables.push_back(Immutable {
                entries: std::mem::take(&mut self.memtable),
                blobs: self.log.take_blobs(),
            });
        }
    }

    /// Give the blobs of a table or a log back.
    pub(super) fn release(
        &mut self,
        blobs: Option<Vec<Vec<Extent>>>,
        global: &mut GlobalAllocator,
    ) {
        for blob in blobs.into_iter().flatten() {
            let freed = self.allocator.free(&blob, global);
            freed.expect("a blob that the allocator has given");
        }
    }
}

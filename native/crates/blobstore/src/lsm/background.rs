//! Flushes, compactions and the load: tables read and written in large requests.

use schedulers::Priority;

use crate::allocator::GlobalAllocator;
use crate::lsm::database::Database;
use crate::lsm::levels::merged;
use crate::lsm::table::{Entry, TableId};
use crate::lsm::tasks::{Chunk, Job, Purpose, Task};
use crate::refusal::Refusal;

impl Database {
    /// Store records of these keys as after a full compaction. The database is to be empty; it is at work until then.
    ///
    /// # Errors
    /// [`Refusal::Full`] where the pool has not enough space.
    pub fn load(
        &mut self,
        keys: impl Iterator<Item = u64>,
        global: &mut GlobalAllocator,
        now_ns: u64,
    ) -> Result<(), Refusal> {
        let mut keys: Vec<u64> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        let mut entries = Vec::with_capacity(keys.len());
        for key in keys {
            self.sequence += 1;
            let sequence = self.sequence;
            entries.push(Entry { key, sequence });
        }
        let bytes = entries.len() as u64 * u64::from(self.options.record_bytes);
        let into = self.options.level_for(bytes);
        let mut job = Job::of(Vec::new(), into);
        if let Err(refusal) = self.write_tables(&mut job, &entries, Purpose::Load, global) {
            self.retire(&job.outputs, global);
            return Err(refusal);
        }
        self.load = Some(job);
        self.run(global, now_ns);
        Ok(())
    }

    /// Begin and go on with background work.
    pub(super) fn work(&mut self, global: &mut GlobalAllocator) {
        if self.failure.is_none() {
            self.begin_flush(global);
            self.begin_compaction();
        }
        for purpose in [Purpose::Load, Purpose::Flush, Purpose::Compaction] {
            self.go_on(purpose, global);
        }
    }

    /// Take note that a part of a job has ended.
    pub(super) fn chunk_ended(&mut self, chunk: &Chunk, result: Result<(), String>) {
        let job = self.job(chunk.purpose).as_mut();
        let job = job.expect("it has a request in flight");
        job.in_flight -= 1;
        if let Err(failure) = result {
            job.waiting.clear();
            let purpose = chunk.purpose;
            self.fail(format!("a {} failed: {failure}", purpose.name()));
        }
    }

    fn begin_flush(&mut self, global: &mut GlobalAllocator) {
        let Some(oldest) = self.immutables.front().filter(|_| self.flush.is_none()) else {
            return;
        };
        let entry = |(&key, &sequence): (&u64, &u64)| Entry { key, sequence };
        let entries: Vec<_> = oldest.entries.iter().map(entry).collect();
        let mut job = Job::of(Vec::new(), 0);
        match self.write_table(&mut job, entries, Purpose::Flush, global) {
            Ok(()) => self.flush = Some(job),
            Err(refusal) => self.fail(format!("a flush failed: {refusal}")),
        }
    }

    fn begin_compaction(&mut self) {
        if !self.may_compact || self.compaction.is_some() || self.load.is_some() {
            return;
        }
        let Some(picked) = self.levels.pick(&self.options, &self.tables) else {
            self.may_compact = false;
            return;
        };
        let mut job = Job::of(picked.inputs, picked.into);
        for &table in &job.inputs {
            let bytes = self.tables.get(table).bytes;
            self.counters.compaction_read_bytes += bytes;
            let chunks = self.chunks(table, true, Purpose::Compaction);
            job.waiting.extend(chunks);
        }
        job.has_read = false;
        self.compaction = Some(job);
    }

    /// Send what the depth allows; write the outputs once all inputs are read, and install them once they are written.
    fn go_on(&mut self, purpose: Purpose, global: &mut GlobalAllocator) {
        let Some(mut job) = self.job(purpose).take() else {
            return;
        };
        let has_failed = self.failure.is_some();
        if job.in_flight == 0 && job.waiting.is_empty() && !job.has_read && !has_failed {
            job.has_read = true;
            let entries = merged(&job.inputs, &self.tables);
            if let Err(refusal) = self.write_tables(&mut job, &entries, purpose, global) {
                self.fail(format!("a compaction failed: {refusal}"));
            }
        }
        if self.failure.is_some() {
            job.waiting.clear();
        }
        while job.in_flight < self.options.background_depth {
            let Some(chunk) = job.waiting.pop_front() else {
                break;
            };
            job.in_flight += 1;
            self.send(chunk);
        }
        if job.in_flight > 0 {
            *self.job(purpose) = Some(job);
        } else {
            self.end(job, purpose, global);
        }
    }

    fn send(&mut self, chunk: Chunk) {
        let blob_bytes = self.blob_bytes;
        let tag = self.tasks.insert(Task::Chunk(chunk)) as u64;
        let blob = &self.tables.get(chunk.table).blobs[(chunk.first / blob_bytes) as usize];
        let at = chunk.first % blob_bytes;
        let client = &mut self.client;
        if chunk.is_read {
            client.read(tag, blob, at, chunk.bytes, Priority::Low);
        } else {
            client.write(tag, blob, at, chunk.bytes, Priority::Low);
        }
    }

    /// Install a job's outputs, or drop them where something has failed.
    fn end(&mut self, job: Job, purpose: Purpose, global: &mut GlobalAllocator) {
        if self.failure.is_some() {
            return self.retire(&job.outputs, global);
        }
        match purpose {
            Purpose::Load => self
                .levels
                .replace(&[], &job.outputs, job.into, &self.tables),
            Purpose::Flush => {
                self.levels.push_flushed(job.outputs[0]);
                let flushed = self.immutables.pop_front().expect("what was flushed");
                self.release(Some(flushed.blobs), global);
            }
            Purpose::Compaction => {
                let (inputs, outputs) = (&job.inputs, &job.outputs);
                self.levels.replace(inputs, outputs, job.into, &self.tables);
                self.retire(inputs, global);
                self.counters.compactions += 1;
            }
        }
        (self.has_changed, self.may_compact) = (true, true);
    }

    fn retire(&mut self, tables: &[TableId], global: &mut GlobalAllocator) {
        for &id in tables {
            let blobs = self.tables.retire(id);
            self.release(blobs, global);
        }
    }

    /// Make tables of these records, to be written by a job; without space, those made before are kept for its end.
    fn write_tables(
        &mut self,
        job: &mut Job,
        entries: &[Entry],
        purpose: Purpose,
        global: &mut GlobalAllocator,
    ) -> Result<(), Refusal> {
        let records = self.options.table_bytes / u64::from(self.options.record_bytes);
        for part in entries.chunks(records as usize) {
            self.write_table(job, part.to_vec(), purpose, global)?;
        }
        Ok(())
    }

    fn write_table(
        &mut self,
        job: &mut Job,
        entries: Vec<Entry>,
        purpose: Purpose,
        global: &mut GlobalAllocator,
    ) -> Result<(), Refusal> {
        let records = entries.len() as u64 * u64::from(self.options.record_bytes);
        let bytes = records.next_multiple_of(u64::from(self.options.block_bytes));
        let mut blobs = Vec::new();
        for _ in 0..bytes.div_ceil(self.blob_bytes) {
            match self.allocator.allocate(global) {
                Ok(blob) => blobs.push(blob),
                Err(refusal) => {
                    self.release(Some(blobs), global);
                    return Err(refusal);
                }
            }
        }
        match purpose {
            Purpose::Load => {}
            Purpose::Flush => self.counters.flushed_bytes += bytes,
            Purpose::Compaction => self.counters.compaction_written_bytes += bytes,
        }
        let table = self.tables.insert(entries, blobs, bytes);
        job.outputs.push(table);
        job.waiting.extend(self.chunks(table, false, purpose));
        Ok(())
    }

    fn chunks(&self, table: TableId, is_read: bool, purpose: Purpose) -> Vec<Chunk> {
        let (total, each) = (
            self.tables.get(table).bytes,
            u64::from(self.options.background_bytes),
        );
        let chunk = |number| {
            let first = number * each;
            Chunk {
                table,
                first,
                bytes: each.min(total - first) as u32,
                is_read,
                purpose,
            }
        };
        (0..total.div_ceil(each)).map(chunk).collect()
    }

    fn job(&mut self, purpose: Purpose) -> &mut Option<Job> {
        match purpose {
            Purpose::Load => &mut self.load,
            Purpose::Flush => &mut self.flush,
            Purpose::Compaction => &mut self.compaction,
        }
    }

    fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }
}

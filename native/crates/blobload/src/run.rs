//! The run: operations of a workload on a database, in real time.

use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

use blobstore::{key_of, Answer, Client, Database, DriveId, GlobalAllocator, PoolDrive, Workload};
use hdrhistogram::Histogram;
use realtime::now_ns;
use schedulers::{Operation, Outcome};
use serde_json::{json, Value};

use crate::control::Check;
use crate::credits::{self, Told};
use crate::document::Document;
use crate::drive::{Answered, Drive};

/// The wait for an answer before other drives and credits are looked at.
const WAIT: Duration = Duration::from_micros(100);
/// The operations that a quantile has beyond it at least: of fewer it is a matter of chance. So it is in rackloop_models.
const BEYOND: u64 = 10;
/// The most bytes that are read or written at a time, of all drives together. A switch takes no request of a tenant whose
/// unread answers fill its 256 MiB: beyond that it would wait for this program to read, and this one for it.
const IN_FLIGHT_BYTES: u64 = 128 << 20;
const KINDS: [&str; 4] = ["gets", "puts", "scans", "read_modify_writes"];

/// Operations of a kind.
struct Tally {
    count: u64,
    errors: u64,
    latencies: Histogram<u64>,
}

/// A database on the drives of a pool.
pub struct Run<'a> {
    document: &'a Document,
    drives: Vec<Drive>,
    credits: Receiver<Told>,
    global: GlobalAllocator,
    database: Database,
    workload: Workload,
    /// The kind of each operation under way, by its token.
    kinds: Vec<usize>,
    tallies: Vec<Tally>,
    started: u64,
    ended: u64,
    verified_bytes: u64,
    /// The first read that returned other bytes than were written.
    mismatch: Option<String>,
    /// The first operation that failed.
    first_error: Option<String>,
}

impl<'a> Run<'a> {
    /// Connect to every drive, each the export of the tenant that it names.
    pub fn new(document: &'a Document) -> Result<Self, String> {
        let mut drives = Vec::new();
        let (sender, credits) = channel();
        for (of, number) in document.drives.iter().zip(0..) {
            let check = Check::begin(of)?;
            let drive = Drive::connect(of)?;
            check.end(drive.bytes)?;
            drives.push(drive);
            credits::follow(of.clone(), DriveId(number), sender.clone());
        }
        let pool: Vec<_> = document
            .drives
            .iter()
            .zip(&drives)
            .map(|(of, drive)| PoolDrive {
                in_box: of.in_box,
                bytes: drive.bytes,
            })
            .collect();
        let said = |refusal: blobstore::Refusal| refusal.to_string();
        let global = GlobalAllocator::new(document.layout, &pool)
            .map_err(|refusal| format!("layout: {refusal}"))?;
        let client = Client::new(document.options, pool.len());
        let database = Database::new(document.tree, client, &global)
            .map_err(|refusal| format!("tree: {refusal}"))?;
        let workload =
            Workload::new(&document.mix, document.records, document.seed).map_err(said)?;
        let tally = |_| Tally {
            count: 0,
            errors: 0,
            latencies: Histogram::new(3).expect("a histogram of three digits"),
        };
        Ok(Self {
            document,
            drives,
            credits,
            global,
            database,
            workload,
            kinds: vec![0; document.depth.min(document.operations as usize)],
            tallies: KINDS.iter().map(tally).collect(),
            started: 0,
            ended: 0,
            verified_bytes: 0,
            mismatch: None,
            first_error: None,
        })
    }

    /// Store the records; the error says why they cannot be, and [`Run::trouble`] what has failed.
    pub fn load(&mut self) -> Result<(), String> {
        let bytes: u64 = self.drives.iter().map(|drive| drive.bytes).sum();
        // One more than the drives can hold is refused like any further ones, whose keys need no memory then.
        let most = bytes / u64::from(self.document.tree.record_bytes) + 1;
        let keys = (0..self.document.records.min(most)).map(key_of);
        let loaded = self.database.load(keys, &mut self.global, now_ns());
        loaded.map_err(|refusal| format!("the records do not fit: {refusal}"))?;
        while self.database.is_at_work() {
            self.step();
        }
        Ok(())
    }

    /// Carry out the operations; `progress` is called with their number as the document asks.
    pub fn operate(&mut self, mut progress: impl FnMut(u64)) {
        for token in 0..self.kinds.len() as u64 {
            self.start(token);
        }
        let every = self.document.progress_every.unwrap_or(u64::MAX);
        let mut told = 0;
        while self.ended < self.document.operations {
            self.step();
            if self.ended / every > told {
                told = self.ended / every;
                progress(self.ended);
            }
        }
    }

    /// The result, after `seconds` of operations.
    pub fn result(&self, seconds: f64) -> Value {
        let counters = self.database.counters();
        let client = self.database.client();
        let by_drive = client.reads_by_drive();
        let drives = self.document.drives.iter().zip(&self.drives).enumerate();
        let drives = drives.map(|(number, (of, drive))| {
            let (credit, ..) = client.load(DriveId(number as u32));
            json!({
                "tenant": of.tenant, "in_box": of.in_box, "reads": by_drive[number], "credit": credit,
                "credits": drive.credits, "failed": drive.failed, "lost": drive.lost,
            })
        });
        let mut result = json!({
            "event": "result",
            "operations": self.ended,
            "seconds": seconds,
            "operations_per_s": self.ended as f64 / seconds,
            "errors": self.errors(),
            "first_error": self.first_error,
            "mismatch": self.mismatch,
            "verified_bytes": self.verified_bytes,
            "credit_updates": self.drives.iter().map(|drive| drive.credits.changes).sum::<u64>(),
            "reads_by_replica": client.reads_by_replica(),
            "counters": counters,
            "write_amplification": counters.write_amplification(),
            "read_amplification": counters.read_amplification(),
            "level_bytes": self.database.level_bytes(),
            "drives": drives.collect::<Vec<_>>(),
        });
        for (name, tally) in KINDS.iter().zip(&self.tallies) {
            result[*name] = tally.as_json();
        }
        result
    }

    /// The failure, the drives it is of, and the remedy; `None` where nothing failed.
    pub fn trouble(&self) -> Option<String> {
        let failure = self.first_error.as_deref().or(self.database.failure());
        let mut said = match (&self.mismatch, failure) {
            (Some(mismatch), _) => mismatch.clone(),
            (None, Some(failure)) if self.ended == 0 => {
                format!("the records are not stored: {failure}")
            }
            (None, Some(failure)) => {
                format!(
                    "{} of {} operations failed: {failure}",
                    self.errors(),
                    self.ended
                )
            }
            (None, None) => return None,
        };
        for (number, (of, drive)) in self.document.drives.iter().zip(&self.drives).enumerate() {
            if let Some(why) = &drive.lost {
                said += &format!(
                    "; drive {number}, {}, was lost ({why}): start its switch, then blobload anew",
                    of.uri
                );
            }
        }
        Some(said)
    }

    fn errors(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.errors).sum()
    }

    fn start(&mut self, token: u64) {
        if self.started == self.document.operations {
            return;
        }
        self.started += 1;
        let query = self.workload.draw();
        self.kinds[token as usize] = query.kind();
        self.database
            .start(token, query, &mut self.global, now_ns());
    }

    /// Send what may go, and take what has come.
    fn step(&mut self) {
        while let Ok(told) = self.credits.try_recv() {
            self.drives[told.drive.index()].credits.note(&told);
            self.database.set_credit(told.drive, told.credit);
        }
        self.send();
        let mut has_come = false;
        for number in 0..self.drives.len() {
            while let Some(answered) = self.receive(number, Duration::ZERO) {
                self.complete(answered);
                has_come = true;
            }
        }
        if !has_come {
            let busy = self.drives.iter().position(Drive::is_busy);
            if let Some(answered) = busy.and_then(|number| self.receive(number, WAIT)) {
                self.complete(answered);
            }
        }
        self.finish();
    }

    fn send(&mut self) {
        while self.in_flight_bytes() < IN_FLIGHT_BYTES {
            let Some(io) = self.database.next_io() else {
                return;
            };
            let mut buffer = vec![0; io.bytes as usize];
            if io.operation == Operation::Write {
                self.database.fill(&io, &mut buffer);
            }
            let number = io.drive.index();
            if let Err(io) = self.drives[number].submit(io, buffer) {
                self.fail(io.id);
                self.lose(number);
            }
        }
    }

    fn in_flight_bytes(&self) -> u64 {
        self.drives.iter().map(|drive| drive.in_flight_bytes).sum()
    }

    fn receive(&mut self, number: usize, wait: Duration) -> Option<Answered> {
        if !self.drives[number].is_busy() {
            return None;
        }
        let answered = self.drives[number].receive(wait);
        if answered.is_none() && self.drives[number].lost.is_some() {
            self.lose(number);
        }
        answered
    }

    fn complete(
        &mut self,
        Answered {
            io,
            buffer,
            is_done,
        }: Answered,
    ) {
        if !is_done {
            return self.fail(io.id);
        }
        if io.operation == Operation::Read {
            match self.database.verify(&io, &buffer) {
                Ok(()) => self.verified_bytes += buffer.len() as u64,
                Err(what) => {
                    let place = format!("drive {}, byte {}: {what}", io.drive.0, io.offset);
                    self.mismatch.get_or_insert(place);
                }
            }
        }
        let global = &mut self.global;
        self.database
            .complete(io.id, Outcome::Succeeded, None, global, now_ns());
    }

    fn fail(&mut self, id: usize) {
        self.database
            .complete(id, Outcome::Failed, None, &mut self.global, now_ns());
    }

    /// Take note that a connection is lost: nothing is sent there any more.
    fn lose(&mut self, number: usize) {
        let drive = DriveId(number as u32);
        self.database.fail_drive(drive, &mut self.global, now_ns());
        for io in self.drives[number].take_lost() {
            self.fail(io.id);
        }
    }

    fn finish(&mut self) {
        let mut finished = Vec::new();
        self.database.take_finished(&mut finished);
        for one in finished {
            self.ended += 1;
            let tally = &mut self.tallies[self.kinds[one.token as usize]];
            if let Answer::Failed(what) = one.answer {
                tally.errors += 1;
                self.first_error.get_or_insert(what);
            } else {
                tally.count += 1;
                tally.latencies.record(one.latency_ns).expect("it grows");
            }
            self.start(one.token);
        }
    }
}

impl Tally {
    fn as_json(&self) -> Value {
        let at = |one_in: u64| match self.count / one_in {
            ..BEYOND => Value::Null,
            _ => json!(self.latencies.value_at_quantile(1.0 - 1.0 / one_in as f64)),
        };
        json!({
            "count": self.count, "errors": self.errors,
            "latency_ns": {"p50": at(2), "p99": at(100), "p99_9": at(1000)},
        })
    }
}

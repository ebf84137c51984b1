//! A client of a blobstore experiment: a database, its workload in a closed loop, and what is measured of it.

use blobstore::{Answer, Counters, Database, Finished, GlobalAllocator, Workload};

use crate::blob_document::StoreClient;
use crate::blob_result::{ClientResult, Operations};
use crate::figures::Latencies;

/// Kinds of operations that are counted apart.
const KINDS: usize = 4;

/// Operations of a kind, counted as they end.
#[derive(Default)]
struct Tally {
    count: u64,
    latencies: Latencies,
}

/// Counts of a client at the start of the measured time.
struct Before {
    counters: Counters,
    reads_by_replica: Vec<u64>,
    reads_by_drive: Vec<u64>,
}

/// A client at work.
pub struct Client<'a> {
    document: &'a StoreClient,
    pub database: Database,
    workload: Workload,
    /// The kind of each operation under way, by its token.
    kinds: Vec<usize>,
    tallies: [Tally; KINDS],
    errors: u64,
    finished: Vec<Finished>,
    before: Option<Before>,
}

impl<'a> Client<'a> {
    /// A client with an empty database.
    pub fn new(document: &'a StoreClient, database: Database, workload: Workload) -> Self {
        Self {
            document,
            database,
            workload,
            kinds: vec![0; document.depth],
            tallies: Default::default(),
            errors: 0,
            finished: Vec::new(),
            before: None,
        }
    }

    /// Count what has ended; the tokens that may start again, after the client's own time, are appended.
    pub fn settle(&mut self, ready: &mut Vec<u64>) {
        let mut finished = std::mem::take(&mut self.finished);
        self.database.take_finished(&mut finished);
        for one in finished.drain(..) {
            self.count(&one);
            ready.push(one.token);
        }
        self.finished = finished;
    }

    /// Start the next operation under a token.
    pub fn start(&mut self, token: u64, global: &mut GlobalAllocator, now_ns: u64) {
        let query = self.workload.draw();
        self.kinds[token as usize] = query.kind();
        self.database.start(token, query, global, now_ns);
    }

    /// Begin to measure.
    pub fn measure(&mut self) {
        self.tallies = Default::default();
        self.errors = 0;
        self.before = Some(Before {
            counters: self.database.counters(),
            reads_by_replica: self.database.client().reads_by_replica().to_vec(),
            reads_by_drive: self.database.client().reads_by_drive(),
        });
    }

    /// The figures since then.
    pub fn result(&mut self, seconds: f64) -> ClientResult<'a> {
        let before = self.before.take().expect("it was measured");
        let counters = self.database.counters().since(&before.counters);
        let client = self.database.client();
        let less = |now: &[u64], then: &[u64]| {
            let then = then.iter().copied().chain(std::iter::repeat(0));
            now.iter().zip(then).map(|(now, then)| now - then).collect()
        };
        let operations = self.tallies.iter().map(|tally| tally.count).sum();
        let [gets, puts, scans, read_modify_writes] = &mut self.tallies;
        ClientResult {
            name: &self.document.tenant.name,
            operations,
            operations_per_s: operations as f64 / seconds,
            errors: self.errors,
            gets: gets.figures(),
            puts: puts.figures(),
            scans: scans.figures(),
            read_modify_writes: read_modify_writes.figures(),
            reads_by_replica: less(client.reads_by_replica(), &before.reads_by_replica),
            reads_by_drive: less(&client.reads_by_drive(), &before.reads_by_drive),
            counters,
            write_amplification: counters.write_amplification(),
            read_amplification: counters.read_amplification(),
            level_bytes: self.database.level_bytes(),
            failure: self.database.failure().map(str::to_owned),
        }
    }

    fn count(&mut self, one: &Finished) {
        if let Answer::Failed(_) = one.answer {
            self.errors += 1;
            return;
        }
        let tally = &mut self.tallies[self.kinds[one.token as usize]];
        tally.count += 1;
        tally.latencies.record(one.latency_ns);
    }
}

impl Tally {
    fn figures(&mut self) -> Operations {
        Operations {
            count: self.count,
            latency_ns: self.latencies.summary(),
        }
    }
}

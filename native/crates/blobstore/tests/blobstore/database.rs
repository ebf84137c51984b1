//! The database: reads find the newest value, through memtables, tables, flushes and compactions, in whatever order drives
//! complete; bytes are as they were written.

use std::collections::BTreeMap;

use blobstore::{
    Answer, Client, ClientOptions, Database, DriveId, Finished, GlobalAllocator, Io, Query,
    TreeOptions,
};
use proptest::prelude::*;
use schedulers::Priority;

use crate::bench::{cases, drives, Memory, SMALL};

/// Sizes so small that a few hundred puts go through every level.
const TINY: TreeOptions = TreeOptions {
    record_bytes: 256,
    block_bytes: 512,
    memtable_bytes: 4 << 10,
    memtables: 2,
    table_bytes: 4 << 10,
    level0_tables: 2,
    level0_stop: 6,
    level_base_bytes: 8 << 10,
    level_ratio: 2,
    false_positives: 0.2,
    cache_bytes: 4 << 10,
    background_bytes: 2 << 10,
    background_depth: 3,
};
const KEYS: u64 = 60;

struct Bench {
    global: GlobalAllocator,
    database: Database,
    memory: Memory,
    /// Whether completions bring credits.
    has_credit: bool,
    now_ns: u64,
    /// The newest write of each key that has been answered, and the newest that was begun before each query.
    stored: BTreeMap<u64, u64>,
    queries: Vec<(Query, BTreeMap<u64, u64>)>,
    finished: Vec<Finished>,
}

impl Bench {
    fn new(options: TreeOptions, bytes: u64) -> Self {
        let pool = drives(3, 3, bytes);
        let global = GlobalAllocator::new(SMALL, &pool).unwrap();
        let client = Client::new(ClientOptions::default(), pool.len());
        Self {
            database: Database::new(options, client, &global).unwrap(),
            global,
            memory: Memory::default(),
            has_credit: true,
            now_ns: 0,
            stored: BTreeMap::new(),
            queries: Vec::new(),
            finished: Vec::new(),
        }
    }

    fn load(&mut self) {
        let keys = (0..KEYS).step_by(2);
        self.database.load(keys, &mut self.global, 0).unwrap();
        self.settle();
        assert!(!self.database.is_at_work());
        self.stored = (0..KEYS / 2)
            .map(|number| (2 * number, number + 1))
            .collect();
    }

    fn start(&mut self, query: Query) {
        let token = self.queries.len() as u64;
        self.queries.push((query, self.stored.clone()));
        self.database
            .start(token, query, &mut self.global, self.now_ns);
        self.check();
    }

    fn complete(&mut self, place: usize) {
        self.now_ns += 1000;
        let (database, global) = (&mut self.database, &mut self.global);
        let credit = self.has_credit.then_some((self.now_ns / 1000 % 7) as u32);
        self.memory
            .complete(place, credit, database, global, self.now_ns);
        self.check();
    }

    /// Complete everything, until nothing is left.
    fn settle(&mut self) {
        self.memory.submit(&mut self.database);
        while !self.memory.in_flight.is_empty() {
            self.complete(0);
            self.memory.submit(&mut self.database);
        }
    }

    fn check(&mut self) {
        let from = self.finished.len();
        self.database.take_finished(&mut self.finished);
        for one in &self.finished[from..] {
            let (query, before) = &self.queries[one.token as usize];
            let is_recent = |key: u64, found: Option<u64>| {
                assert!(
                    found >= before.get(&key).copied(),
                    "{query:?} found {found:?}"
                );
            };
            match (query, &one.answer) {
                (Query::Put(key) | Query::ReadModifyWrite(key), Answer::Stored(sequence)) => {
                    let newest = self.stored.entry(*key).or_default();
                    *newest = (*newest).max(*sequence);
                }
                (Query::Get(key), Answer::Found(found)) => is_recent(*key, *found),
                (Query::Scan(key, count), Answer::Records(records)) => {
                    assert!(records.len() <= *count);
                    assert!(records.windows(2).all(|pair| pair[0].key < pair[1].key));
                    let found: BTreeMap<_, _> = records
                        .iter()
                        .map(|entry| (entry.key, entry.sequence))
                        .collect();
                    let is_whole = records.len() < *count;
                    let end = if is_whole {
                        u64::MAX
                    } else {
                        records[records.len() - 1].key
                    };
                    for (&key, _) in before.range(key..=&end) {
                        is_recent(key, found.get(&key).copied());
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Query(Query),
    Complete(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let query = prop_oneof![
        4 => (0..KEYS).prop_map(Query::Put),
        3 => (0..KEYS).prop_map(Query::Get),
        1 => (0..KEYS).prop_map(Query::ReadModifyWrite),
        1 => (0..KEYS, 1_usize..12).prop_map(|(key, count)| Query::Scan(key, count)),
    ];
    let step = prop_oneof![
        2 => query.prop_map(Step::Query),
        3 => any::<prop::sample::Index>().prop_map(Step::Complete),
    ];
    prop::collection::vec(step, 1..900)
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn reads_find_the_newest_value(steps in steps()) {
        let mut bench = Bench::new(TINY, 1 << 20);
        bench.load();
        for step in steps {
            match step {
                Step::Query(query) => bench.start(query),
                Step::Complete(which) if !bench.memory.in_flight.is_empty() => {
                    bench.complete(which.index(bench.memory.in_flight.len()));
                }
                Step::Complete(_) => {}
            }
            bench.memory.submit(&mut bench.database);
        }
        bench.settle();
        prop_assert_eq!(bench.finished.len(), bench.queries.len(), "every query is answered");
        let stored = bench.stored.clone();
        for key in 0..KEYS {
            bench.start(Query::Get(key));
            bench.settle();
            let answer = &bench.finished.last().unwrap().answer;
            prop_assert_eq!(answer, &Answer::Found(stored.get(&key).copied()));
        }
        prop_assert_eq!(bench.database.failure(), None);
    }
}

#[test]
fn puts_go_through_all_levels_and_space_is_used_again() {
    let mut bench = Bench::new(TINY, 256 << 10);
    bench.load();
    for round in 0..4000 {
        bench.start(Query::Put(round * 7 % KEYS));
        bench.settle();
    }
    let counters = bench.database.counters();
    assert_eq!(
        bench.database.failure(),
        None,
        "4000 puts are 1 MB on a pool of 750 KiB"
    );
    assert!(counters.compactions > 50, "{counters:?}");
    assert_eq!(counters.put_bytes, 4000 * 256);
    let amplification = counters.write_amplification().unwrap();
    assert!(
        amplification > 3.0,
        "log, flush and levels: {amplification}"
    );
    assert!(counters.compaction_read_bytes >= counters.compaction_written_bytes);
}

#[test]
fn writers_wait_for_flushes_when_memtables_are_full() {
    let mut bench = Bench::new(TINY, 1 << 20);
    bench.has_credit = false;
    for key in 0..60 {
        bench.start(Query::Put(key % KEYS));
        bench.memory.submit(&mut bench.database);
        let is_append = |io: &Io| io.priority == Priority::High;
        while let Some(place) = bench.memory.in_flight.iter().position(is_append) {
            bench.complete(place);
            bench.memory.submit(&mut bench.database);
        }
    }
    // Two memtables of 16 records: without a flush no more fits.
    assert_eq!(bench.finished.len(), 32);
    assert_eq!(bench.database.counters().stalled_puts, 28);
    bench.settle();
    assert_eq!(bench.finished.len(), 60);
}

#[test]
fn a_drive_that_is_lost_leaves_reads_and_ends_writes_with_its_number() {
    let mut bench = Bench::new(TINY, 1 << 20);
    bench.load();
    bench.memory.down = vec![1];
    bench
        .database
        .fail_drive(DriveId(1), &mut bench.global, bench.now_ns);
    for key in (0..KEYS).step_by(2) {
        bench.start(Query::Get(key));
        bench.settle();
        assert!(matches!(
            bench.finished.last().unwrap().answer,
            Answer::Found(Some(_))
        ));
    }
    let mut failures = Vec::new();
    for key in 0..40 {
        let token = 1000 + key;
        bench
            .database
            .start(token, Query::Put(key), &mut bench.global, bench.now_ns);
        bench.memory.submit(&mut bench.database);
        while !bench.memory.in_flight.is_empty() {
            let (database, global) = (&mut bench.database, &mut bench.global);
            bench
                .memory
                .complete(0, None, database, global, bench.now_ns);
            bench.memory.submit(&mut bench.database);
        }
        bench.database.take_finished(&mut failures);
    }
    assert_eq!(failures.len(), 40);
    let last = &failures[39].answer;
    let Answer::Failed(what) = last else {
        panic!("{last:?}")
    };
    assert!(what.contains("a write failed on drives [1]"), "{what}");
}

#[test]
fn a_pool_that_is_full_says_so() {
    let mut bench = Bench::new(TINY, 64 << 10);
    let more = 0..4 * KEYS;
    let refusal = bench.database.load(more, &mut bench.global, 0).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("no space for a blob of 16384 bytes"),
        "{refusal}"
    );
    let free = (0..3).map(|drive| bench.global.free_units(DriveId(drive)));
    assert_eq!(free.sum::<usize>(), 3, "what was taken for it came back");
}

#[test]
fn bytes_behind_the_last_record_are_compared_too() {
    let pool = drives(3, 3, 1 << 20);
    let mut global = GlobalAllocator::new(SMALL, &pool).unwrap();
    let client = Client::new(ClientOptions::default(), pool.len());
    let mut database = Database::new(TINY, client, &global).unwrap();
    // One record of 256 bytes in a block of 512.
    database.load(0..1, &mut global, 0).unwrap();
    let io = database.next_io().unwrap();
    let mut block = vec![0xff; io.bytes as usize];
    database.fill(&io, &mut block);
    assert_eq!(database.verify(&io, &block), Ok(()));
    block[300] = 7;
    let said = database.verify(&io, &block).unwrap_err();
    assert_eq!(
        said,
        "byte 44 behind the last record is 0x07, not 0 as it was written"
    );
}

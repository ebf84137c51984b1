//! Workloads: ratios, popularity, determinism.

use std::collections::BTreeMap;

use blobstore::{key_of, Mix, Query, Workload, YCSB};

const OPERATIONS: usize = 40_000;

fn counts(letter: &str) -> [f64; 4] {
    let mut workload = Workload::new(&Mix::ycsb(letter).unwrap(), 10_000, 7).unwrap();
    let mut counts = [0; 4];
    for _ in 0..OPERATIONS {
        counts[match workload.draw() {
            Query::Get(_) => 0,
            Query::Put(_) => 1,
            Query::Scan(_, count) => {
                assert!((1..=100).contains(&count));
                2
            }
            Query::ReadModifyWrite(_) => 3,
        }] += 1;
    }
    counts.map(|count| f64::from(count) / OPERATIONS as f64)
}

#[test]
fn the_mixes_have_the_published_ratios() {
    for (letter, expected) in [
        ("a", [0.5, 0.5, 0.0, 0.0]),
        ("b", [0.95, 0.05, 0.0, 0.0]),
        ("c", [1.0, 0.0, 0.0, 0.0]),
        ("d", [0.95, 0.05, 0.0, 0.0]),
        ("e", [0.0, 0.05, 0.95, 0.0]),
        ("f", [0.5, 0.0, 0.0, 0.5]),
    ] {
        for (share, expected) in counts(letter).into_iter().zip(expected) {
            assert!(
                (share - expected).abs() < 0.01,
                "{letter}: {share} is not {expected}"
            );
        }
    }
    assert_eq!(YCSB.len(), 6);
}

#[test]
fn popularity_follows_the_law_of_zipf() {
    let records = 1000;
    let mut workload = Workload::new(&Mix::ycsb("c").unwrap(), records, 3).unwrap();
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    for _ in 0..OPERATIONS {
        let Query::Get(key) = workload.draw() else {
            panic!("it only reads")
        };
        *seen.entry(key).or_default() += 1;
    }
    // The share of the most popular record: 1 / sum of 1/k^0.99, a little more where others are hashed onto it.
    let harmonic: f64 = (1..=records).map(|rank| (rank as f64).powf(-0.99)).sum();
    let hottest = key_of(key_of(0) % records);
    let share = f64::from(seen[&hottest]) / OPERATIONS as f64;
    assert!(
        (0.95 / harmonic..1.3 / harmonic).contains(&share),
        "{share} of {}",
        1.0 / harmonic
    );
    assert_eq!(seen.values().max(), seen.get(&hottest));
    let known: std::collections::BTreeSet<_> = (0..records).map(key_of).collect();
    assert!(seen.keys().all(|key| known.contains(key)));
}

#[test]
fn the_latest_records_are_read_most_and_inserts_are_new() {
    let mut workload = Workload::new(&Mix::ycsb("d").unwrap(), 100, 1).unwrap();
    let mut newest = 100;
    let mut of_the_last_ten = 0;
    for _ in 0..1000 {
        match workload.draw() {
            Query::Put(key) => {
                assert_eq!(key, key_of(newest));
                newest += 1;
            }
            Query::Get(key) => {
                of_the_last_ten +=
                    u32::from((newest - 10..newest).any(|record| key_of(record) == key));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(of_the_last_ten > 400, "{of_the_last_ten}");
}

#[test]
fn a_seed_gives_the_same_again_and_bad_input_is_refused() {
    let ten = |seed| {
        let mut workload = Workload::new(&Mix::ycsb("f").unwrap(), 100, seed).unwrap();
        (0..10).map(|_| workload.draw()).collect::<Vec<_>>()
    };
    assert_eq!(ten(1), ten(1));
    assert_ne!(ten(1), ten(2));
    let half = Mix {
        read: 0.5,
        ..Mix::default()
    };
    let said = Workload::new(&half, 1, 0).unwrap_err().to_string();
    assert!(said.contains("add up to 0.5"), "{said}");
    assert!(Workload::new(&Mix::ycsb("c").unwrap(), 0, 0).is_err());
    let said = Mix::ycsb("g").unwrap_err().to_string();
    assert!(said.contains("give a, b, c, d, e or f"), "{said}");
}

//! The allocator: no overlaps, replicas apart, nothing lost.

use std::collections::BTreeSet;

use blobstore::{DriveId, Extent, GlobalAllocator, Layout, LocalAllocator, Refusal};
use proptest::prelude::*;

use crate::bench::{cases, drives, SMALL};

#[derive(Debug, Clone)]
enum Step {
    Allocate(usize),
    Free(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0_usize..3).prop_map(Step::Allocate),
        2 => any::<prop::sample::Index>().prop_map(Step::Free),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn blobs_never_overlap_and_nothing_is_lost(
        steps in steps(),
        count in 2_u32..6,
        boxes in 1_u32..4,
        replicas in 1_usize..3,
        units in 1_u64..5,
    ) {
        let layout = Layout { replicas, ..SMALL };
        let pool = drives(count, boxes.min(count), units * layout.unit_bytes + 512);
        let mut global = GlobalAllocator::new(layout, &pool).unwrap();
        let mut clients = vec![LocalAllocator::new(); 3];
        let mut held: Vec<(usize, Vec<Extent>)> = Vec::new();
        let mut taken = BTreeSet::new();
        for step in steps {
            match step {
                Step::Allocate(client) => match clients[client].allocate(&mut global) {
                    Ok(extents) => {
                        prop_assert_eq!(extents.len(), replicas);
                        let apart: BTreeSet<_> = extents.iter().map(|one| one.drive).collect();
                        prop_assert_eq!(apart.len(), replicas, "replicas on different drives");
                        for extent in &extents {
                            prop_assert!(taken.insert(*extent), "{extent:?} is in use");
                            prop_assert_eq!(extent.offset % layout.blob_bytes, 0);
                            let end = extent.offset + layout.blob_bytes;
                            prop_assert!(end <= pool[extent.drive.index()].bytes);
                        }
                        held.push((client, extents));
                    }
                    Err(Refusal::Full { with_space, .. }) => prop_assert!(with_space < replicas),
                    Err(other) => prop_assert!(false, "{}", other),
                },
                Step::Free(which) if !held.is_empty() => {
                    let (client, extents) = held.swap_remove(which.index(held.len()));
                    clients[client].free(&extents, &mut global).unwrap();
                    prop_assert!(clients[client].free(&extents, &mut global).is_err());
                    for extent in &extents {
                        taken.remove(extent);
                    }
                }
                Step::Free(_) => {}
            }
        }
        for (client, extents) in held {
            clients[client].free(&extents, &mut global).unwrap();
        }
        for number in 0..count {
            prop_assert_eq!(global.free_units(DriveId(number)) as u64, units, "all came back");
        }
        prop_assert!(clients.iter().all(|client| client.units() == 0));
    }
}

#[test]
fn a_pool_is_used_up_and_used_again() {
    let mut global = GlobalAllocator::new(SMALL, &drives(2, 2, 2 * SMALL.unit_bytes)).unwrap();
    let mut client = LocalAllocator::new();
    let blobs: Vec<_> = (0..8)
        .map(|_| client.allocate(&mut global).unwrap())
        .collect();
    let full = client.allocate(&mut global).unwrap_err();
    assert_eq!(
        full.to_string(),
        "no space for a blob of 16384 bytes: 0 of 2 drives have some, its replicas need 2"
    );
    client.free(&blobs[3], &mut global).unwrap();
    let mut again = client.allocate(&mut global).unwrap();
    again.sort();
    let mut before = blobs[3].clone();
    before.sort();
    assert_eq!(again, before);
}

#[test]
fn replicas_lie_in_different_boxes_and_every_pair_of_drives_has_some() {
    let mut global = GlobalAllocator::new(SMALL, &drives(4, 2, 64 * SMALL.unit_bytes)).unwrap();
    let mut client = LocalAllocator::new();
    let mut pairs = BTreeSet::new();
    let mut first = [0; 4];
    for _ in 0..120 {
        let extents = client.allocate(&mut global).unwrap();
        let (a, b) = (extents[0].drive.0, extents[1].drive.0);
        assert_ne!(a % 2, b % 2, "boxes");
        first[a as usize] += 1;
        pairs.insert((a, b));
    }
    assert_eq!(first, [30; 4], "first replicas are spread evenly");
    assert_eq!(pairs.len(), 8, "{pairs:?}");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let two = drives(2, 1, 1 << 20);
    for (layout, part) in [
        (
            Layout {
                blob_bytes: 1000,
                ..SMALL
            },
            "blob_bytes is 1000",
        ),
        (
            Layout {
                unit_bytes: 20 << 10,
                ..SMALL
            },
            "unit_bytes is 20480",
        ),
        (
            Layout {
                replicas: 0,
                ..SMALL
            },
            "replicas is 0",
        ),
        (
            Layout {
                replicas: 3,
                ..SMALL
            },
            "3 replicas need as many drives",
        ),
        (
            Layout {
                unit_bytes: 2 << 20,
                ..SMALL
            },
            "0 of 2 are so large",
        ),
    ] {
        let refusal = GlobalAllocator::new(layout, &two).unwrap_err().to_string();
        assert!(refusal.contains(part), "{refusal}");
    }
    let mut global = GlobalAllocator::new(SMALL, &two).unwrap();
    let unit = global.take(DriveId(0)).unwrap();
    global.give_back(unit).unwrap();
    assert!(global.give_back(unit).is_err());
}

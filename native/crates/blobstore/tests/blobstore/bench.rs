//! Drives of memory, and random orders of completion.

use std::collections::BTreeMap;

use blobstore::{Database, GlobalAllocator, Io, Layout, PoolDrive};
use proptest::prelude::*;
use schedulers::{Operation, Outcome};

/// Cases of a property test.
pub fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A small layout: units of 64 KiB, blobs of 16 KiB.
pub const SMALL: Layout = Layout {
    unit_bytes: 64 << 10,
    blob_bytes: 16 << 10,
    replicas: 2,
};

/// Drives of `bytes` in boxes, one drive after the other in turns.
pub fn drives(count: u32, boxes: u32, bytes: u64) -> Vec<PoolDrive> {
    let drive = |number| PoolDrive {
        in_box: number % boxes,
        bytes,
    };
    (0..count).map(drive).collect()
}

/// The bytes of some drives, and the requests that they have not completed.
#[derive(Default)]
pub struct Memory {
    bytes: BTreeMap<(u32, u64), Vec<u8>>,
    pub in_flight: Vec<Io>,
    pub down: Vec<u32>,
}

impl Memory {
    /// Take everything that the database sends.
    pub fn submit(&mut self, database: &mut Database) {
        while let Some(io) = database.next_io() {
            self.in_flight.push(io);
        }
    }

    /// Carry out and complete the request at a place; the content of reads is verified.
    pub fn complete(
        &mut self,
        place: usize,
        credit: Option<u32>,
        database: &mut Database,
        global: &mut GlobalAllocator,
        now_ns: u64,
    ) {
        let io = self.in_flight.swap_remove(place);
        if self.down.contains(&io.drive.0) {
            return database.complete(io.id, Outcome::Failed, credit, global, now_ns);
        }
        const SECTOR: usize = 512;
        let places = |number: usize| (io.drive.0, io.offset + (number * SECTOR) as u64);
        let mut buffer = vec![0; io.bytes as usize];
        if io.operation == Operation::Write {
            database.fill(&io, &mut buffer);
            for (number, part) in buffer.chunks(SECTOR).enumerate() {
                self.bytes.insert(places(number), part.to_vec());
            }
        } else {
            for (number, part) in buffer.chunks_mut(SECTOR).enumerate() {
                part.copy_from_slice(&self.bytes[&places(number)]);
            }
            database.verify(&io, &buffer).unwrap();
        }
        database.complete(io.id, Outcome::Succeeded, credit, global, now_ns);
    }
}

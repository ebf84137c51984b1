//! The cost of identified sectors, compared with the minimum: one CRC-32C and one copy of the same bytes.

use std::hint::black_box;

use blockdev::Buffer;
use sector::{Drive, Expected, Verdict, SECTOR_BYTES};
use serde_json::{json, Value};

use crate::cli::BenchArgs;
use crate::clock::thread_cpu_ns;
use crate::failure::Failure;
use crate::tally::Tally;

/// `rackprobe bench`: the median CPU time of each pass over the buffer, on this thread alone.
pub fn run(args: &BenchArgs) -> Result<Value, Failure> {
    let drive = Drive::new("BENCH").map_err(|error| Failure::BadInput(error.to_string()))?;
    let mut expected = Expected {
        drive,
        generation: 0,
        seed: Some(1),
    };
    let mut buffer = Buffer::new(args.bytes as usize);
    let mut copy = Buffer::new(args.bytes as usize);
    let (mut write_ns, mut verify_ns, mut peer_ns) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        expected.generation = round.into();
        write_ns.push(time(|| {
            sector::fill(buffer.as_mut(), &expected.drive, 0, expected.generation, 1)
        }));
        let mut tally = Tally::default();
        verify_ns.push(time(|| {
            tally = Tally::of_block(buffer.as_ref(), 0, &expected)
        }));
        if tally.of(Verdict::Right) != args.bytes / SECTOR_BYTES as u64 {
            return Err(Failure::Target(
                "the buffer did not keep what was written: memory is at fault".to_owned(),
            ));
        }
        peer_ns.push(time(|| {
            for (from, to) in buffer
                .as_ref()
                .chunks(SECTOR_BYTES)
                .zip(copy.as_mut().chunks_mut(SECTOR_BYTES))
            {
                to.copy_from_slice(from);
                black_box(crc32c::crc32c(to));
            }
        }));
    }
    let (write_ns, verify_ns, peer_ns) = (median(write_ns), median(verify_ns), median(peer_ns));
    Ok(json!({
        "bytes": args.bytes,
        "rounds": args.rounds,
        "write_ns": write_ns,
        "verify_ns": verify_ns,
        "copy_and_crc_ns": peer_ns,
    }))
}

/// Measures CPU time, not elapsed time: the speed of one core, whatever else runs on the machine.
fn time(act: impl FnOnce()) -> u64 {
    let start_ns = thread_cpu_ns();
    act();
    thread_cpu_ns() - start_ns
}

fn median(mut times_ns: Vec<u64>) -> u64 {
    times_ns.sort_unstable();
    times_ns[times_ns.len() / 2]
}

//! Bulk writes and verification of identified sectors at a queue depth.

use std::collections::{BTreeMap, HashMap};

use blockdev::Buffer;
use nbd::Patience;
use sector::{Verdict, SECTOR_BYTES};
use serde_json::{json, Value};

use crate::cli::{Range, VerifyArgs, WriteArgs};
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::io::{Access, Broken, Done, Request};
use crate::tally::Tally;
use crate::target::Target;

/// Maximum number of ranges that are described one by one.
const MOST_RANGES: usize = 1000;

/// `rackprobe write`.
pub fn write(args: &WriteArgs) -> Result<Value, Failure> {
    let drive = args.permission.drive()?;
    let mut target = Target::open(
        &args.target,
        args.permission.access(),
        args.queue.queue_depth,
    )?;
    args.range.check(&target)?;
    let start_ns = now_ns();
    let request = |lba: u64, mut buffer: Buffer| {
        sector::fill(
            buffer.as_mut(),
            &drive,
            lba,
            args.identity.generation,
            args.identity.seed,
        );
        Request::Write(lba * SECTOR_BYTES as u64, buffer)
    };
    let mut failed = None;
    for_each_block(
        &mut target,
        &args.range,
        args.queue.queue_depth,
        request,
        |lba, done| {
            if let (Err(error), None) = (&done.result, &failed) {
                failed = Some(format!(
                    "{}: the write at sector {lba} failed: {error}",
                    args.target
                ));
            }
            failed.is_none()
        },
    )?;
    if let Some(message) = failed {
        return Err(Failure::Target(message));
    }
    flush(&mut target)?;
    let elapsed_ns = now_ns() - start_ns;
    Ok(json!({
        "sectors": args.range.sectors,
        "start_lba": args.range.start_lba,
        "serial": drive.serial(),
        "generation": args.identity.generation,
        "seed": args.identity.seed,
        "bytes": args.range.bytes(),
        "elapsed_ns": elapsed_ns,
    }))
}

/// `rackprobe verify`: returns the result, and whether every sector was right.
pub fn verify(args: &VerifyArgs) -> Result<(Value, bool), Failure> {
    let expected = args.expected.expected()?;
    let mut target = Target::open(&args.target, Access::Read, args.queue.queue_depth)?;
    args.range.check(&target)?;
    let start_ns = now_ns();
    let mut tally = Tally::default();
    let mut unreadable = Unreadable::default();
    let request = |lba: u64, buffer| Request::Read(lba * SECTOR_BYTES as u64, buffer);
    for_each_block(
        &mut target,
        &args.range,
        args.queue.queue_depth,
        request,
        |lba, done| {
            let block = done.buffer.as_ref().map_or(&[][..], AsRef::as_ref);
            match &done.result {
                Ok(()) => tally.add(&Tally::of_block(block, lba, &expected)),
                Err(error) => unreadable.add(lba, (block.len() / SECTOR_BYTES) as u64, error),
            }
            true
        },
    )?;
    let elapsed_ns = now_ns() - start_ns;
    let result = json!({
        "sectors": args.range.sectors,
        "start_lba": args.range.start_lba,
        "verdicts": tally.verdicts(),
        "offenders": tally.offenders(),
        "unreadable_sectors": unreadable.sectors,
        "unreadable": unreadable.ranges(),
        "bytes": args.range.bytes(),
        "elapsed_ns": elapsed_ns,
    });
    Ok((result, tally.of(Verdict::Right) == args.range.sectors))
}

/// Sectors that could not be read. Neighbours with one cause are one range: a drive that answers nothing has few.
#[derive(Default)]
struct Unreadable {
    sectors: u64,
    /// By their first sectors, the count and the cause of each.
    ranges: BTreeMap<u64, (u64, String)>,
}

impl Unreadable {
    fn add(&mut self, lba: u64, sectors: u64, error: &str) {
        self.sectors += sectors;
        let (mut begin, mut end) = (lba, lba + sectors);
        let before = self.ranges.range(..lba).next_back();
        if let Some((&first, (count, cause))) = before {
            if first + count == lba && cause == error {
                begin = first;
            }
        }
        if self
            .ranges
            .get(&end)
            .is_some_and(|(_, cause)| cause == error)
        {
            end += self.ranges.remove(&end).map_or(0, |(count, _)| count);
        }
        if begin < lba || self.ranges.len() < MOST_RANGES {
            self.ranges.insert(begin, (end - begin, error.to_owned()));
        }
    }

    fn ranges(&self) -> Vec<Value> {
        let ranges = self.ranges.iter();
        ranges
            .map(|(lba, (sectors, error))| json!({"lba": lba, "sectors": sectors, "error": error}))
            .collect()
    }
}

/// Keep `depth` blocks of the range in flight. `request` makes each request of a block's address and a buffer,
/// `finish` handles the completed request and returns whether to continue.
fn for_each_block(
    target: &mut Target,
    range: &Range,
    depth: usize,
    request: impl Fn(u64, Buffer) -> Request,
    mut finish: impl FnMut(u64, &Done) -> bool,
) -> Result<(), Failure> {
    let block = range.block_sectors();
    let end = range.start_lba + range.sectors;
    let mut next = range.start_lba;
    let mut in_flight = HashMap::new();
    let mut spare: Vec<Buffer> = Vec::new();
    let mut go_on = true;
    let broken = |name: &str, error: Broken| Failure::Target(format!("{name}: {error}"));
    let name = target.name().to_owned();
    while !in_flight.is_empty() || (go_on && next < end) {
        while go_on && next < end && in_flight.len() < depth {
            let sectors = block.min(end - next);
            let mut buffer = spare
                .pop()
                .unwrap_or_else(|| Buffer::new(block as usize * SECTOR_BYTES));
            buffer.truncate(sectors as usize * SECTOR_BYTES);
            let id = target
                .submit(request(next, buffer))
                .map_err(|error| broken(&name, error))?;
            in_flight.insert(id, next);
            next += sectors;
        }
        let done = target
            .receive(Patience::WITHOUT_END)
            .map_err(|error| broken(&name, error))?;
        let Some(done) = done else {
            continue;
        };
        if let Some(lba) = in_flight.remove(&done.id) {
            go_on &= finish(lba, &done);
        }
        spare.extend(done.buffer);
    }
    Ok(())
}

fn flush(target: &mut Target) -> Result<(), Failure> {
    if !target.can_flush() {
        return Ok(());
    }
    let done = target
        .submit(Request::Flush)
        .and_then(|_| target.receive(Patience::WITHOUT_END));
    let result = done
        .map_err(|error| error.to_string())
        .and_then(|done| done.map_or(Ok(()), |done| done.result));
    result.map_err(|error| Failure::Target(format!("{}: the flush failed: {error}", target.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_neighbours_with_one_cause_are_one_range() {
        let mut unreadable = Unreadable::default();
        for lba in [4, 0, 8, 2, 10, 6] {
            unreadable.add(lba, 2, if lba < 8 { "gone" } else { "bad" });
        }
        let range = |lba, sectors, error| json!({"lba": lba, "sectors": sectors, "error": error});
        let expected = [range(0, 8, "gone"), range(8, 4, "bad")];
        assert_eq!(
            (unreadable.sectors, unreadable.ranges()),
            (12, expected.into())
        );
    }

    #[test]
    fn ranges_have_a_limit_and_sectors_are_counted_beyond_it() {
        let mut unreadable = Unreadable::default();
        for number in 0..2 * MOST_RANGES as u64 {
            unreadable.add(2 * number, 1, "bad");
        }
        unreadable.add(1, 1, "bad");
        assert_eq!(unreadable.ranges().len(), MOST_RANGES - 1);
        assert_eq!(unreadable.sectors, 2 * MOST_RANGES as u64 + 1);
    }
}

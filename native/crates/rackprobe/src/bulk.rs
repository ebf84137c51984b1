//! Bulk writes and verification of identified sectors at a queue depth.

use std::collections::HashMap;

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
    let mut unreadable = Vec::new();
    let mut unreadable_sectors = 0;
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
                Err(error) => {
                    let sectors = block.len() / SECTOR_BYTES;
                    unreadable_sectors += sectors;
                    unreadable.push(json!({"lba": lba, "sectors": sectors, "error": error}));
                }
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
        "unreadable_sectors": unreadable_sectors,
        "unreadable": unreadable,
        "bytes": args.range.bytes(),
        "elapsed_ns": elapsed_ns,
    });
    Ok((result, tally.of(Verdict::Right) == args.range.sectors))
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

//! The worst case for a switched drive: one read, then another drive behind the port, then the next read.

use std::collections::HashMap;

use blockdev::Buffer;
use nbd::Patience;
use sector::{Expected, SECTOR_BYTES};
use serde::Deserialize;
use serde_json::json;

use crate::cli::{Range, SwapArgs};
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::io::{Access, Done, Request};
use crate::lines::{commands, emit};
use crate::remap::Expect;
use crate::tally::Tally;
use crate::target::Target;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum SwapCommand {
    Next {
        expect: Option<Expect>,
        lba: Option<u64>,
        block: Option<u64>,
    },
    Quit {},
}

/// The first sector of a read, and its length in sectors.
#[derive(Clone, Copy)]
struct Place {
    lba: u64,
    sectors: u64,
}

/// `rackprobe swap`.
pub fn run(args: &SwapArgs) -> Result<(), Failure> {
    let mut expected = args.expected.expected()?;
    let mut target = Target::open(&args.target, Access::Read, 1)?;
    args.range.check(&target)?;
    let block = args.range.block_sectors();
    let blocks = args.range.sectors / block;
    if blocks == 0 {
        return Err(Failure::BadInput(format!(
            "--sectors {} is less than one --block of {block} sectors",
            args.range.sectors
        )));
    }
    let mut commands = commands::<SwapCommand>();
    let mut tally = Tally::default();
    // One buffer for each read length: page faults in new memory cost a long read milliseconds.
    let mut buffers = HashMap::from([(block, Buffer::new(args.range.block as usize))]);
    let (mut reads, mut errors, mut sectors) = (0, 0, 0);
    emit(&json!({"event": "ready", "t_ns": now_ns()}));
    let start_ns = now_ns();
    let mut place = None;
    for n in 0..args.reads {
        let at = place.take().unwrap_or(Place {
            lba: args.range.start_lba + n % blocks * block,
            sectors: block,
        });
        let bytes = at.sectors as usize * SECTOR_BYTES;
        let buffer = buffers
            .remove(&at.sectors)
            .unwrap_or_else(|| Buffer::new(bytes));
        let done = read(&mut target, at.lba, buffer)?;
        let mut verdicts = Tally::default();
        let buffer = done.buffer.unwrap_or_else(|| Buffer::new(bytes));
        if done.result.is_ok() {
            verdicts = Tally::of_block(buffer.as_ref(), at.lba, &expected);
            tally.add(&verdicts);
            reads += 1;
            sectors += at.sectors;
        } else {
            errors += 1;
        }
        buffers.insert(at.sectors, buffer);
        if args.no_swap {
            continue;
        }
        emit(&json!({
            "event": "read_done",
            "n": n,
            "lba": at.lba,
            "submit_ns": done.submit_ns,
            "t_ns": done.complete_ns,
            "error": done.result.err(),
            "verdicts": verdicts.verdicts(),
            "offenders": verdicts.offenders(),
        }));
        if n + 1 < args.reads && !next(&mut commands, &args.range, &mut expected, &mut place) {
            break;
        }
    }
    let elapsed_ns = now_ns() - start_ns;
    emit(&json!({
        "event": "result",
        "reads": reads,
        "errors": errors,
        "bytes": sectors * SECTOR_BYTES as u64,
        "elapsed_ns": elapsed_ns,
        "verdicts": tally.verdicts(),
        "offenders": tally.offenders(),
    }));
    Ok(())
}

fn read(target: &mut Target, lba: u64, buffer: Buffer) -> Result<Done, Failure> {
    let request = Request::Read(lba * SECTOR_BYTES as u64, buffer);
    let done = target.submit(request).and_then(|_| loop {
        // Ports are read side by side: several that spin would take the cores from each other, and from their server.
        if let Some(done) = target.receive(Patience::WITHOUT_END)? {
            break Ok(done);
        }
    });
    done.map_err(|error| Failure::Target(format!("{}: {error}", target.name())))
}

/// Wait for the command that the next drive is mapped. `false`: no more reads are wanted.
fn next(
    commands: &mut impl Iterator<Item = Result<SwapCommand, String>>,
    range: &Range,
    expected: &mut Expected,
    place: &mut Option<Place>,
) -> bool {
    loop {
        let refused = match commands.next() {
            None | Some(Ok(SwapCommand::Quit {})) => return false,
            Some(Ok(SwapCommand::Next { expect, lba, block })) => {
                let taken = placed(range, lba, block)
                    .and_then(|at| Ok((at, expect.map(Expect::try_into).transpose()?)));
                match taken {
                    Ok((at, drive)) => {
                        *place = at;
                        if let Some(drive) = drive {
                            *expected = drive;
                        }
                        return true;
                    }
                    Err(message) => message,
                }
            }
            Some(Err(message)) => message,
        };
        emit(&json!({"event": "error", "id": null, "message": refused}));
    }
}

/// The next read's place, if it has one of its own; refused outside the range, or if longer than `--block`.
fn placed(range: &Range, lba: Option<u64>, block: Option<u64>) -> Result<Option<Place>, String> {
    let Some(lba) = lba else {
        return match block {
            Some(_) => Err("a read with a block of its own needs an lba".to_owned()),
            None => Ok(None),
        };
    };
    let bytes = block.unwrap_or(range.block);
    let sectors = bytes / SECTOR_BYTES as u64;
    if bytes == 0 || bytes % SECTOR_BYTES as u64 != 0 || bytes > range.block {
        return Err(format!(
            "a block of {bytes} bytes is no multiple of {SECTOR_BYTES} up to --block, {} bytes",
            range.block
        ));
    }
    let (first, end) = (range.start_lba, range.start_lba + range.sectors);
    let last = lba.checked_add(sectors);
    if lba < first || last.is_none_or(|last| last > end) {
        return Err(format!(
            "a block of {sectors} sectors at {lba} is not in sectors {first} to {end}"
        ));
    }
    Ok(Some(Place { lba, sectors }))
}

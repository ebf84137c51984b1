//! The worst case for a switched drive: one read, then another drive behind the port, then the next read.

use std::collections::HashMap;

use blockdev::Buffer;
use nbd::Patience;
use sector::{Expected, SECTOR_BYTES};
use serde::Deserialize;
use serde_json::json;

use crate::cli::{Range, SwapArgs};
use crate::clock::{now_ns, sleep_until};
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
        pause_ns: Option<u64>,
    },
    Quit {},
}

/// The longest pause before a read.
const MOST_PAUSE_NS: u64 = 10_000_000_000;

/// The first sector of a read, and its length in sectors.
#[derive(Clone, Copy)]
struct Place {
    lba: u64,
    sectors: u64,
}

/// The next read as commanded: its place, where not that of its turn, and the pause after the one before.
#[derive(Default)]
struct Next {
    place: Option<Place>,
    pause_ns: Option<u64>,
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
    let mut next = Next::default();
    let mut ended_ns = start_ns;
    for n in 0..args.reads {
        let at = next.place.unwrap_or(Place {
            lba: args.range.start_lba + n % blocks * block,
            sectors: block,
        });
        let bytes = at.sectors as usize * SECTOR_BYTES;
        let buffer = buffers
            .remove(&at.sectors)
            .unwrap_or_else(|| Buffer::new(bytes));
        let due_ns = next.pause_ns.map(|pause_ns| ended_ns + pause_ns);
        if let Some(due_ns) = due_ns {
            sleep_until(due_ns, false);
        }
        let done = read(&mut target, at.lba, buffer)?;
        ended_ns = done.complete_ns;
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
            "due_ns": due_ns,
            "submit_ns": done.submit_ns,
            "t_ns": done.complete_ns,
            "error": done.result.err(),
            "verdicts": verdicts.verdicts(),
            "offenders": verdicts.offenders(),
        }));
        if n + 1 < args.reads {
            let Some(told) = commanded(&mut commands, &args.range, &mut expected) else {
                break;
            };
            next = told;
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

/// Wait for the command that the next drive is mapped. `None`: no more reads are wanted.
fn commanded(
    commands: &mut impl Iterator<Item = Result<SwapCommand, String>>,
    range: &Range,
    expected: &mut Expected,
) -> Option<Next> {
    loop {
        let refused = match commands.next() {
            None | Some(Ok(SwapCommand::Quit {})) => return None,
            Some(Ok(SwapCommand::Next {
                expect,
                lba,
                block,
                pause_ns,
            })) => {
                let taken = placed(range, lba, block)
                    .and_then(|place| paused(pause_ns).map(|pause_ns| Next { place, pause_ns }))
                    .and_then(|next| Ok((next, expect.map(Expect::try_into).transpose()?)));
                match taken {
                    Ok((next, drive)) => {
                        if let Some(drive) = drive {
                            *expected = drive;
                        }
                        return Some(next);
                    }
                    Err(message) => message,
                }
            }
            Some(Err(message)) => message,
        };
        emit(&json!({"event": "error", "id": null, "message": refused}));
    }
}

/// The pause before a read; refused where it is longer than any read is waited for.
fn paused(pause_ns: Option<u64>) -> Result<Option<u64>, String> {
    match pause_ns {
        Some(pause_ns) if pause_ns > MOST_PAUSE_NS => Err(format!(
            "a pause of {pause_ns} ns is longer than {MOST_PAUSE_NS} ns"
        )),
        pause_ns => Ok(pause_ns),
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

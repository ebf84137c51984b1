//! The worst case for a switched drive: one read, then another drive behind the port, then the next read.

use nbd::Patience;
use sector::{Expected, SECTOR_BYTES};
use serde::Deserialize;
use serde_json::json;

use crate::buffer::Buffer;
use crate::cli::{Range, SwapArgs};
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::lines::{commands, emit};
use crate::remap::Expect;
use crate::tally::Tally;
use crate::target::{Access, Done, Request, Target};

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum SwapCommand {
    Next {
        expect: Option<Expect>,
        lba: Option<u64>,
    },
    Quit {},
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
    let mut buffer = Buffer::new(args.range.block as usize);
    let (mut reads, mut errors) = (0, 0);
    emit(&json!({"event": "ready", "t_ns": now_ns()}));
    let start_ns = now_ns();
    let mut place = None;
    for n in 0..args.reads {
        let lba = place
            .take()
            .unwrap_or(args.range.start_lba + n % blocks * block);
        let done = read(&mut target, lba, buffer)?;
        let mut verdicts = Tally::default();
        buffer = done
            .buffer
            .unwrap_or_else(|| Buffer::new(args.range.block as usize));
        if done.result.is_ok() {
            verdicts = Tally::of_block(buffer.as_ref(), lba, &expected);
            tally.add(&verdicts);
            reads += 1;
        } else {
            errors += 1;
        }
        if args.no_swap {
            continue;
        }
        emit(&json!({
            "event": "read_done",
            "n": n,
            "lba": lba,
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
        "bytes": reads * args.range.block,
        "elapsed_ns": elapsed_ns,
        "verdicts": tally.verdicts(),
        "offenders": tally.offenders(),
    }));
    Ok(())
}

fn read(target: &mut Target, lba: u64, buffer: Buffer) -> Result<Done, Failure> {
    let patience = Patience {
        until: None,
        spin: true,
    };
    let request = Request::Read(lba * SECTOR_BYTES as u64, buffer);
    let done = target.submit(request).and_then(|_| loop {
        if let Some(done) = target.receive(patience)? {
            break Ok(done);
        }
    });
    done.map_err(|error| Failure::Target(format!("{}: {error}", target.name())))
}

/// Wait for the word that the next drive is there. `false`: no more reads are wanted.
fn next(
    commands: &mut impl Iterator<Item = Result<SwapCommand, String>>,
    range: &Range,
    expected: &mut Expected,
    place: &mut Option<u64>,
) -> bool {
    loop {
        let refused = match commands.next() {
            None | Some(Ok(SwapCommand::Quit {})) => return false,
            Some(Ok(SwapCommand::Next { expect, lba })) => match taken(range, expect, lba) {
                Ok(drive) => {
                    *place = lba;
                    if let Some(drive) = drive {
                        *expected = drive;
                    }
                    return true;
                }
                Err(message) => message,
            },
            Some(Err(message)) => message,
        };
        emit(&json!({"event": "error", "id": null, "message": refused}));
    }
}

/// Whom the next read is of, where that changes; refused where its block does not lie in the range.
fn taken(
    range: &Range,
    expect: Option<Expect>,
    lba: Option<u64>,
) -> Result<Option<Expected>, String> {
    let (first, end) = (range.start_lba, range.start_lba + range.sectors);
    let fits = |at: u64| {
        let last = at.checked_add(range.block_sectors());
        at >= first && last.is_some_and(|last| last <= end)
    };
    if let Some(lba) = lba.filter(|at| !fits(*at)) {
        return Err(format!(
            "a block of {} sectors at {lba} is not in sectors {first} to {end}",
            range.block_sectors()
        ));
    }
    expect.map(Expect::try_into).transpose()
}

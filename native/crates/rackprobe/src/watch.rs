//! I/O on an unchanged mapping: one request at a time, each latency recorded, each sector judged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use blockdev::Buffer;
use nbd::Patience;
use sector::{Expected, SECTOR_BYTES};
use serde_json::json;

use crate::cli::WatchArgs;
use crate::clock::{instant, now_ns, sleep_until};
use crate::failure::Failure;
use crate::identity::identified;
use crate::io::{Access, Broken, Done, Request};
use crate::lines::emit;
use crate::record::Record;
use crate::relate;
use crate::tally::Tally;
use crate::target::Target;

const NS_PER_MS: u64 = 1_000_000;
/// Interval of checks while a request is held, so that interval events and the end are on time.
const LOOK_NS: u64 = 10 * NS_PER_MS;

/// A running watch.
struct Watch<'a> {
    args: &'a WatchArgs,
    target: Target,
    expected: Expected,
    stop: Arc<AtomicBool>,
    end_ns: u64,
    submitted: u64,
    whole: Record,
    interval: Record,
    interval_end_ns: u64,
}

/// `rackprobe watch`. The result is printed even if the target failed.
pub fn run(args: &WatchArgs) -> Result<(), Failure> {
    let drive = if args.write {
        args.permission.drive()?
    } else {
        args.permission.named_drive()?
    };
    let access = if args.write {
        args.permission.access()
    } else {
        Access::Read
    };
    let target = Target::open(&args.target, access, 1)?;
    args.range.check(&target)?;
    let start_ns = now_ns();
    let mut watch = Watch {
        args,
        target,
        expected: Expected {
            drive,
            generation: args.generation,
            seed: args.seed.or(args.write.then_some(0)),
        },
        stop: stop_on_quit(),
        end_ns: args.duration_ms.map_or(u64::MAX, |ms| after(start_ns, ms)),
        submitted: 0,
        whole: Record::new(),
        interval: Record::new(),
        interval_end_ns: after(start_ns, args.interval_ms),
    };
    emit(&identified(json!({"event": "ready", "t_ns": start_ns})));
    let ended = watch.go_on();
    let end_ns = now_ns();
    let mut result = watch.whole.fields();
    result["event"] = json!("result");
    result["start_ns"] = json!(start_ns);
    result["t_ns"] = json!(end_ns);
    result["submitted"] = json!(watch.submitted);
    result["lost"] = json!(watch.submitted - watch.whole.completed());
    result["bins_ns"] = json!(watch.whole.bins_ns());
    emit(&result);
    ended.map_err(|error| Failure::Target(format!("{}: {error}", args.target)))
}

/// So many milliseconds after a time; those that the clock never reaches are its last.
fn after(at_ns: u64, ms: u64) -> u64 {
    at_ns.saturating_add(ms.saturating_mul(NS_PER_MS))
}

/// A flag that `quit` and the end of standard input set: a watch does not outlive its parent. Clock readings are answered.
fn stop_on_quit() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        relate::follow();
        flag.store(true, Ordering::Relaxed);
    });
    stop
}

impl Watch<'_> {
    /// Execute I/Os until the end; an I/O that is still held then and does not complete in time is abandoned.
    fn go_on(&mut self) -> Result<(), Broken> {
        let range = &self.args.range;
        let block = range.block.min(range.bytes());
        let sectors = block / SECTOR_BYTES as u64;
        // The last block of a round is what is left.
        let blocks = range.sectors.div_ceil(sectors);
        let mut buffer = Some(Buffer::new(block as usize));
        let mut next_ns = now_ns();
        for n in 0.. {
            if !self.wait_until(next_ns) {
                return Ok(());
            }
            next_ns = now_ns().max(next_ns.saturating_add(self.args.pace_us.saturating_mul(1000)));
            let first = n % blocks * sectors;
            let lba = self.args.range.start_lba + first;
            let offset = lba * SECTOR_BYTES as u64;
            let length = sectors.min(self.args.range.sectors - first) as usize * SECTOR_BYTES;
            let of_length = |buffer: Option<Buffer>| {
                let mut buffer = buffer.unwrap_or_else(|| Buffer::new(block as usize));
                buffer.resize(length);
                buffer
            };
            let mut lent = of_length(buffer.take());
            if self.args.write {
                self.expected.generation = self.args.generation + n / blocks;
                let seed = self.expected.seed.unwrap_or_default();
                sector::fill(
                    lent.as_mut(),
                    &self.expected.drive,
                    lba,
                    self.expected.generation,
                    seed,
                );
                let Some(written) = self.one(Request::Write(offset, lent))? else {
                    return Ok(());
                };
                let failed = written.result.is_err();
                lent = of_length(written.buffer);
                if failed {
                    buffer = Some(lent);
                    continue;
                }
            }
            let Some(read) = self.one(Request::Read(offset, lent))? else {
                return Ok(());
            };
            if let (Ok(()), Some(bytes)) = (&read.result, &read.buffer) {
                let tally = Tally::of_block(bytes.as_ref(), lba, &self.expected);
                self.whole.tally.add(&tally);
                self.interval.tally.add(&tally);
            }
            buffer = read.buffer;
        }
        Ok(())
    }

    /// One I/O, recorded. `None`: the watch is over and the I/O is lost.
    fn one(&mut self, request: Request) -> Result<Option<Done>, Broken> {
        self.submitted += 1;
        let id = self.target.submit(request)?;
        let mut give_up_ns = u64::MAX;
        loop {
            let look_ns = now_ns() + LOOK_NS;
            let patience = Patience {
                until: Some(instant(look_ns)),
                spin: self.args.spin,
            };
            if let Some(done) = self.target.receive(patience)?.filter(|done| done.id == id) {
                let bytes = done
                    .buffer
                    .as_ref()
                    .map_or(0, |buffer| buffer.as_ref().len() as u64);
                self.whole.add(&done, bytes);
                self.interval.add(&done, bytes);
                return Ok(Some(done));
            }
            if !self.goes_on() {
                give_up_ns = give_up_ns.min(after(look_ns, self.args.drain_ms));
            }
            if look_ns >= give_up_ns {
                return Ok(None);
            }
        }
    }

    /// Wait for the time of the next I/O. `false`: the watch is over.
    fn wait_until(&mut self, when_ns: u64) -> bool {
        while self.goes_on() {
            if now_ns() >= when_ns {
                return true;
            }
            sleep_until(when_ns.min(now_ns() + LOOK_NS), self.args.spin);
        }
        false
    }

    /// Whether the watch continues; prints each interval that has ended.
    fn goes_on(&mut self) -> bool {
        let now_ns = now_ns();
        if now_ns >= self.interval_end_ns {
            let mut interval = std::mem::replace(&mut self.interval, Record::new()).fields();
            interval["event"] = json!("interval");
            interval["t_ns"] = json!(now_ns);
            interval["in_flight"] = json!(self.submitted - self.whole.completed());
            emit(&interval);
            self.interval_end_ns = after(now_ns, self.args.interval_ms);
        }
        now_ns < self.end_ns && !self.stop.load(Ordering::Relaxed)
    }
}

//! Loads: closed and open loops of requests.

use racksim::{Completion, Kind, OnReadError, Request};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};

use crate::blocks::Blocks;
use crate::drive::Drive;
use crate::failure::Failure;
use crate::figures::{LoadResult, Meter};
use crate::load_document::{Amount, Arrivals, Load};

/// Maximum number of requests at one instant: with a drive that takes no time, a limit in time is never reached.
const TIMELESS: u64 = 1_000_000;

/// Run a load on a drive; nothing of it is in flight afterwards.
pub fn run<'a>(load: &'a Load, drive: &mut Drive, seed: u64) -> Result<LoadResult<'a>, Failure> {
    let mut run = Run::new(load, drive, seed);
    run.warm_up()?;
    run.measure()
}

/// A request in flight.
#[derive(Clone, Copy)]
struct InFlight {
    kind: Kind,
    submitted_ns: u64,
}

/// The end condition of a phase of a load.
struct End {
    amount: Amount,
    start_ns: u64,
    /// Requests of a phase that ends by their number.
    requests: u64,
}

struct Run<'l, 'd> {
    load: &'l Load,
    drive: &'d mut Drive,
    blocks: Blocks,
    gaps: Option<Exp<f64>>,
    rng: ChaCha8Rng,
    depth: usize,
    /// The arrival of the next request of an open loop.
    arrival_ns: f64,
    /// By ticket; unused ones are in `free`.
    in_flight: Vec<InFlight>,
    free: Vec<usize>,
    completions: Vec<Completion>,
}

impl End {
    fn of(amount: Amount, start_ns: u64, blocks: u64) -> Self {
        let requests = match amount {
            Amount::Requests(requests) => requests,
            Amount::Seconds(_) => u64::MAX,
            Amount::Passes(passes) => (passes * blocks as f64).ceil() as u64,
        };
        Self {
            amount,
            start_ns,
            requests,
        }
    }

    /// The end time of the phase.
    fn at_ns(&self) -> u64 {
        match self.amount {
            Amount::Seconds(seconds) => self.start_ns + (seconds * 1e9).round() as u64,
            _ => u64::MAX,
        }
    }

    /// Limit on submitted requests: a fixed number for passes, else none until the phase is over.
    fn submits(&self) -> u64 {
        match self.amount {
            Amount::Passes(_) => self.requests,
            _ => u64::MAX,
        }
    }
}

impl<'l, 'd> Run<'l, 'd> {
    fn new(load: &'l Load, drive: &'d mut Drive, seed: u64) -> Self {
        let (depth, gaps) = match load.arrivals {
            Arrivals::Depth(depth) => (depth, None),
            Arrivals::PerSecond(rate) => {
                let gaps = Exp::new(rate / 1e9).expect("the document's check: a rate above 0");
                (usize::MAX, Some(gaps))
            }
        };
        Self {
            blocks: Blocks::new(load, drive.bytes(), seed),
            gaps,
            // Separate from that of the blocks, so that both loops access the same blocks.
            rng: ChaCha8Rng::seed_from_u64(!seed),
            depth,
            arrival_ns: drive.now_ns() as f64,
            in_flight: Vec::new(),
            free: Vec::new(),
            completions: Vec::new(),
            load,
            drive,
        }
    }

    /// Run the unmeasured requests; those still in flight at the end continue into the measured phase.
    fn warm_up(&mut self) -> Result<(), Failure> {
        let Some(amount) = self.load.warm_up else {
            return Ok(());
        };
        self.phase(amount, None).map(|_| ())
    }

    /// Run the measured requests, then drain the drive.
    fn measure(mut self) -> Result<LoadResult<'l>, Failure> {
        let mut meter = Meter::new(self.drive.now_ns(), self.load.interval_s);
        let end_ns = self.phase(self.load.until, Some(&mut meter))?;
        while self.waiting() > 0 {
            self.drive.pass(None, &mut self.completions)?;
            self.settle(&mut None, 0)?;
        }
        Ok(meter.result(&self.load.name, end_ns))
    }

    /// Run until `amount` is done; returns the time.
    fn phase(&mut self, amount: Amount, mut meter: Option<&mut Meter>) -> Result<u64, Failure> {
        let end = End::of(amount, self.drive.now_ns(), self.blocks.count());
        let (mut submitted, mut completed) = (0, 0);
        while completed < end.requests {
            let may_submit = submitted < end.submits() && self.waiting() < self.depth;
            let arrival_ns = may_submit.then(|| self.next_arrival_ns());
            if arrival_ns.is_some_and(|at_ns| at_ns <= self.drive.now_ns()) {
                self.submit();
                submitted += 1;
                continue;
            }
            let end_ns = end.at_ns();
            let limit_ns = arrival_ns.unwrap_or(u64::MAX).min(end_ns);
            self.drive.pass(
                (limit_ns < u64::MAX).then_some(limit_ns),
                &mut self.completions,
            )?;
            completed += self.settle(&mut meter, end.requests - completed)?;
            if self.drive.now_ns() >= end_ns {
                return Ok(end_ns);
            }
            if completed > TIMELESS && self.drive.now_ns() == end.start_ns && end_ns < u64::MAX {
                return Err(Failure::BadInput(format!(
                    "experiment {:?}: this drive takes no time; say how much in requests or passes, not in seconds",
                    self.load.name
                )));
            }
        }
        Ok(self.drive.now_ns())
    }

    fn waiting(&self) -> usize {
        self.in_flight.len() - self.free.len()
    }

    fn next_arrival_ns(&self) -> u64 {
        if self.gaps.is_some() {
            self.arrival_ns.ceil() as u64
        } else {
            self.drive.now_ns()
        }
    }

    fn submit(&mut self) {
        if let Some(gaps) = &self.gaps {
            self.arrival_ns += gaps.sample(&mut self.rng);
        }
        let io = self.blocks.next();
        let now = InFlight {
            kind: io.kind,
            submitted_ns: self.drive.now_ns(),
        };
        let ticket = match self.free.pop() {
            Some(ticket) => {
                self.in_flight[ticket] = now;
                ticket
            }
            None => {
                self.in_flight.push(now);
                self.in_flight.len() - 1
            }
        };
        self.drive.submit(&Request {
            ticket: ticket as u64,
            io,
            fua: self.load.fua,
            on_read_error: if self.load.fail_fast {
                OnReadError::FailFast
            } else {
                OnReadError::Retry
            },
        });
    }

    /// Handle completions and count the first `wanted`; returns how many there were.
    fn settle(&mut self, meter: &mut Option<&mut Meter>, wanted: u64) -> Result<u64, Failure> {
        let mut counted = 0;
        for done in self.completions.drain(..) {
            let ticket = done.ticket as usize;
            let InFlight { kind, submitted_ns } = self.in_flight[ticket];
            self.free.push(ticket);
            if counted == wanted {
                continue;
            }
            counted += 1;
            if let Some(meter) = meter {
                if done.failed_at.is_some() {
                    meter.count_error();
                } else {
                    let latency_ns = done.at_ns - submitted_ns;
                    meter.count(kind, self.load.block_bytes, latency_ns, done.at_ns)?;
                }
            }
        }
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Dead, InOrder, BAD};
    use serde_json::{json, Value};

    const BYTES: u64 = 4 << 20;

    fn run_on(drive: &mut Drive, keys: Value) -> Result<Value, Failure> {
        let mut document = json!({
            "name": "x", "pattern": "random", "block_bytes": 4096, "arrivals": {"depth": 1},
            "region": {"offset": 0, "length": BAD},
        });
        let keys = keys.as_object().unwrap().clone();
        document.as_object_mut().unwrap().extend(keys);
        let load: Load = serde_json::from_value(document).unwrap();
        run(&load, drive, 7).map(|result| serde_json::to_value(result).unwrap())
    }

    /// A drive that takes 100 us for a read and 300 us for anything else, one after the other.
    fn drive() -> Drive {
        let cost_ns = |request: &Request, _| match request.io.kind {
            Kind::Read => 100_000,
            _ => 300_000,
        };
        Drive::new(Box::new(InOrder::new(cost_ns)), BYTES)
    }

    #[test]
    fn a_closed_loop_keeps_its_depth() {
        let result = run_on(
            &mut drive(),
            json!({"arrivals": {"depth": 8}, "until": {"requests": 1000}}),
        );
        let total = &result.unwrap()["total"];
        assert_eq!(total["requests"], 1000);
        assert_eq!(total["iops"], 10_000.0);
        assert_eq!(total["bytes_per_s"], 40_960_000.0);
        let mean = total["latency_ns"]["mean"].as_f64().unwrap();
        assert!(
            (790_000.0..=800_000.0).contains(&mean),
            "eight wait for each other: {mean}"
        );
    }

    #[test]
    fn a_warm_up_is_not_measured() {
        let keys =
            json!({"warm_up": {"seconds": 0.05}, "until": {"seconds": 0.1}, "interval_s": 0.025});
        let result = run_on(&mut drive(), keys).unwrap();
        assert_eq!(result["start_s"], 0.05);
        assert_eq!(result["seconds"], 0.1);
        let by_interval: Vec<_> = result["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|interval| interval["requests"].as_u64().unwrap())
            .collect();
        assert_eq!(by_interval.iter().sum::<u64>(), 1000);
        assert!(by_interval[..4]
            .iter()
            .all(|count| (249..=250).contains(count)));
    }

    #[test]
    fn intervals_are_not_without_number() {
        let keys = json!({"until": {"requests": 20_000}, "interval_s": 1e-6});
        let endless = run_on(&mut drive(), keys).unwrap_err();
        assert!(endless
            .to_string()
            .contains("interval_s 0.000001 makes more than"));
        assert_eq!(endless.exit_status(), 2);
    }

    #[test]
    fn a_pass_covers_every_block_once() {
        let keys = json!({"pattern": "sequential", "read_percent": 0, "until": {"passes": 2}, "arrivals": {"depth": 4}});
        let mut seen = vec![0; (BAD / 4096) as usize];
        let (sender, receiver) = std::sync::mpsc::channel();
        let cost_ns = move |request: &Request, _| {
            sender.send(request.io).unwrap();
            1000
        };
        let mut drive = Drive::new(Box::new(InOrder::new(cost_ns)), BYTES);
        let result = run_on(&mut drive, keys).unwrap();
        assert_eq!(result["writes"]["bytes"], 2 * BAD);
        for io in receiver.try_iter() {
            assert_eq!(io.kind, Kind::Write);
            seen[(io.offset / 4096) as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times == 2));
    }

    #[test]
    fn an_open_loop_waits_as_queueing_theory_says() {
        // M/D/1 at half load: service of 100 us and a mean wait of half of that.
        let keys = json!({"arrivals": {"per_second": 5000}, "until": {"requests": 200_000}});
        let result = run_on(&mut drive(), keys).unwrap();
        let mean = result["total"]["latency_ns"]["mean"].as_f64().unwrap();
        assert!((mean / 150_000.0 - 1.0).abs() < 0.02, "{mean}");
        let iops = result["total"]["iops"].as_f64().unwrap();
        assert!((iops / 5000.0 - 1.0).abs() < 0.01, "{iops}");
    }

    #[test]
    fn reads_and_writes_are_told_apart() {
        let keys = json!({"read_percent": 75, "until": {"requests": 40_000}});
        let result = run_on(&mut drive(), keys).unwrap();
        let reads = result["reads"]["requests"].as_f64().unwrap();
        assert!((reads / 30_000.0 - 1.0).abs() < 0.02, "{reads}");
        assert_eq!(
            result["reads"]["latency_ns"]["max"], 100_031,
            "to three digits"
        );
        assert_eq!(result["writes"]["latency_ns"]["mean"], 300_000.0);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let keys = json!({"region": {"offset": BAD, "length": 4096}, "until": {"requests": 5}});
        let result = run_on(&mut drive(), keys).unwrap();
        assert_eq!(result["errors"], 5);
        assert_eq!(result["total"]["requests"], 0);
        assert_eq!(result["total"]["latency_ns"], Value::Null);
    }

    #[test]
    fn a_seed_gives_a_load_and_leaves_nothing_in_flight() {
        let keys =
            json!({"read_percent": 50, "arrivals": {"depth": 32}, "until": {"seconds": 0.3}});
        let mut once = drive();
        let first = run_on(&mut once, keys.clone()).unwrap();
        assert_eq!(first, run_on(&mut drive(), keys.clone()).unwrap());
        once.rest_until(10_000_000_000).unwrap();
        let mut again = run_on(&mut once, keys).unwrap();
        again["start_s"] = first["start_s"].clone();
        assert_eq!(first, again);
    }

    #[test]
    fn a_drive_that_does_not_serve_is_told() {
        let dead = run_on(
            &mut Drive::new(Box::new(Dead), BYTES),
            json!({"until": {"requests": 1}}),
        );
        assert_eq!(dead.unwrap_err().exit_status(), 3);
        let mut timeless = Drive::new(Box::new(InOrder::new(|_: &Request, _| 0)), BYTES);
        let endless = run_on(&mut timeless, json!({"until": {"seconds": 1}})).unwrap_err();
        assert!(endless.to_string().contains("takes no time"), "{endless}");
        assert_eq!(endless.exit_status(), 2);
    }
}

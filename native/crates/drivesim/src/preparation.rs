//! Experiments that leave a drive model in a state, for programs that go on with it.

use racksim::{Service, Timing};
use serde::Deserialize;

use crate::drive::Drive;
use crate::experiment::Experiment;
use crate::failure::Failure;
use crate::{load, steps};

/// Loads, steps and idle times that a new drive is put through, as in a document of drivesim: the drive is in the same state
/// afterwards as after the same experiments there.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Preparation(Vec<Experiment>);

impl Preparation {
    /// A new drive after its preparation, with the virtual time at which that ended.
    ///
    /// # Errors
    /// [`Failure`] where an experiment does not fit the drive or is of a kind that only measures, and where the model failed.
    pub fn prepare(
        &self,
        timing: &Timing,
        bytes: u64,
        sector_bytes: u32,
        seed: u64,
    ) -> Result<(Box<dyn Service>, u64), Failure> {
        let mut drive = Drive::new(timing.start(bytes, sector_bytes, seed), bytes);
        for (experiment, number) in self.0.iter().zip(1..) {
            let of = |what: String| {
                Failure::BadInput(format!("experiment {:?}: {what}", experiment.name()))
            };
            experiment.check(bytes, sector_bytes, 1).map_err(of)?;
            let seed = seed.wrapping_add(number);
            match experiment {
                Experiment::Load(load) => load::run(load, &mut drive, seed).map(|_| ())?,
                Experiment::Steps(steps) => steps::run(steps, &mut drive).map(|_| ())?,
                Experiment::Idle(idle) => {
                    drive.rest_until(drive.now_ns() + (idle.seconds * 1e9).round() as u64)?;
                }
                _ => {
                    let what = "its kind only measures; prepare by load, steps and idle";
                    return Err(of(what.to_owned()));
                }
            }
        }
        Ok(drive.into_service())
    }
}

#[cfg(test)]
mod tests {
    use racksim::{Io, Kind, OnReadError, Request};
    use serde_json::json;

    use super::*;

    const BYTES: u64 = 64 << 20;

    fn timing() -> Timing {
        let flash = json!({
            "kind": "ssd", "channels": 2, "dies_per_channel": 2, "planes": 1, "page_kib": 16, "pages_per_block": 16,
            "read_us": 50, "program_us": 400, "erase_us": 3000, "variation_percent": 5, "channel_mb_s": 400,
            "interface_mb_s": 1000, "full_duplex": true, "command_us": 2, "read_overhead_us": 10, "write_overhead_us": 10,
            "queue_depth": 64, "write_buffer_kib": 1024, "power_loss_protection": true, "over_provisioning_percent": 20,
            "reads_ahead": 4
        });
        serde_json::from_value(flash).unwrap()
    }

    fn preparation(loads: &[(&str, f64)]) -> Preparation {
        let loads = loads.iter().map(|(pattern, passes)| {
            let block_bytes = if *pattern == "random" { 4096 } else { 131_072 };
            json!({"kind": "load", "name": "x", "pattern": pattern, "read_percent": 0, "block_bytes": block_bytes,
                   "arrivals": {"depth": 32}, "until": {"passes": passes}})
        });
        let rest = json!({"kind": "idle", "name": "rest", "seconds": 10});
        let all: Vec<_> = loads.chain([rest]).collect();
        serde_json::from_value(all.into()).unwrap()
    }

    /// The time of 2000 random writes, one after the other, on a drive that was prepared.
    fn writes_ns(preparation: &Preparation) -> u64 {
        let (mut drive, begin_ns) = preparation.prepare(&timing(), BYTES, 4096, 1).unwrap();
        let (mut now_ns, mut done) = (begin_ns, Vec::new());
        for number in 0..2000 {
            let offset = number * 7919 % (BYTES / 4096) * 4096;
            let io = Io {
                kind: Kind::Write,
                offset,
                length: 4096,
            };
            let request = Request {
                ticket: number,
                io,
                fua: false,
                on_read_error: OnReadError::Retry,
            };
            drive.submit(&request, now_ns);
            done.clear();
            while done.is_empty() {
                now_ns = now_ns.max(drive.next_due_ns().unwrap());
                drive.advance(now_ns, &mut done);
            }
        }
        now_ns - begin_ns
    }

    #[test]
    fn a_fragmented_drive_writes_more_slowly_than_a_clean_one() {
        let clean = writes_ns(&preparation(&[("sequential", 1.0)]));
        let fragmented = writes_ns(&preparation(&[("sequential", 1.0), ("random", 3.0)]));
        assert!(fragmented > clean * 3 / 2, "{fragmented} {clean}");
    }

    #[test]
    fn what_does_not_prepare_is_refused_by_name() {
        let seek = json!([{"kind": "seek", "name": "arm", "operation": "read", "pairs": 1}]);
        let beyond = json!([{"kind": "load", "name": "big", "pattern": "random", "block_bytes": 1, "arrivals": {"depth": 1},
                             "until": {"passes": 1}}]);
        for (all, part) in [
            (seek, "\"arm\": its kind only measures"),
            (beyond, "\"big\": block_bytes 1"),
        ] {
            let preparation: Preparation = serde_json::from_value(all).unwrap();
            let failure = preparation
                .prepare(&timing(), BYTES, 4096, 1)
                .err()
                .unwrap();
            assert!(failure.to_string().contains(part), "{failure}");
        }
    }
}

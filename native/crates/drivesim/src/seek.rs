//! Seek experiments: positioning time from one request to the next, without the rotational latency.
//!
//! Once a request at A has completed, the platter is at a known angle, and the latency of a request at B falls by as
//! much as it is given later, until B has just been missed: there it jumps up by one revolution. Just before the jump
//! it contains no rotational latency (the minimum time between request completions of Worthington, Ganger, Patt and
//! Wilkes, "On-Line Extraction of SCSI Disk Drive Parameters", SIGMETRICS 1995); the jump is the revolution.

use racksim::{Io, Kind};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};
use serde::Serialize;

use crate::drive::Drive;
use crate::experiment::{Operation, Seek, BLOCK_BYTES};
use crate::failure::Failure;

/// Maximum time of a revolution that is found: 600 rpm.
const LONGEST_REVOLUTION_NS: u64 = 100_000_000;
/// Precision of the jump.
const FINENESS_NS: u64 = 1_000;

/// Positioning times for one distance.
#[derive(Debug, Serialize)]
struct Distance {
    /// Share of the stroke between the two; `None` if random.
    distance: Option<f64>,
    /// Command, seek and transfer time without rotational latency; the mean of the pairs.
    positioning_ns: f64,
    /// The minimum of the pairs.
    least_positioning_ns: u64,
    /// Revolution of the platter; the median of the pairs.
    revolution_ns: u64,
}

/// The result of a seek experiment.
#[derive(Debug, Serialize)]
pub struct SeekResult<'a> {
    name: &'a str,
    kind: &'static str,
    pairs: u32,
    distances: Vec<Distance>,
}

/// Measure the arm over each distance.
pub fn run<'a>(seek: &'a Seek, drive: &mut Drive, seed: u64) -> Result<SeekResult<'a>, Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    drive.flush()?;
    let asked: Vec<Option<f64>> = match &seek.distances {
        Some(distances) => distances.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let mut distances = Vec::with_capacity(asked.len());
    for distance in asked {
        let mut found = Vec::with_capacity(seek.pairs as usize);
        for _ in 0..seek.pairs {
            found.push(Pair::draw(distance, drive, seek, &mut rng).measure(drive)?);
        }
        distances.push(Distance::of(distance, &found));
    }
    Ok(SeekResult {
        name: &seek.name,
        kind: "seek",
        pairs: seek.pairs,
        distances,
    })
}

impl Distance {
    /// Summarize the pairs' positioning times and revolutions.
    fn of(distance: Option<f64>, found: &[(u64, u64)]) -> Self {
        let (positionings_ns, mut revolutions_ns): (Vec<u64>, Vec<u64>) =
            found.iter().copied().unzip();
        revolutions_ns.sort_unstable();
        Self {
            distance,
            positioning_ns: positionings_ns.iter().sum::<u64>() as f64 / found.len() as f64,
            least_positioning_ns: positionings_ns.into_iter().min().unwrap_or(0),
            revolution_ns: revolutions_ns[revolutions_ns.len() / 2],
        }
    }
}

/// The share of a drive's bytes that lies outside of a cylinder, which is given by its share of the stroke: the bytes
/// that cylinders hold fall evenly from 1 at the edge to `inner` at the hub.
fn share_within(stroke: f64, inner: f64) -> f64 {
    stroke * (2.0 - (1.0 - inner) * stroke) / (1.0 + inner)
}

struct Pair {
    first: Io,
    second: Io,
}

impl Pair {
    fn draw(distance: Option<f64>, drive: &Drive, seek: &Seek, rng: &mut ChaCha8Rng) -> Self {
        let stroke = Uniform::new_inclusive(0.0, 1.0).expect("0 is not above 1");
        let (from, to) = match distance {
            None => (stroke.sample(rng), stroke.sample(rng)),
            Some(distance) => {
                let low = stroke.sample(rng) * (1.0 - distance);
                if stroke.sample(rng) < 0.5 {
                    (low, low + distance)
                } else {
                    (low + distance, low)
                }
            }
        };
        let last = (drive.bytes() / BLOCK_BYTES - 1) as f64;
        let block_at =
            |stroke: f64| (share_within(stroke.min(1.0), seek.inner_share) * last).round() as u64;
        let (from, to) = (block_at(from), block_at(to));
        let kind = match seek.operation {
            Operation::Read => Kind::Read,
            Operation::Write => Kind::Write,
        };
        let at = |kind: Kind, block: u64| Io {
            kind,
            offset: block * BLOCK_BYTES,
            length: BLOCK_BYTES,
        };
        Self {
            first: at(Kind::Read, from),
            second: at(kind, to),
        }
    }

    /// The second request's time without rotational latency, and the revolution.
    fn measure(&self, drive: &mut Drive) -> Result<(u64, u64), Failure> {
        let at_once_ns = self.latency_ns(drive, 0)?;
        // The jump comes after `early` and not after `late`.
        let (mut early, mut late) = (0, LONGEST_REVOLUTION_NS);
        let mut after_ns = at_once_ns;
        while late - early > FINENESS_NS {
            let wait_ns = early.midpoint(late);
            let latency_ns = self.latency_ns(drive, wait_ns)?;
            if latency_ns + wait_ns > at_once_ns + FINENESS_NS {
                late = wait_ns;
                after_ns = latency_ns;
            } else {
                early = wait_ns;
            }
        }
        let positioning_ns = at_once_ns.saturating_sub(early);
        Ok((positioning_ns, after_ns.saturating_sub(positioning_ns)))
    }

    /// The second request's latency if submitted `wait_ns` after the first one's completion, with cold caches.
    fn latency_ns(&self, drive: &mut Drive, wait_ns: u64) -> Result<u64, Failure> {
        drive.forget_caches();
        drive.serve(self.first, false)?;
        drive.forget_caches();
        drive.rest_until(drive.now_ns() + wait_ns)?;
        drive.serve(self.second, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::InOrder;
    use racksim::Request;
    use std::cell::Cell;

    const BYTES: u64 = 1 << 30;
    const REVOLUTION_NS: u64 = 8_333_333;
    const OVERHEAD_NS: u64 = 250_000;

    /// A platter that turns, with an arm that takes 1 ms and 10 ms more for the whole stroke; a write takes 500 us more.
    fn drive() -> Drive {
        let arm = Cell::new(0_u64);
        let cost_ns = move |request: &Request, begins_ns: u64| {
            let to = request.io.offset;
            let far = arm.replace(to).abs_diff(to) as f64 / BYTES as f64;
            let seek_ns = if far > 0.0 {
                1_000_000 + (far * 1e7) as u64
            } else {
                0
            };
            let settle_ns = if request.io.kind == Kind::Write {
                500_000
            } else {
                0
            };
            let angle_ns = to * 7 % REVOLUTION_NS;
            let there_ns = begins_ns + OVERHEAD_NS + seek_ns + settle_ns;
            let wait_ns = (angle_ns + REVOLUTION_NS - there_ns % REVOLUTION_NS) % REVOLUTION_NS;
            there_ns + wait_ns - begins_ns
        };
        Drive::new(Box::new(InOrder::new(cost_ns)), BYTES)
    }

    fn measured(operation: Operation, distances: Option<Vec<f64>>, pairs: u32) -> Vec<Distance> {
        let seek = Seek {
            name: "arm".to_owned(),
            operation,
            distances,
            inner_share: 1.0,
            pairs,
        };
        run(&seek, &mut drive(), 3).unwrap().distances
    }

    fn is_near(found_ns: f64, expected_ns: f64) -> bool {
        (found_ns - expected_ns).abs() < 3.0 * FINENESS_NS as f64
    }

    #[test]
    fn the_arm_is_found_without_the_platter() {
        let found = measured(Operation::Read, Some(vec![0.0, 0.5, 1.0]), 20);
        for (distance, expected_ns) in found.iter().zip([250_000.0, 6_250_000.0, 11_250_000.0]) {
            assert!(
                is_near(distance.positioning_ns, expected_ns),
                "{distance:?}"
            );
            assert!(
                is_near(distance.least_positioning_ns as f64, expected_ns),
                "{distance:?}"
            );
            assert!(
                is_near(distance.revolution_ns as f64, REVOLUTION_NS as f64),
                "{distance:?}"
            );
        }
    }

    #[test]
    fn a_write_takes_the_time_to_settle() {
        let found = measured(Operation::Write, Some(vec![0.5]), 20);
        assert!(is_near(found[0].positioning_ns, 6_750_000.0), "{found:?}");
    }

    #[test]
    fn pairs_at_random_are_a_third_of_the_drive_apart() {
        let found = measured(Operation::Read, None, 2000);
        let expected_ns = 1_250_000.0 + 1e7 / 3.0;
        assert!(
            (found[0].positioning_ns / expected_ns - 1.0).abs() < 0.02,
            "{found:?}"
        );
        assert_eq!(found[0].distance, None);
    }

    #[test]
    fn cylinders_are_drawn_evenly_where_tracks_get_shorter() {
        assert_eq!(share_within(0.0, 0.5), 0.0);
        assert!((share_within(1.0, 0.5) - 1.0).abs() < 1e-12);
        // The outer half of the cylinders holds (1 + 0.75) of (1 + 0.75) + (0.75 + 0.5).
        assert!((share_within(0.5, 0.5) - 1.75 / 3.0).abs() < 1e-12);
        assert_eq!(share_within(0.3, 1.0), 0.3);
    }

    #[test]
    fn a_drive_without_platters_has_no_revolution() {
        let mut drive = Drive::new(Box::new(InOrder::new(|_: &Request, _| 80_000)), BYTES);
        let seek = Seek {
            name: "arm".to_owned(),
            operation: Operation::Read,
            distances: Some(vec![0.5]),
            inner_share: 1.0,
            pairs: 3,
        };
        let found = run(&seek, &mut drive, 3).unwrap().distances;
        assert!(is_near(found[0].positioning_ns, 80_000.0), "{found:?}");
        assert!(is_near(found[0].revolution_ns as f64, 0.0), "{found:?}");
    }
}

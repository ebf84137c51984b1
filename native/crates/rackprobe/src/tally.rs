//! Counts of verdicts, and the first sectors that were not right.

use sector::{judge, Expected, Finding, Verdict, SECTOR_BYTES};
use serde::Serialize;
use serde_json::{json, Map, Value};

/// Maximum number of wrong sectors described one by one.
const OFFENDERS: usize = 16;

/// The counts of judged sectors.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    counts: [u64; Verdict::ALL.len()],
    offenders: Vec<Value>,
}

#[derive(Serialize)]
struct Offender<'a> {
    lba: u64,
    verdict: &'static str,
    found_serial: Option<&'a str>,
    found_lba: Option<u64>,
    found_generation: Option<u64>,
    found_seed: Option<u64>,
    torn_generations: &'a [u64],
}

impl Tally {
    /// The verdicts on the sectors of `block`, which was read at `lba`.
    pub fn of_block(block: &[u8], lba: u64, expected: &Expected) -> Self {
        let mut tally = Self::default();
        for (sector, lba) in block.chunks_exact(SECTOR_BYTES).zip(lba..) {
            tally.count(lba, &judge(sector, lba, expected));
        }
        tally
    }

    /// Count what another tally counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        let room = OFFENDERS - self.offenders.len();
        self.offenders
            .extend(other.offenders.iter().take(room).cloned());
    }

    /// Count one finding.
    pub fn count(&mut self, lba: u64, finding: &Finding) -> Verdict {
        self.counts[finding.verdict as usize] += 1;
        if finding.verdict != Verdict::Right && self.offenders.len() < OFFENDERS {
            let found = finding.found.as_ref();
            let offender = json!(Offender {
                lba,
                verdict: finding.verdict.name(),
                found_serial: found.map(|found| found.serial.as_str()),
                found_lba: found.map(|found| found.lba),
                found_generation: found.map(|found| found.generation),
                found_seed: found.map(|found| found.seed),
                torn_generations: &finding.torn_generations,
            });
            // A poll reads the same sector repeatedly: it is described once.
            if self.offenders.last() != Some(&offender) {
                self.offenders.push(offender);
            }
        }
        finding.verdict
    }

    /// Number of sectors with a verdict.
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.counts[verdict as usize]
    }

    /// Every verdict's count by its name.
    pub fn verdicts(&self) -> Map<String, Value> {
        Verdict::ALL
            .iter()
            .map(|&verdict| (verdict.name().to_owned(), json!(self.of(verdict))))
            .collect()
    }

    /// The first sectors that were not right, in the order in which they were judged.
    pub fn offenders(&self) -> &[Value] {
        &self.offenders
    }
}

//! A sequential-read experiment in the document.

use serde::Deserialize;

use crate::layout::{Layout, SECTOR_BYTES};

/// Sectors read before the measurement starts, so that the latency contains no seek.
pub const LEAD_SECTORS: u64 = 64;
const MOST_SECTORS: u64 = 1 << 32;
const MOST_TRIALS: u32 = 1_000_000;
const LARGEST_REQUEST_SECTORS: u64 = 16_384;
const DEEPEST: usize = 1_024;
const MOST_GROUP_SECTORS: u64 = 65_536;
const LONGEST_DECODE_US: f64 = 1e9;

/// Consecutive 4 KiB sectors of a file, read as a stream at random places.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequentialRead {
    /// Returned with the result.
    pub name: String,
    /// User sectors to read in each trial.
    pub sectors: u64,
    /// Number of trials.
    pub trials: u32,
    /// User sectors of the file, of which a random part is read in each trial; by default the whole file.
    #[serde(default)]
    file_sectors: Option<u64>,
    /// Sectors in a request.
    pub request_sectors: u64,
    /// Requests in flight.
    pub depth: usize,
    /// Start with the arm at a random place; else it starts where the read begins.
    #[serde(default)]
    pub seeks: bool,
    /// Read with fail-fast and decode; without a code the drive retries.
    #[serde(default)]
    pub code: Option<LocalCode>,
}

/// A local erasure code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalCode {
    /// User sectors of a group.
    pub k: u64,
    /// Redundancy sectors of a group.
    pub m: u64,
    /// Decode times of a group that lacks 1, 2, ... m sectors; groups are decoded one after the other.
    decode_us: Vec<f64>,
}

impl LocalCode {
    /// The decode time of a group that lacks this many sectors, from 1 to `m`.
    pub fn decode_ns(&self, lacks: usize) -> u64 {
        let at = lacks.clamp(1, self.decode_us.len()) - 1;
        (self.decode_us[at] * 1e3).round() as u64
    }
}

impl SequentialRead {
    /// User sectors of the file.
    pub fn file_sectors(&self) -> u64 {
        self.file_sectors.unwrap_or(self.sectors)
    }

    /// The layout of the file's sectors.
    pub fn layout(&self) -> Layout {
        let code = self.code.as_ref().map(|code| (code.k, code.m));
        Layout::new(code, self.file_sectors())
    }

    /// Check the experiment for a drive of this size; the error names the wrong key.
    pub fn check(&self, bytes: u64) -> Result<(), String> {
        within("sectors", self.sectors, 1, MOST_SECTORS)?;
        within("trials", self.trials, 1, MOST_TRIALS)?;
        within(
            "file_sectors",
            self.file_sectors(),
            self.sectors,
            MOST_SECTORS,
        )?;
        within(
            "request_sectors",
            self.request_sectors,
            1,
            LARGEST_REQUEST_SECTORS,
        )?;
        within("depth", self.depth, 1, DEEPEST)?;
        if let Some(code) = &self.code {
            within("code.k", code.k, 1, MOST_GROUP_SECTORS)?;
            within("code.m", code.m, 1, MOST_GROUP_SECTORS)?;
            if code.decode_us.len() as u64 != code.m {
                return Err(format!(
                    "code.decode_us has {} values: give one for each of code.m {}",
                    code.decode_us.len(),
                    code.m
                ));
            }
            for &decode_us in &code.decode_us {
                within("code.decode_us", decode_us, 0.0, LONGEST_DECODE_US)?;
            }
        }
        let needed = (self.layout().sectors() + LEAD_SECTORS) * SECTOR_BYTES;
        if needed > bytes {
            return Err(format!(
                "a file of {} sectors needs a drive of {needed} bytes, and this one has {bytes}",
                self.file_sectors()
            ));
        }
        Ok(())
    }
}

fn within<T: Copy + PartialOrd + std::fmt::Display>(
    key: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("{key} {value} is not from {low} to {high}"))
}

//! The document of a load.

use serde::Deserialize;

const DEEPEST: usize = 65_536;
const LARGEST_BLOCK_BYTES: u64 = 64 << 20;
/// Ten years: with more, nanoseconds come near the end of their range.
const LONGEST_S: f64 = 3.2e8;

/// Requests, all of one size.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Returned with the result.
    pub name: String,
    /// The access pattern.
    pub pattern: Pattern,
    /// Size of each request.
    pub block_bytes: u64,
    /// The arrivals of requests.
    pub arrivals: Arrivals,
    /// The measured amount.
    pub until: Amount,
    /// The unmeasured amount before it.
    #[serde(default)]
    pub warm_up: Option<Amount>,
    /// Share of reads.
    #[serde(default = "only_reads")]
    pub read_percent: f64,
    /// The part of the drive in use; without it all of it.
    #[serde(default)]
    pub region: Option<Region>,
    /// Also report the result by intervals of this length.
    #[serde(default)]
    pub interval_s: Option<f64>,
    /// Writes are complete only on stable media.
    #[serde(default)]
    pub fua: bool,
    /// Sectors that cannot be read fail at once.
    #[serde(default)]
    pub fail_fast: bool,
}

fn only_reads() -> f64 {
    100.0
}

/// The access pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Uniformly random.
    Random,
    /// Sequential, wrapping around.
    Sequential,
}

/// The arrivals of requests.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// A closed loop with this many requests in flight.
    Depth(usize),
    /// An open loop: a Poisson process of this rate.
    PerSecond(f64),
}

/// An amount of a load.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// This many completed requests.
    Requests(u64),
    /// For this virtual time.
    Seconds(f64),
    /// As many requests as cover the region this often, each completed.
    Passes(f64),
}

/// A part of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// Byte count.
    pub length: u64,
}

impl Load {
    /// The part of a drive of `bytes` that is in use, in whole blocks.
    pub fn region_in(&self, bytes: u64) -> Region {
        let Region { offset, length } = self.region.unwrap_or(Region {
            offset: 0,
            length: bytes,
        });
        Region {
            offset,
            length: length - length % self.block_bytes,
        }
    }

    pub fn check(&self, bytes: u64, sector_bytes: u64) -> Result<(), String> {
        if self.block_bytes == 0
            || self.block_bytes % sector_bytes != 0
            || self.block_bytes > LARGEST_BLOCK_BYTES
        {
            return Err(format!(
                "block_bytes {} is not a number of sectors of {sector_bytes} bytes up to 64 MiB",
                self.block_bytes
            ));
        }
        if let Some(Region { offset, length }) = self.region {
            if offset % sector_bytes != 0 {
                return Err(format!("region.offset {offset} does not begin a sector"));
            }
            if length % sector_bytes != 0 {
                return Err(format!(
                    "region.length {length} is not a number of sectors of {sector_bytes} bytes"
                ));
            }
            if offset.checked_add(length).is_none_or(|end| end > bytes) {
                return Err(format!(
                    "region.offset {offset} and region.length {length} go beyond the drive's {bytes} bytes"
                ));
            }
        }
        if self.region_in(bytes).length == 0 {
            return Err(format!(
                "block_bytes {} do not fit into the region",
                self.block_bytes
            ));
        }
        if !(0.0..=100.0).contains(&self.read_percent) {
            return Err(format!(
                "read_percent {} is not from 0 to 100",
                self.read_percent
            ));
        }
        match self.arrivals {
            Arrivals::Depth(1..=DEEPEST) => {}
            Arrivals::Depth(depth) => {
                return Err(format!("arrivals.depth {depth} is not from 1 to {DEEPEST}"));
            }
            Arrivals::PerSecond(rate) if rate > 0.0 && rate <= 1e9 => {}
            Arrivals::PerSecond(rate) => {
                return Err(format!(
                    "arrivals.per_second {rate} is not above 0 and up to 1e9"
                ));
            }
        }
        self.until.check("until")?;
        if let Some(warm_up) = self.warm_up {
            warm_up.check("warm_up")?;
        }
        if let Some(interval_s) = self.interval_s {
            check_seconds("interval_s", interval_s)?;
        }
        Ok(())
    }
}

impl Amount {
    fn check(self, key: &str) -> Result<(), String> {
        match self {
            Self::Requests(0) => Err(format!("{key}.requests is 0")),
            Self::Requests(_) => Ok(()),
            Self::Seconds(seconds) => check_seconds(&format!("{key}.seconds"), seconds),
            Self::Passes(passes) if passes > 0.0 && passes <= 1e6 => Ok(()),
            Self::Passes(passes) => Err(format!(
                "{key}.passes {passes} is not above 0 and up to 1e6"
            )),
        }
    }
}

/// Nanoseconds of a time in seconds.
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Refuse a time that virtual nanoseconds could not count.
pub fn check_seconds(key: &str, seconds: f64) -> Result<(), String> {
    if (1e-6..=LONGEST_S).contains(&seconds) {
        return Ok(());
    }
    Err(format!("{key} {seconds} is not from 1e-6 to {LONGEST_S:e}"))
}

//! Faults of a drive.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Kind;

/// The kinds of request that a media error affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads.
    Read,
    /// Writes and write-zeroes.
    Write,
    /// Both.
    Both,
}

/// The persistence of a media error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// It affects one request.
    Once,
    /// It affects as many requests as the fault's `times` says.
    Times,
    /// Each sector fails until it has been written.
    UntilRewritten,
}

/// A fault in the format of the control socket and the truth log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Requests that touch the sectors fail with EIO.
    MediaError {
        /// First bad sector.
        lba: u64,
        /// Number of bad sectors.
        sectors: u64,
        /// Its persistence.
        mode: Persistence,
        /// Number of requests it affects if `mode` is `times`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u64>,
        /// The kinds of request it affects.
        #[serde(default = "reads")]
        on: Access,
    },
    /// Every request takes longer.
    Slow {
        /// Microseconds added to each request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra_us: Option<f64>,
        /// Factor on the timing model's service time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        factor: Option<f64>,
    },
    /// No request is answered.
    Hang {},
    /// Every request fails with EIO at once.
    Dead {},
    /// Reads of the sectors answer flipped bits; the stored data stays.
    Corrupt {
        /// First sector.
        lba: u64,
        /// Count.
        sectors: u64,
    },
    /// The drive hangs from the moment its link is lost by a map change or a PHY drop until it loses its power.
    CrashOnRemap {},
}

fn reads() -> Access {
    Access::Read
}

/// The reason why a fault cannot be put on a drive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The sectors are not all on the drive.
    #[error("{0}")]
    OutOfRange(String),
    /// The fields do not fit together.
    #[error("{0}")]
    Malformed(&'static str),
}

impl Fault {
    /// Refuse a fault that a drive of `drive_sectors` sectors with an instant or timed model cannot have.
    pub fn check(&self, drive_sectors: u64, is_instant: bool) -> Result<(), FaultError> {
        match *self {
            Self::MediaError {
                lba,
                sectors,
                mode,
                times,
                ..
            } => {
                match (mode, times) {
                    (Persistence::Times, None | Some(0)) => {
                        return Err(FaultError::Malformed(
                            "mode \"times\" needs times of 1 or more",
                        ))
                    }
                    (Persistence::Once | Persistence::UntilRewritten, Some(_)) => {
                        return Err(FaultError::Malformed("times goes with mode \"times\" only"))
                    }
                    _ => {}
                }
                sector_range(lba, sectors, drive_sectors).map(drop)
            }
            Self::Corrupt { lba, sectors } => sector_range(lba, sectors, drive_sectors).map(drop),
            Self::Slow { extra_us, factor } => match (extra_us, factor) {
                (Some(extra), None) if (0.0..=1e12).contains(&extra) => Ok(()),
                (None, Some(_)) if is_instant => Err(FaultError::Malformed(
                    "an ideal drive takes no time to multiply: give extra_us",
                )),
                (None, Some(factor)) if (1.0..=1e6).contains(&factor) => Ok(()),
                _ => Err(FaultError::Malformed(
                    "slow needs extra_us of 0 or more, or factor of 1 or more",
                )),
            },
            Self::Hang {} | Self::Dead {} | Self::CrashOnRemap {} => Ok(()),
        }
    }
}

fn sector_range(lba: u64, sectors: u64, drive_sectors: u64) -> Result<Range<u64>, FaultError> {
    match lba.checked_add(sectors) {
        Some(end) if sectors > 0 && end <= drive_sectors => Ok(lba..end),
        _ => Err(FaultError::OutOfRange(format!(
            "sectors {lba}+{sectors} are not on a drive of {drive_sectors} sectors"
        ))),
    }
}

/// The remaining effect of an active fault.
#[derive(Debug, Clone)]
pub(crate) enum Active {
    /// Bad sectors, and how many requests they still affect (`None`: unlimited).
    Media {
        bad: Vec<Range<u64>>,
        left: Option<u64>,
        mode: Persistence,
        on: Access,
    },
    Slow {
        extra_ns: u64,
        factor: f64,
    },
    Hang,
    Dead,
    Corrupt(Range<u64>),
    CrashOnRemap {
        crashed: bool,
    },
}

impl From<&Fault> for Active {
    fn from(fault: &Fault) -> Self {
        match *fault {
            Fault::MediaError {
                lba,
                sectors,
                mode,
                times,
                on,
            } => Self::Media {
                bad: std::iter::once(lba..lba + sectors).collect(),
                left: match mode {
                    Persistence::Once => Some(1),
                    Persistence::Times => times,
                    Persistence::UntilRewritten => None,
                },
                mode,
                on,
            },
            Fault::Slow { extra_us, factor } => Self::Slow {
                extra_ns: (extra_us.unwrap_or(0.0) * 1e3).round() as u64,
                factor: factor.unwrap_or(1.0),
            },
            Fault::Hang {} => Self::Hang,
            Fault::Dead {} => Self::Dead,
            Fault::Corrupt { lba, sectors } => Self::Corrupt(lba..lba + sectors),
            Fault::CrashOnRemap {} => Self::CrashOnRemap { crashed: false },
        }
    }
}

impl Active {
    /// The first bad sector that this request fails on.
    pub(crate) fn hit(&mut self, kind: Kind, sectors: &Range<u64>) -> Option<u64> {
        let Self::Media { bad, left, on, .. } = self else {
            return None;
        };
        let applies = match kind {
            Kind::Read => *on != Access::Write,
            Kind::Write | Kind::WriteZeroes => *on != Access::Read,
            Kind::Flush | Kind::Trim => false,
        };
        if !applies {
            return None;
        }
        let lba = bad
            .iter()
            .map(|range| overlap(range, sectors))
            .find(|hit| !hit.is_empty())?
            .start;
        if let Some(left) = left {
            *left -= 1;
        }
        Some(lba)
    }

    /// Record a write: sectors bad until rewritten become good; returns these.
    pub(crate) fn rewrite(&mut self, sectors: &Range<u64>) -> Vec<Range<u64>> {
        let Self::Media {
            bad,
            mode: Persistence::UntilRewritten,
            on: Access::Read,
            ..
        } = self
        else {
            return Vec::new();
        };
        let healed = bad.iter().map(|range| overlap(range, sectors)).collect();
        subtract(bad, sectors);
        healed
    }

    pub(crate) fn is_spent(&self) -> bool {
        matches!(self, Self::Media { left: Some(0), .. })
            || matches!(self, Self::Media { bad, .. } if bad.is_empty())
    }
}

/// The intersection of two ranges, possibly empty.
pub(crate) fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// The same numbers in ranges that do not overlap, in their order.
pub(crate) fn disjoint(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut found: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
    found.sort_unstable_by_key(|range| range.start);
    let mut end = 0;
    for range in &mut found {
        range.start = range.start.max(end);
        end = end.max(range.end);
    }
    found.retain(|range| !range.is_empty());
    found
}

/// Remove `gone` from `ranges`.
fn subtract(ranges: &mut Vec<Range<u64>>, gone: &Range<u64>) {
    *ranges = ranges
        .iter()
        .flat_map(|range| {
            [
                range.start..range.end.min(gone.start),
                range.start.max(gone.end)..range.end,
            ]
        })
        .filter(|range| !range.is_empty())
        .collect();
}

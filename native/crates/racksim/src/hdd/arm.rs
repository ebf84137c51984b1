//! Move times of the arm: seek, head switch and settle.

use super::seek::SeekCurve;
use super::HddParameters;
use crate::ms_to_ns;

/// The arm's move times in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    curve: SeekCurve,
    per_cylinder: f64,
    track_to_track_ns: u64,
    head_switch_ns: u64,
    write_settle_ns: u64,
}

impl Arm {
    pub(super) fn new(parameters: &HddParameters, cylinders: u64) -> Self {
        Self {
            curve: SeekCurve::new(
                parameters.track_to_track_ms,
                parameters.average_seek_ms,
                parameters.full_stroke_ms,
            ),
            per_cylinder: 1.0 / cylinders.saturating_sub(2).max(1) as f64,
            track_to_track_ns: ms_to_ns(parameters.track_to_track_ms),
            head_switch_ns: ms_to_ns(parameters.head_switch_ms),
            write_settle_ns: ms_to_ns(parameters.write_settle_ms),
        }
    }

    /// The longest move: a full stroke, then settling to write.
    pub(super) fn slowest_ns(&self) -> u64 {
        self.curve.ns(1.0) + self.write_settle_ns
    }

    /// Time from one cylinder and head to another. A move to the next track takes as long as the track skew, so that
    /// a sequential transfer continues there at once.
    pub(super) fn move_ns(&self, from: (u64, u64), to: (u64, u64), writes: bool) -> u64 {
        match from.0.abs_diff(to.0) {
            0 if from.1 == to.1 => 0,
            0 => self.head_switch_ns,
            1 => self.track_to_track_ns,
            cylinders => {
                let seek_ns = self.curve.ns((cylinders - 1) as f64 * self.per_cylinder);
                seek_ns + if writes { self.write_settle_ns } else { 0 }
            }
        }
    }
}

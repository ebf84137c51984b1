//! The seek curve: seek time over distance.

/// Seek time over distance, for reading: `a + b * sqrt(d)` while the arm speeds up and slows down, `c + e * d` once
/// it has coasted in between, joined where both have the same value and slope (Ruemmler and Wilkes, "An Introduction
/// to Disk Drive Modeling", IEEE Computer 27(3), 1994). A distance `d` of 0 is just beyond the next cylinder, of 1 the
/// full stroke. The joint is where the mean over all possible seeks is the data sheet's. Where that is too much for a
/// curve that begins with the track-to-track time, the arm never coasts, and `a` is as much longer as it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct SeekCurve {
    joint: f64,
    a_ns: f64,
    b_ns: f64,
    c_ns: f64,
    e_ns: f64,
}

impl SeekCurve {
    /// The curve of a drive with these seek times in milliseconds, which [`HddParameters`](super::HddParameters) checks.
    #[must_use]
    pub fn new(track_to_track_ms: f64, average_ms: f64, full_stroke_ms: f64) -> Self {
        let [track_to_track_ns, average_ns, full_stroke_ns] =
            [track_to_track_ms, average_ms, full_stroke_ms].map(|ms| ms * 1e6);
        let highest = mean(1.0);
        let a_ns = track_to_track_ns.max((average_ns - highest * full_stroke_ns) / (1.0 - highest));
        let span_ns = full_stroke_ns - a_ns;
        let joint = joint_of((average_ns - a_ns) / span_ns);
        let b_ns = span_ns * scale(joint);
        Self {
            joint,
            a_ns,
            b_ns,
            c_ns: a_ns + b_ns * joint.sqrt() / 2.0,
            e_ns: b_ns / (2.0 * joint.sqrt()),
        }
    }

    /// Nanoseconds for a distance between 0, just beyond the next cylinder, and 1, the full stroke.
    #[must_use]
    pub fn ns(&self, distance: f64) -> u64 {
        let ns = if distance < self.joint {
            self.a_ns + self.b_ns * distance.sqrt()
        } else {
            self.c_ns + self.e_ns * distance
        };
        ns.round() as u64
    }

    /// The least average that a curve of this form can have, in milliseconds, rounded up to 3 decimals.
    pub(super) fn least_average_ms(track_to_track_ms: f64, full_stroke_ms: f64) -> f64 {
        let least_ms =
            track_to_track_ms + (full_stroke_ms - track_to_track_ms) * mean(LOWEST_JOINT);
        (1e3 * least_ms).ceil() / 1e3
    }
}

/// With a joint at 0 the curve would be a straight line with an edge.
const LOWEST_JOINT: f64 = 1e-4;

/// The joint of the curve from 0 to 1 whose mean is this.
fn joint_of(wanted: f64) -> f64 {
    let (mut low, mut high) = (LOWEST_JOINT, 1.0);
    // Bisection down to the precision of a double.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if mean(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// `b` of the curve that rises by 1 from the next cylinder to the full stroke.
fn scale(joint: f64) -> f64 {
    2.0 / (joint.sqrt() + 1.0 / joint.sqrt())
}

/// The mean of that curve over pairs of cylinders, which are at distance `d` with density `2 * (1 - d)`.
fn mean(joint: f64) -> f64 {
    let root = joint.sqrt();
    let short = joint * root * (4.0 / 3.0 - 0.8 * joint);
    let coasting = 1.0 - joint;
    // The integrals of 2 * (1 - d) and of 2 * (1 - d) * d from the joint to 1.
    let weight = coasting * coasting;
    let moment = 1.0 / 3.0 - joint * joint + 2.0 / 3.0 * joint * joint * joint;
    scale(joint) * (short + weight * root / 2.0 + moment / (2.0 * root))
}

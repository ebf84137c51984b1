//! When a drive has finished a request.

use serde::Deserialize;

use crate::Io;

/// A drive's timing model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Timing {
    /// Every request is finished the moment it begins.
    Ideal,
}

impl Timing {
    /// The time a request that begins at `now_ns` is finished, with nothing wrong with the drive.
    #[must_use]
    pub fn done_at_ns(&self, now_ns: u64, _io: &Io) -> u64 {
        match self {
            Self::Ideal => now_ns,
        }
    }
}

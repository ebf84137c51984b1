//! Which model gives a drive its time.

use serde::Deserialize;

use crate::ideal::Ideal;
use crate::Service;

/// A drive's timing model and its parameters, as a configuration gives them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Timing {
    /// Every request is finished the moment it begins.
    Ideal {},
}

impl Timing {
    /// Refuse parameters that no drive can have; the message names the parameter and its range.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Ideal {} => Ok(()),
        }
    }

    /// An idle drive of `bytes` in sectors of `sector_bytes`, fresh from the factory, whose chance comes from `seed`.
    /// The parameters have been checked.
    #[must_use]
    pub fn start(&self, _bytes: u64, _sector_bytes: u32, _seed: u64) -> Box<dyn Service> {
        match self {
            Self::Ideal {} => Box::new(Ideal::default()),
        }
    }
}

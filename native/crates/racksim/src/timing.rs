//! The choice of a drive's timing model.

use serde::Deserialize;

use crate::ideal::Ideal;
use crate::{Hdd, HddParameters, Service, Ssd, SsdParameters};

/// A drive's timing model and its parameters in a configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Timing {
    /// Every request is finished the moment it begins.
    Ideal {},
    /// A solid-state drive.
    Ssd(SsdParameters),
    /// A hard disk.
    Hdd(HddParameters),
}

impl Timing {
    /// Refuse parameters that no drive of `bytes` can have; the message names the parameter and its range.
    pub fn check(&self, bytes: u64) -> Result<(), String> {
        match self {
            Self::Ideal {} => Ok(()),
            Self::Ssd(parameters) => parameters.check(bytes),
            Self::Hdd(parameters) => parameters.check(bytes),
        }
    }

    /// An idle drive of `bytes` in sectors of `sector_bytes`, as delivered, with randomness from `seed`.
    /// The parameters have been checked.
    #[must_use]
    pub fn start(&self, bytes: u64, sector_bytes: u32, seed: u64) -> Box<dyn Service> {
        match self {
            Self::Ideal {} => Box::new(Ideal::default()),
            Self::Ssd(parameters) => {
                Box::new(Ssd::new(parameters.clone(), bytes, sector_bytes, seed))
            }
            Self::Hdd(parameters) => {
                Box::new(Hdd::new(parameters.clone(), bytes, sector_bytes, seed))
            }
        }
    }
}

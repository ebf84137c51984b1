//! Experiments of the input document.

use serde::Deserialize;

use crate::load_document::{check_seconds, Load};
use crate::sequential_read_document::SequentialRead;
use crate::steps::Steps;
use crate::tenants_document::Tenants;

/// The largest physical sector in use: a write of less of it would have to read it first.
pub const BLOCK_BYTES: u64 = 4096;
/// An experiment on the drives.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Experiment {
    /// Requests at a depth or at a rate.
    Load(Load),
    /// Seek times of the arm.
    Seek(Seek),
    /// Consecutive sectors, with retries or through a local erasure code.
    #[serde(rename = "stretch")]
    SequentialRead(SequentialRead),
    /// Sequential steps of a host.
    Steps(Steps),
    /// Tenants that share the drive through a scheduler.
    Tenants(Tenants),
    /// Tenants that share the drives of a box.
    Box(Tenants),
    /// Idle time.
    Idle(Idle),
    /// Reset to the state as delivered.
    Sanitize(Sanitize),
}

/// Seek times over distances, and the time of a revolution.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seek {
    /// Returned with the result.
    pub name: String,
    /// Size of the second request of each pair.
    pub operation: Operation,
    /// Distances between the two requests of a pair as shares of the stroke; without them the pairs are random.
    #[serde(default)]
    pub distances: Option<Vec<f64>>,
    /// Capacity of an innermost track relative to an outermost one. Places are uniform over the cylinders, whose
    /// capacity falls from one to the next.
    #[serde(default = "all_alike")]
    pub inner_share: f64,
    /// Pairs for each distance.
    pub pairs: u32,
}

fn all_alike() -> f64 {
    1.0
}

/// The operation of a pair's second request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Read.
    Read,
    /// Write to stable media.
    Write,
}

/// Idle time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// Returned with the result.
    pub name: String,
    /// Duration.
    pub seconds: f64,
}

/// Reset to the state as delivered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sanitize {
    /// Returned with the result.
    pub name: String,
}

impl Experiment {
    /// Check the experiment for so many drives of this size; the error names the wrong key.
    pub fn check(&self, bytes: u64, sector_bytes: u32, drives: usize) -> Result<(), String> {
        match self {
            Self::Load(load) => load.check(bytes, u64::from(sector_bytes)),
            Self::Seek(seek) => seek.check(bytes),
            Self::SequentialRead(read) => read.check(bytes),
            Self::Steps(steps) => steps.check(bytes, u64::from(sector_bytes)),
            Self::Tenants(tenants) => tenants.check(bytes, sector_bytes),
            Self::Box(tenants) => tenants.check_box(bytes, sector_bytes, drives),
            Self::Idle(idle) => check_seconds("seconds", idle.seconds),
            Self::Sanitize(_) => Ok(()),
        }
    }

    /// The name of its result.
    pub fn name(&self) -> &str {
        match self {
            Self::Load(load) => &load.name,
            Self::Seek(seek) => &seek.name,
            Self::SequentialRead(read) => &read.name,
            Self::Steps(steps) => &steps.name,
            Self::Tenants(tenants) | Self::Box(tenants) => &tenants.name,
            Self::Idle(idle) => &idle.name,
            Self::Sanitize(sanitize) => &sanitize.name,
        }
    }
}

impl Seek {
    fn check(&self, bytes: u64) -> Result<(), String> {
        if bytes < BLOCK_BYTES {
            return Err(format!("the drive has less than {BLOCK_BYTES} bytes"));
        }
        let odd = self.distances.iter().flatten();
        if let Some(distance) = odd.copied().find(|share| !(0.0..=1.0).contains(share)) {
            return Err(format!("distances: {distance} is not from 0 to 1"));
        }
        if !(0.01..=1.0).contains(&self.inner_share) {
            return Err(format!(
                "inner_share {} is not from 0.01 to 1",
                self.inner_share
            ));
        }
        if self.pairs == 0 {
            return Err("pairs is 0".to_owned());
        }
        Ok(())
    }
}

//! The configuration of a drive.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backing::{Backing, Memory};
use racksim::{DriveState, Port, Timing};
use serde::Deserialize;

use crate::config_error::ConfigError;
use crate::drive::{Drive, Identity};
use crate::truth::TruthLog;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriveConfig {
    pub(crate) id: String,
    model: String,
    serial: String,
    firmware: String,
    protocol: String,
    #[serde(default)]
    wwn: Option<String>,
    #[serde(default)]
    eui64: Option<String>,
    pub(crate) bytes: u64,
    #[serde(default = "default_sector_bytes")]
    sector_bytes: u32,
    #[serde(default)]
    rotational: bool,
    #[serde(default)]
    pub(crate) port: Option<Port>,
    #[serde(default)]
    pub(crate) expander: Option<String>,
    #[serde(default)]
    pub(crate) slot: Option<u16>,
    #[serde(default = "default_backing")]
    backing: BackingConfig,
    #[serde(default = "default_timing")]
    timing: Timing,
}

fn default_sector_bytes() -> u32 {
    512
}

fn default_backing() -> BackingConfig {
    BackingConfig::Sparse {}
}

fn default_timing() -> Timing {
    Timing::Ideal {}
}

/// The storage of a drive's bytes.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum BackingConfig {
    Memory {},
    Sparse {},
    File { path: PathBuf },
}

impl DriveConfig {
    fn identity(&self, number: usize) -> Identity {
        Identity {
            number,
            id: Arc::from(self.id.as_str()),
            model: self.model.clone(),
            serial: self.serial.clone(),
            firmware: self.firmware.clone(),
            protocol: self.protocol.clone(),
            wwn: self.wwn.clone(),
            eui64: self.eui64.clone(),
            bytes: self.bytes,
            sector_bytes: self.sector_bytes,
            rotational: self.rotational,
        }
    }

    /// The drive with its storage, idle and healthy; its model's randomness comes from `seed`. `number` is its
    /// index in the rack.
    pub(crate) fn start(
        &self,
        number: usize,
        state_dir: &Path,
        seed: u64,
        truth: &TruthLog,
    ) -> Result<Drive, ConfigError> {
        let (bytes, sector_bytes) = (self.bytes, self.sector_bytes);
        let backing = match &self.backing {
            BackingConfig::Memory {} => Memory::new(bytes, true).map(Backing::Memory),
            BackingConfig::Sparse {} => Memory::new(bytes, false).map(Backing::Memory),
            BackingConfig::File { path } => Backing::file(&state_dir.join(path), bytes),
        };
        let backing =
            backing.map_err(|error| ConfigError(format!("drives.{}.backing: {error}", self.id)))?;
        let service = self.timing.start(bytes, sector_bytes, seed);
        let state = DriveState::new(bytes, sector_bytes, service);
        Ok(Drive::new(
            self.identity(number),
            state,
            backing,
            truth.clone(),
        ))
    }

    /// Check the drive's own fields.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.sector_bytes.is_power_of_two() || !(512..=65536).contains(&self.sector_bytes) {
            return Err("sector_bytes must be a power of two from 512 to 65536".into());
        }
        if self.bytes == 0 || self.bytes % u64::from(self.sector_bytes) != 0 || self.bytes > 1 << 60
        {
            return Err("bytes must be a multiple of sector_bytes, above 0".into());
        }
        self.timing
            .check(self.bytes)
            .map_err(|error| format!("timing: {error}"))
    }
}

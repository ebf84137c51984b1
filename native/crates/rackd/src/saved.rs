//! The saved map on disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use racksim::{Port, PortMap};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::config_error::ConfigError;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMap {
    pairs: Vec<(Port, Port)>,
}

/// Load the saved map; `None` if there is none.
pub fn load(config: &Config) -> Result<Option<PortMap>, ConfigError> {
    let path = config.saved_map_path();
    let place = path.display().to_string();
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| ConfigError(format!("{place}: {error}")))?,
    };
    let saved: SavedMap = serde_json::from_slice(&text).map_err(|error| {
        ConfigError(format!(
            "{place}: no saved map: {error}; delete the file to start without"
        ))
    })?;
    config.check_map(&saved.pairs, &place).map(Some)
}

/// Store a map on disk atomically.
pub fn store(path: &Path, map: &PortMap) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    serde_json::to_writer(&mut file, &SavedMap { pairs: map.pairs() })?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

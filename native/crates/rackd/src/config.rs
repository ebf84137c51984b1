//! The configuration file: fields and checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use racksim::{DriveLayout, ExpanderLayout, Layout, Place, Port, PortMap, ServerLayout, Stack};
use serde::Deserialize;

use crate::config_error::ConfigError;
use crate::drive_config::DriveConfig;

fn wrong<T>(message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError(message.into()))
}

/// The fields of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    schema: u32,
    #[serde(default)]
    seed: u64,
    pub(crate) state_dir: PathBuf,
    control: PathBuf,
    nbd: PathBuf,
    #[serde(default)]
    pub(crate) nbd_tcp: Option<SocketAddr>,
    truth_log: PathBuf,
    #[serde(default = "default_saved_map")]
    saved_map: PathBuf,
    #[serde(default = "default_ports")]
    ports: Port,
    #[serde(default = "default_link_timeout_ms")]
    pub(crate) link_timeout_ms: f64,
    #[serde(default)]
    port_bytes: Option<u64>,
    #[serde(default)]
    stacks: BTreeMap<String, Stack>,
    #[serde(default)]
    servers: BTreeMap<String, ServerConfig>,
    #[serde(default)]
    expanders: BTreeMap<String, ExpanderConfig>,
    #[serde(default)]
    pub(crate) drives: Vec<DriveConfig>,
    #[serde(default)]
    map: Vec<(Port, Port)>,
}

fn default_saved_map() -> PathBuf {
    "saved_map.json".into()
}

fn default_ports() -> Port {
    160
}

fn default_link_timeout_ms() -> f64 {
    30_000.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerConfig {
    stack: String,
    ports: BTreeMap<String, Port>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpanderConfig {
    port: Port,
}

impl Config {
    /// Read and check the file at `path`.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let in_file = |error: &dyn Display| ConfigError(format!("{}: {error}", path.display()));
        let text = std::fs::read(path).map_err(|error| in_file(&error))?;
        let config: Self = serde_json::from_slice(&text).map_err(|error| in_file(&error))?;
        config.check().map_err(|error| in_file(&error))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.schema != 1 {
            return wrong(format!(
                "schema {} is not known: this rackd reads schema 1",
                self.schema
            ));
        }
        if self.ports == 0 {
            return wrong("ports must be at least 1");
        }
        if !(0.0..=1e9).contains(&self.link_timeout_ms) {
            return wrong("link_timeout_ms must be between 0 and 1e9");
        }
        if self
            .nbd_tcp
            .is_some_and(|address| !address.ip().is_loopback())
        {
            return wrong("nbd_tcp must be a loopback address such as 127.0.0.1:10809");
        }
        for (name, stack) in &self.stacks {
            stack
                .check()
                .or_else(|error| wrong(format!("stacks.{name}: {error}")))?;
        }
        self.check_names()?;
        self.check_drives()?;
        self.check_plugs()?;
        self.check_map(&self.map, "map").map(drop)
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        let servers = self.servers.keys().map(|name| ("servers", name));
        let ports = self
            .servers
            .values()
            .flat_map(|server| server.ports.keys())
            .map(|name| ("ports", name));
        let drives = self.drives.iter().map(|drive| ("drives", &drive.id));
        for (place, name) in servers.chain(ports).chain(drives) {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
                return wrong(format!(
                    "{place}: the name {name:?} must be 1 to 64 letters, digits, '-' or '_'"
                ));
            }
        }
        if self.servers.contains_key("drive") {
            return wrong("servers: no server may be called \"drive\", which begins the names of drive exports");
        }
        for (name, server) in &self.servers {
            if self.stack(&server.stack).is_none() {
                return wrong(format!(
                    "servers.{name}: there is no stack {:?}",
                    server.stack
                ));
            }
        }
        Ok(())
    }

    fn check_drives(&self) -> Result<(), ConfigError> {
        let mut ids = BTreeSet::new();
        for drive in &self.drives {
            let id = &drive.id;
            if !ids.insert(id) {
                return wrong(format!("drives: two are called {id}"));
            }
            drive
                .check()
                .or_else(|error| wrong(format!("drives.{id}: {error}")))?;
            match (drive.port, &drive.expander, drive.slot) {
                (Some(_), None, None) | (None, None, None) => {}
                (None, Some(expander), Some(_)) if self.expanders.contains_key(expander) => {}
                (None, Some(expander), Some(_)) => {
                    return wrong(format!("drives.{id}: there is no expander {expander:?}"))
                }
                _ => {
                    return wrong(format!(
                        "drives.{id}: give port, or expander and slot, or none of them"
                    ))
                }
            }
        }
        Ok(())
    }

    /// Check that no port and no slot is used twice.
    fn check_plugs(&self) -> Result<(), ConfigError> {
        let mut taken: BTreeMap<Port, String> = BTreeMap::new();
        let servers = self.servers.iter().flat_map(|(server, config)| {
            config
                .ports
                .iter()
                .map(move |(name, &port)| (port, format!("servers.{server}.ports.{name}")))
        });
        let expanders = self
            .expanders
            .iter()
            .map(|(name, expander)| (expander.port, format!("expanders.{name}")));
        let drives = self
            .drives
            .iter()
            .filter_map(|drive| Some((drive.port?, format!("drives.{}", drive.id))));
        for (port, what) in servers.chain(expanders).chain(drives) {
            if !(1..=self.ports).contains(&port) {
                return wrong(format!(
                    "{what}: the switch has ports 1 to {}, not {port}",
                    self.ports
                ));
            }
            if let Some(other) = taken.insert(port, what.clone()) {
                return wrong(format!("{what}: port {port} is taken by {other}"));
            }
        }
        let mut slots = BTreeSet::new();
        for drive in &self.drives {
            if let (Some(expander), Some(slot)) = (&drive.expander, drive.slot) {
                if !slots.insert((expander, slot)) {
                    return wrong(format!(
                        "drives.{}: slot {slot} of {expander} is taken",
                        drive.id
                    ));
                }
            }
        }
        Ok(())
    }

    /// The map with these pairs, which `place` gave.
    pub(crate) fn check_map(
        &self,
        pairs: &[(Port, Port)],
        place: &str,
    ) -> Result<PortMap, ConfigError> {
        let map = PortMap::of(pairs).or_else(|error| wrong(format!("{place}: {error}")))?;
        let unknown = map.ports().find(|port| !(1..=self.ports).contains(port));
        match unknown {
            Some(port) => wrong(format!(
                "{place}: the switch has ports 1 to {}, not {port}",
                self.ports
            )),
            None => Ok(map),
        }
    }

    fn stack(&self, name: &str) -> Option<Stack> {
        let built_in = || {
            Stack::built_in()
                .into_iter()
                .find(|(known, _)| *known == name)
                .map(|(_, stack)| stack)
        };
        self.stacks.get(name).cloned().or_else(built_in)
    }

    /// The layout of the rack, powering on with `saved`, or with the file's own map if that is `None`.
    pub(crate) fn layout(&self, saved: Option<PortMap>) -> Layout {
        let expanders: Vec<&String> = self.expanders.keys().collect();
        let place = |drive: &DriveConfig| match (drive.port, &drive.expander, drive.slot) {
            (Some(port), _, _) => Place::Port(port),
            (None, Some(name), Some(slot)) => expanders
                .iter()
                .position(|expander| *expander == name)
                .map_or(Place::Shelf, |expander| Place::Slot { expander, slot }),
            _ => Place::Shelf,
        };
        Layout {
            seed: self.seed,
            ports: self.ports,
            servers: self
                .servers
                .iter()
                .filter_map(|(name, server)| {
                    Some(ServerLayout {
                        name: name.as_str().into(),
                        stack: self.stack(&server.stack)?,
                        ports: server
                            .ports
                            .iter()
                            .map(|(name, &port)| (name.as_str().into(), port))
                            .collect(),
                    })
                })
                .collect(),
            expanders: self
                .expanders
                .iter()
                .map(|(name, expander)| ExpanderLayout {
                    name: name.as_str().into(),
                    port: expander.port,
                })
                .collect(),
            drives: self
                .drives
                .iter()
                .map(|drive| DriveLayout {
                    id: drive.id.as_str().into(),
                    place: place(drive),
                })
                .collect(),
            saved: saved
                .or_else(|| PortMap::of(&self.map).ok())
                .unwrap_or_default(),
        }
    }

    /// The seed of a drive's randomness, by its index in the list.
    pub(crate) fn drive_seed(&self, index: usize) -> u64 {
        // The golden ratio's bits make the seeds of neighbouring drives and racks unrelated.
        let apart = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.seed.wrapping_add(apart)
    }

    /// The size of a port's export: as configured, else that of the largest drive.
    pub(crate) fn port_bytes(&self) -> u64 {
        let largest = self
            .drives
            .iter()
            .map(|drive| drive.bytes)
            .max()
            .unwrap_or(0);
        self.port_bytes.unwrap_or(largest)
    }

    pub(crate) fn control_path(&self) -> PathBuf {
        self.state_dir.join(&self.control)
    }

    pub(crate) fn nbd_path(&self) -> PathBuf {
        self.state_dir.join(&self.nbd)
    }

    pub(crate) fn truth_path(&self) -> PathBuf {
        self.state_dir.join(&self.truth_log)
    }

    pub(crate) fn saved_map_path(&self) -> PathBuf {
        self.state_dir.join(&self.saved_map)
    }
}

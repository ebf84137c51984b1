//! The configuration file: the drive, the scheduler, the tenants.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schedulers::{Parameters, Priority, Tenant};
use serde::Deserialize;
use serde_json::Value;

use crate::region::Region;

/// The name of the program.
pub const PROGRAM: &str = "storageswitch";

/// The most threads of a drive on a file, and connections to one behind NBD.
const MOST_LANES: usize = 256;

/// The fields of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    schema: u32,
    pub control: PathBuf,
    pub nbd: PathBuf,
    #[serde(default)]
    pub nbd_tcp: Option<SocketAddr>,
    pub drive: DriveConfig,
    pub scheduler: Parameters,
    pub tenants: Vec<TenantConfig>,
    #[serde(skip)]
    path: PathBuf,
}

/// The drive that is shared.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DriveConfig {
    /// Memory of this process: an ideal drive.
    Memory { bytes: u64 },
    /// A file, or a block device, which is only read.
    File {
        path: PathBuf,
        #[serde(default = "default_threads")]
        threads: usize,
    },
    /// An export of an NBD server.
    Nbd {
        uri: String,
        #[serde(default = "default_connections")]
        connections: usize,
    },
}

fn default_threads() -> usize {
    16
}

fn default_connections() -> usize {
    8
}

/// A tenant: what its scheduler is told, and where its blocks lie.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub struct TenantConfig {
    pub tenant: Tenant,
    pub priority: Priority,
    pub region: Option<Region>,
}

impl TryFrom<Value> for TenantConfig {
    type Error = String;

    fn try_from(mut value: Value) -> Result<Self, String> {
        let fields = value.as_object_mut().ok_or("a tenant is no object")?;
        let name = match fields.get("name") {
            Some(Value::String(name)) => name.clone(),
            _ => String::new(),
        };
        let wrong = |key: &str, error: &dyn Display| format!("tenant {name:?}: {key}: {error}");
        let region = fields.remove("region").filter(|region| !region.is_null());
        let region = region.map(serde_json::from_value).transpose();
        let priority = fields.remove("priority").map(serde_json::from_value);
        Ok(Self {
            region: region.map_err(|error| wrong("region", &error))?,
            priority: priority
                .transpose()
                .map_err(|error| wrong("priority", &error))?
                .unwrap_or_default(),
            tenant: serde_json::from_value(value).map_err(|error| error.to_string())?,
        })
    }
}

impl Config {
    /// Read and check the file at `path`; the error names it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let in_file = |error: &dyn Display| format!("{}: {error}", path.display());
        let text = std::fs::read(path).map_err(|error| in_file(&error))?;
        let mut config: Self = serde_json::from_slice(&text).map_err(|error| in_file(&error))?;
        config.path = path.to_owned();
        config.check().map_err(|error| in_file(&error))?;
        Ok(config)
    }

    /// The name of the file.
    pub fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != 1 {
            let schema = self.schema;
            return Err(format!(
                "schema {schema} is not known: this storageswitch reads schema 1"
            ));
        }
        if self
            .nbd_tcp
            .is_some_and(|address| !address.ip().is_loopback())
        {
            return Err("nbd_tcp must be a loopback address such as 127.0.0.1:10809".to_owned());
        }
        if self.tenants.is_empty() {
            return Err(
                "tenants is empty: give at least one, as in [{\"name\": \"a\"}]".to_owned(),
            );
        }
        let within = |what: &str, count: usize| match count {
            1..=MOST_LANES => Ok(()),
            _ => Err(format!("drive.{what} is {count}; give 1 to {MOST_LANES}")),
        };
        match &self.drive {
            DriveConfig::Memory { bytes: 0 } => {
                Err("drive.bytes is 0; give the size of the drive".to_owned())
            }
            DriveConfig::Memory { .. } => Ok(()),
            DriveConfig::File { threads, .. } => within("threads", *threads),
            DriveConfig::Nbd { connections, .. } => within("connections", *connections),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(change: impl FnOnce(&mut Value)) -> Result<Config, String> {
        let mut document = json!({
            "schema": 1,
            "control": "c.sock",
            "nbd": "n.sock",
            "drive": {"kind": "memory", "bytes": 1 << 20},
            "scheduler": {"kind": "gimbal"},
            "tenants": [{"name": "a"}, {"name": "b", "priority": "high", "weight": 2}],
        });
        change(&mut document);
        let config: Config = serde_json::from_value(document).map_err(|error| error.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let config = config(|_| ()).unwrap();
        assert_eq!(config.tenants[0].priority, Priority::Medium);
        assert_eq!(config.tenants[1].priority, Priority::High);
        assert_eq!(config.tenants[1].tenant.weight, 2.0);
        assert_eq!(config.tenants[0].region, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |change: fn(&mut Value)| config(change).unwrap_err();
        for (change, part) in [
            (
                (|it| it["scheduler"]["kind"] = "gimball".into()) as fn(&mut Value),
                "did you mean \"gimbal\"",
            ),
            (
                |it| it["scheduler"]["virtual_slot"] = 8.into(),
                "did you mean \"virtual_slots\"",
            ),
            (|it| it["tenants"][0]["weight"] = 0.into(), "weight is 0"),
            (|it| it["tenants"][0]["wieght"] = 1.into(), "did you mean"),
            (
                |it| it["tenants"][0]["priority"] = "top".into(),
                "tenant \"a\": priority",
            ),
            (
                |it| it["tenants"][0]["region"] = json!({"offset": 0}),
                "tenant \"a\": region",
            ),
            (|it| it["tenants"] = json!([]), "tenants is empty"),
            (|it| it["schema"] = 2.into(), "schema 2"),
            (|it| it["drive"]["bytes"] = 0.into(), "drive.bytes is 0"),
            (|it| it["drive"]["kind"] = "tape".into(), "tape"),
            (
                |it| it["drive"] = json!({"kind": "file", "path": "x", "threads": 0}),
                "drive.threads is 0",
            ),
            (|it| it["nbd_tcp"] = "0.0.0.0:1".into(), "loopback"),
        ] {
            let said = said(change);
            assert!(said.contains(part), "{said}");
        }
    }
}

//! The configuration file: the drives, the scheduler, the tenants.

mod drive;
mod tenant;

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schedulers::{unknown, Parameters};
use serde::Deserialize;

pub use drive::{default_connections, default_pipeline, Access, DriveConfig, Mark, NamedDrive};
use drive::{look_up, Hosts};
pub use tenant::TenantConfig;

/// The name of a drive that has none.
const ONLY_DRIVE: &str = "drive";

/// The name of the program.
pub const PROGRAM: &str = "storageswitch";

/// The fields of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    schema: u32,
    pub control: PathBuf,
    pub nbd: PathBuf,
    #[serde(default)]
    pub nbd_tcp: Option<SocketAddr>,
    /// The only drive, instead of `drives`.
    #[serde(default)]
    drive: Option<DriveConfig>,
    #[serde(default)]
    pub drives: Vec<NamedDrive>,
    /// Whether the threads of a drive stay on one core where there are several of both.
    #[serde(default = "pins")]
    pub pin: bool,
    pub scheduler: Parameters,
    pub tenants: Vec<TenantConfig>,
    #[serde(skip)]
    path: PathBuf,
}

fn pins() -> bool {
    true
}

impl Config {
    /// Read and check the file at `path`; the error names it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let in_file = |error: &dyn Display| format!("{}: {error}", path.display());
        let text = std::fs::read(path).map_err(|error| in_file(&error))?;
        let mut config: Self = serde_json::from_slice(&text).map_err(|error| in_file(&error))?;
        config.path = path.to_owned();
        config.settle().map_err(|error| in_file(&error))?;
        Ok(config)
    }

    /// The name of the file.
    pub fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// Put a single drive among the drives, and check everything.
    fn settle(&mut self) -> Result<(), String> {
        match (self.drive.take(), self.drives.is_empty()) {
            (Some(config), true) => self.drives.push(NamedDrive {
                name: ONLY_DRIVE.to_owned(),
                config,
            }),
            (None, false) => {}
            (Some(_), false) => {
                return Err("there are both drive and drives: give one of them".to_owned())
            }
            (None, true) => {
                let example = r#""drive": {"kind": "memory", "bytes": 1073741824}"#;
                return Err(format!("there is no drive: give one, as in {example}"));
            }
        }
        self.check()
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
        self.check_names()?;
        self.check_marks()?;
        for drive in &self.drives {
            let field = if drive.name == ONLY_DRIVE {
                ONLY_DRIVE.to_owned()
            } else {
                format!("drive {:?}", drive.name)
            };
            drive
                .config
                .check()
                .map_err(|what| format!("{field}: {what}"))?;
            if self.tenants_of(&drive.name).next().is_none() {
                return Err(format!(
                    "{field} has no tenant: give it one, or leave the drive out"
                ));
            }
        }
        Ok(())
    }

    /// Each drive once, each tenant on a drive that there is.
    fn check_names(&self) -> Result<(), String> {
        let mut names: Vec<&str> = self
            .drives
            .iter()
            .map(|drive| drive.name.as_str())
            .collect();
        for tenant in &self.tenants {
            let name = &tenant.tenant.name;
            match &tenant.drive {
                None if names.len() > 1 => {
                    let known = names.join(", ");
                    return Err(format!(
                        "tenant {name:?} names no drive: give one of {known}"
                    ));
                }
                Some(drive) if !names.contains(&drive.as_str()) => {
                    let names = names.iter().copied();
                    return Err(unknown("drive", drive, names, &format!("tenant {name:?}")));
                }
                _ => {}
            }
        }
        names.sort_unstable();
        let mut tenants: Vec<&str> = self.tenants.iter().map(TenantConfig::name).collect();
        tenants.sort_unstable();
        for (what, sorted) in [("drives", names), ("tenants", tenants)] {
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!(
                    "{what}: the name {:?} is given twice: each needs one of its own",
                    pair[0]
                ));
            }
        }
        Ok(())
    }

    /// No drive twice, by whatever names: each divides what it has among its own tenants.
    fn check_marks(&self) -> Result<(), String> {
        let mut seen: Vec<(&str, String, Mark)> = Vec::new();
        let mut hosts = Hosts::new(look_up);
        for NamedDrive { name, config } in &self.drives {
            for (written, mark) in config.marks() {
                if let Some((other, first, _)) = seen
                    .iter()
                    .find(|(_, _, one)| one.is_that_of(&mark, &mut hosts))
                {
                    return Err(format!(
                        "drives {other:?} ({first}) and {name:?} ({written}) are the same: give it once, with the \
                         tenants of both"
                    ));
                }
                seen.push((name, written, mark));
            }
        }
        Ok(())
    }

    /// The serials of the drives that are given by them.
    pub fn serials(&self) -> Vec<&str> {
        let serials = self.drives.iter().map(|drive| match &drive.config {
            DriveConfig::Device { serial, .. } => Some(serial.as_str()),
            _ => None,
        });
        serials.flatten().collect()
    }

    /// The tenants of a drive, with their numbers among all tenants.
    pub fn tenants_of<'a>(
        &'a self,
        drive: &'a str,
    ) -> impl Iterator<Item = (usize, &'a TenantConfig)> {
        let is_there = move |tenant: &TenantConfig| match &tenant.drive {
            Some(name) => name == drive,
            None => self.drives.len() == 1,
        };
        let numbered = self.tenants.iter().enumerate();
        numbered.filter(move |(_, tenant)| is_there(tenant))
    }
}

#[cfg(test)]
mod tests {
    use schedulers::Priority;
    use serde_json::{json, Value};

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
        let mut config: Config =
            serde_json::from_value(document).map_err(|error| error.to_string())?;
        config.settle().map(|()| config)
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
            (|it| it["drive"]["bytes"] = 0.into(), "drive: bytes is 0"),
            (|it| it["drive"]["kind"] = "tape".into(), "tape"),
            (
                |it| it["drive"] = json!({"kind": "file", "path": "x", "threads": 0}),
                "drive: threads is 0",
            ),
            (
                |it| it["drive"] = Value::Null,
                "there is no drive: give one",
            ),
            (
                |it| it["drives"] = json!([{"name": "d", "kind": "memory", "bytes": 1}]),
                "both drive and drives",
            ),
            (
                |it| it["tenants"][0]["drive"] = "driv".into(),
                "did you mean \"drive\"",
            ),
            (
                |it| it["tenants"][1]["name"] = "a".into(),
                "the name \"a\" is given twice",
            ),
            (|it| it["nbd_tcp"] = "0.0.0.0:1".into(), "loopback"),
        ] {
            let said = said(change);
            assert!(said.contains(part), "{said}");
        }
    }

    fn two_drives(change: impl FnOnce(&mut Value)) -> Result<Config, String> {
        config(|it| {
            it["drive"] = Value::Null;
            let drive = |name| json!({"name": name, "kind": "memory", "bytes": 1 << 20});
            it["drives"] = json!([drive("d0"), drive("d1")]);
            it["tenants"] = json!([{"name": "a", "drive": "d1"}, {"name": "b", "drive": "d0"}]);
            change(it);
        })
    }

    #[test]
    fn tenants_are_found_by_their_drive() {
        let config = two_drives(|_| ()).unwrap();
        let numbers = |drive| -> Vec<usize> {
            let found = config.tenants_of(drive);
            found.map(|(number, _)| number).collect()
        };
        assert_eq!((numbers("d0"), numbers("d1")), (vec![1], vec![0]));
    }

    #[test]
    fn what_is_wrong_with_several_drives_is_named() {
        for (change, part) in [
            (
                (|it| it["tenants"][0]["drive"] = Value::Null) as fn(&mut Value),
                "tenant \"a\" names no drive: give one of d0, d1",
            ),
            (
                |it| it["tenants"][0]["drive"] = "d2".into(),
                "unknown drive \"d2\" of tenant \"a\"",
            ),
            (
                |it| it["tenants"][0]["drive"] = "d0".into(),
                "drive \"d1\" has no tenant",
            ),
            (
                |it| {
                    it["drives"][0]["name"] = "d1".into();
                    it["tenants"][1]["drive"] = "d1".into();
                },
                "the name \"d1\" is given twice",
            ),
            (
                |it| it["drives"][0] = json!({"kind": "memory", "bytes": 1}),
                "a drive has no name",
            ),
            (
                |it| it["drives"][0]["bytes"] = 0.into(),
                "drive \"d0\": bytes is 0",
            ),
        ] {
            let said = two_drives(change).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn one_drive_under_two_names_is_refused() {
        let device = |node: &str, serial: &str| json!({"kind": "device", "node": node, "serial": serial, "size": 1});
        let file = |path: &str| json!({"kind": "file", "path": path});
        let export = |uri: &str| json!({"kind": "nbd", "uri": uri});
        let both = |first: &Value, second: &Value| {
            two_drives(|it| {
                for (at, drive) in [first, second].into_iter().enumerate() {
                    it["drives"][at] = drive.clone();
                    it["drives"][at]["name"] = format!("d{at}").into();
                }
            })
        };
        for (first, second, said) in [
            (
                device("/nowhere/a", "A"),
                device("/nowhere/b", "A"),
                r#""d1" (serial A)"#,
            ),
            (
                device("/nowhere/a", "A"),
                device("/nowhere/a", "B"),
                r#""d1" (node /nowhere/a)"#,
            ),
            (
                file("/nowhere/a"),
                file("/nowhere/a"),
                r#""d0" (path /nowhere/a) and "d1" (path /nowhere/a)"#,
            ),
            (
                file("/dev/null"),
                file("/dev/../dev/null"),
                r#""d1" (path /dev/../dev/null)"#,
            ),
            (
                file("/dev/null"),
                device("/dev/null", "A"),
                r#""d1" (node /dev/null)"#,
            ),
            (
                export("nbd://host/a"),
                export("nbd://host:10809/a"),
                r#""d0" (uri nbd://host/a) and "d1" (uri nbd://host:10809/a)"#,
            ),
            (
                export("nbd://127.0.0.1:1/a"),
                export("nbd://localhost:1/a"),
                r#""d0" (uri nbd://127.0.0.1:1/a) and "d1" (uri nbd://localhost:1/a)"#,
            ),
            (
                export("nbd+unix:///a?socket=/dev/null"),
                export("nbd+unix:///a?socket=/dev/../dev/null"),
                "are the same: give it once",
            ),
        ] {
            let refused = both(&first, &second).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
        for (first, second) in [
            (device("/nowhere/a", "A"), device("/nowhere/b", "B")),
            (file("/dev/null"), file("/dev/zero")),
            (export("nbd://host/a"), export("nbd://host/b")),
            (export("nbd://127.0.0.1:1/a"), export("nbd://127.0.0.2:1/a")),
            (export("nbd://127.0.0.1:1/a"), export("nbd://localhost:2/a")),
            (export("nbd://127.0.0.1:1/a"), export("nbd://localhost:1/b")),
            (
                export("nbd+unix:///a?socket=/nowhere"),
                export("nbd+unix:///b?socket=/nowhere"),
            ),
            (export("none"), export("none")),
        ] {
            both(&first, &second).unwrap();
        }
    }
}

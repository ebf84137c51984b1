//! The document on standard input.

use std::path::PathBuf;

use blobstore::{ClientOptions, Layout, Mix, TreeOptions};
use nbd::uri::NbdUri;
use serde::Deserialize;

const SCHEMA: u32 = 1;

/// A database on tenants of storage switches, and the operations on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    schema: u32,
    /// The drives of the pool.
    pub drives: Vec<DriveOf>,
    /// One of YCSB's workloads by its letter, or shares of operations.
    pub mix: Mix,
    /// Records that are stored first.
    pub records: u64,
    /// Operations under way at a time.
    pub depth: usize,
    /// Operations in all.
    pub operations: u64,
    /// Seed of the workload.
    #[serde(default)]
    pub seed: u64,
    /// Operations from one line of progress to the next.
    #[serde(default)]
    pub progress_every: Option<u64>,
    /// Sizes of allocation, and replicas.
    #[serde(default)]
    pub layout: Layout,
    /// Limiter and steering.
    #[serde(default)]
    pub options: ClientOptions,
    /// The settings of the database.
    #[serde(default)]
    pub tree: TreeOptions,
}

/// A drive: the export of a tenant of a storage switch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveOf {
    /// The export.
    pub uri: String,
    /// The control socket of its switch.
    pub control: PathBuf,
    /// The tenant there.
    pub tenant: String,
    /// The number of its box: replicas are spread over boxes.
    #[serde(default)]
    pub in_box: u32,
}

impl DriveOf {
    /// The export, taken apart.
    pub fn parsed_uri(&self) -> Result<NbdUri, String> {
        NbdUri::parse(&self.uri).map_err(|error| format!("drive {:?}: uri: {error}", self.tenant))
    }
}

impl Document {
    /// Read and check a document; the error names the wrong key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Self =
            serde_json::from_str(text).map_err(|error| format!("standard input: {error}"))?;
        if document.schema != SCHEMA {
            return Err(format!("schema {} is not {SCHEMA}", document.schema));
        }
        if document.drives.is_empty() {
            return Err("drives is empty; give at least one".to_owned());
        }
        for (key, value) in [
            ("depth", document.depth as u64),
            ("operations", document.operations),
            ("records", document.records),
            ("progress_every", document.progress_every.unwrap_or(1)),
        ] {
            if value == 0 {
                return Err(format!("{key} is 0; give at least 1"));
            }
        }
        for drive in &document.drives {
            let export = drive.parsed_uri()?.export;
            if export != drive.tenant {
                return Err(format!(
                    "drive {:?}: uri: its export is {export:?}; name that of the tenant",
                    drive.tenant
                ));
            }
        }
        document.require_different_drives()?;
        Ok(document)
    }

    /// Require that no two drives are one: two replicas would lie on the same bytes, and blobs overwrite one another.
    fn require_different_drives(&self) -> Result<(), String> {
        let mut exports: Vec<NbdUri> = Vec::new();
        let mut tenants = Vec::new();
        for (number, drive) in self.drives.iter().enumerate() {
            let export = drive.parsed_uri()?;
            // A link to a socket leads to the same switch; what does not exist is refused when it is connected to.
            let control = drive.control.canonicalize();
            let tenant = (
                control.unwrap_or_else(|_| drive.control.clone()),
                &drive.tenant,
            );
            let same_export = exports.iter().position(|one| *one == export);
            let same = same_export.or_else(|| tenants.iter().position(|one| *one == tenant));
            if let Some(earlier) = same {
                return Err(format!(
                    "drives {earlier} and {number} are one, tenant {:?} of {}: name each once",
                    drive.tenant,
                    drive.control.display()
                ));
            }
            exports.push(export);
            tenants.push(tenant);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (key, value, part) in [
            ("schema", json!(2), "schema 2"),
            ("drives", json!([]), "drives is empty"),
            ("depth", json!(0), "depth is 0"),
            ("mix", json!("x"), "mix: there is no YCSB workload \"x\""),
            ("mix", json!({"read": 2}), "add up to 2"),
            (
                "drives",
                json!([{"uri": "ftp://x", "control": "c", "tenant": "a"}]),
                "drive \"a\": uri",
            ),
            (
                "drives",
                json!([{"uri": "nbd+unix:///b?socket=/x", "control": "/c", "tenant": "a"}]),
                "drive \"a\": uri: its export is \"b\"",
            ),
            (
                "drives",
                json!([{"uri": "nbd+unix:///a?socket=/x", "control": "/c", "tenant": "a"},
                       {"uri": "nbd+unix:///a?socket=/y", "control": "/d", "tenant": "a"},
                       {"uri": "nbd+unix:///a?socket=%2Fx", "control": "/e", "tenant": "a"}]),
                "drives 0 and 2 are one",
            ),
            (
                "drives",
                json!([{"uri": "nbd+unix:///a?socket=/x", "control": "/c", "tenant": "a"},
                       {"uri": "nbd://host/a", "control": "/c", "tenant": "a"}]),
                "drives 0 and 1 are one",
            ),
            ("tree", json!({"depth": 1}), "unknown field `depth`"),
        ] {
            let mut document = json!({
                "schema": 1, "mix": "a", "records": 1, "depth": 1, "operations": 1,
                "drives": [{"uri": "nbd+unix:///a?socket=/x", "control": "/c", "tenant": "a"}],
            });
            Document::parse(&document.to_string()).unwrap();
            document[key] = value;
            let said = Document::parse(&Value::to_string(&document)).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}

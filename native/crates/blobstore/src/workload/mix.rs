//! Mixes of operations.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::refusal::Refusal;

/// The choice of the record of a get, a put or a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestDistribution {
    /// By popularity, popular records scattered over all keys (YCSB's `zipfian`).
    #[default]
    Zipfian,
    /// By popularity, the newest record most popular.
    Latest,
    /// All alike.
    Uniform,
}

/// Shares of operations; they add up to 1. In a document it may also be the letter of one of YCSB's workloads.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Mix {
    /// Gets.
    pub read: f64,
    /// Puts of records that exist.
    pub update: f64,
    /// Puts of new records.
    pub insert: f64,
    /// Scans, of 1 to 100 records, all lengths alike.
    pub scan: f64,
    /// Gets with a put of the same record after them.
    pub read_modify_write: f64,
    /// The choice of records.
    pub distribution: RequestDistribution,
}

/// The shares in a document.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Shares {
    read: f64,
    update: f64,
    insert: f64,
    scan: f64,
    read_modify_write: f64,
    distribution: RequestDistribution,
}

impl TryFrom<Value> for Mix {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let mix = match value.as_str() {
            Some(letter) => Self::ycsb(letter),
            None => {
                let shares: Shares =
                    serde_json::from_value(value).map_err(|error| format!("mix: {error}"))?;
                let mix = Self {
                    read: shares.read,
                    update: shares.update,
                    insert: shares.insert,
                    scan: shares.scan,
                    read_modify_write: shares.read_modify_write,
                    distribution: shares.distribution,
                };
                mix.check().map(|()| mix)
            }
        };
        mix.map_err(|refusal| format!("mix: {refusal}"))
    }
}

const NOTHING: Mix = Mix {
    read: 0.0,
    update: 0.0,
    insert: 0.0,
    scan: 0.0,
    read_modify_write: 0.0,
    distribution: RequestDistribution::Zipfian,
};

/// The core workloads by their letters: Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010, table 2,
/// and the files workloads/workloada to workloadf of YCSB 0.17.
pub const YCSB: [(&str, Mix); 6] = [
    (
        "a",
        Mix {
            read: 0.5,
            update: 0.5,
            ..NOTHING
        },
    ),
    (
        "b",
        Mix {
            read: 0.95,
            update: 0.05,
            ..NOTHING
        },
    ),
    (
        "c",
        Mix {
            read: 1.0,
            ..NOTHING
        },
    ),
    (
        "d",
        Mix {
            read: 0.95,
            insert: 0.05,
            distribution: RequestDistribution::Latest,
            ..NOTHING
        },
    ),
    (
        "e",
        Mix {
            scan: 0.95,
            insert: 0.05,
            ..NOTHING
        },
    ),
    (
        "f",
        Mix {
            read: 0.5,
            read_modify_write: 0.5,
            ..NOTHING
        },
    ),
];

impl Mix {
    /// One of YCSB's by its letter.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], with the letters that there are.
    pub fn ycsb(letter: &str) -> Result<Self, Refusal> {
        let found = YCSB.iter().find(|(name, _)| *name == letter);
        found.map(|(_, mix)| *mix).ok_or_else(|| {
            Refusal::Invalid(format!(
                "there is no YCSB workload {letter:?}; give a, b, c, d, e or f"
            ))
        })
    }

    /// The shares, in the order of the fields.
    #[must_use]
    pub fn shares(&self) -> [f64; 5] {
        [
            self.read,
            self.update,
            self.insert,
            self.scan,
            self.read_modify_write,
        ]
    }

    /// Check that the shares are some, and add up to 1.
    ///
    /// # Errors
    /// [`Refusal::Invalid`].
    pub fn check(&self) -> Result<(), Refusal> {
        let shares = self.shares();
        let sum: f64 = shares.iter().sum();
        if shares.iter().all(|share| (0.0..=1.0).contains(share)) && (sum - 1.0).abs() < 1e-6 {
            return Ok(());
        }
        Err(Refusal::Invalid(format!(
            "the shares of the mix add up to {sum}; give shares from 0 to 1 that add up to 1"
        )))
    }
}

//! Tenants: their description, and the objective some of them declare.

use serde::{Deserialize, Serialize};

use crate::document;
use crate::refusal::Refusal;

/// A tenant that has joined a scheduler. An id is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TenantId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The description of a tenant. Schedulers ignore what they have no use for, so that all of them run on the same tenants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub struct Tenant {
    /// Its name, unique in a scheduler.
    pub name: String,
    /// Its share relative to those of the others, for FlashFQ and Parda.
    pub weight: f64,
    /// The objective of a latency-critical tenant, for ReFlex; without it a tenant is best effort.
    pub slo: Option<Slo>,
    /// Whether the tenant promises never to write, so that ReFlex may use the curve of a read-only load.
    pub read_only: bool,
}

/// A service level objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Requests of 4 KiB a second.
    pub iops: f64,
    /// Share of reads among them.
    pub read_percent: f64,
    /// The bound on the 95th percentile of read latency.
    pub p95_us: f64,
}

#[derive(Deserialize)]
struct Fields {
    name: String,
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    slo: Option<Slo>,
    #[serde(default)]
    read_only: bool,
}

fn one() -> f64 {
    1.0
}

impl Tenant {
    /// A best-effort tenant of weight 1.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            weight: 1.0,
            slo: None,
            read_only: false,
        }
    }

    /// Check the description; the error names the tenant, the key and its range.
    pub fn check(&self) -> Result<(), Refusal> {
        let wrong = |what: String| Err(Refusal::Invalid(format!("tenant {:?}: {what}", self.name)));
        if self.name.is_empty() {
            return Err(Refusal::Invalid("a tenant's name is empty".to_owned()));
        }
        if !(1e-6..=1e6).contains(&self.weight) {
            return wrong(format!(
                "weight is {}; give 0.000001 to 1000000",
                self.weight
            ));
        }
        let Some(slo) = self.slo else {
            return Ok(());
        };
        if !(slo.iops > 0.0 && slo.iops <= 1e9) {
            return wrong(format!(
                "slo.iops is {}; give above 0 to 1000000000",
                slo.iops
            ));
        }
        if !(0.0..=100.0).contains(&slo.read_percent) {
            return wrong(format!(
                "slo.read_percent is {}; give 0 to 100",
                slo.read_percent
            ));
        }
        if !(slo.p95_us > 0.0 && slo.p95_us <= 1e9) {
            return wrong(format!(
                "slo.p95_us is {}; give above 0 to 1000000000",
                slo.p95_us
            ));
        }
        if self.read_only && slo.read_percent < 100.0 {
            return wrong(format!(
                "read_only contradicts slo.read_percent {}; give 100",
                slo.read_percent
            ));
        }
        Ok(())
    }

    /// Whether the tenant never writes.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        self.read_only || self.slo.is_some_and(|slo| slo.read_percent >= 100.0)
    }
}

impl TryFrom<serde_json::Value> for Tenant {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let known = Self {
            slo: Some(Slo {
                iops: 1.0,
                read_percent: 100.0,
                p95_us: 1.0,
            }),
            ..Self::named("a")
        };
        document::check_names(&value, &serde_json::json!(known), "a tenant")?;
        if value.get("name").is_none() {
            return Err("a tenant needs a name".to_owned());
        }
        let Fields {
            name,
            weight,
            slo,
            read_only,
        } = serde_json::from_value(value).map_err(|error| format!("tenant: {error}"))?;
        let tenant = Self {
            name,
            weight,
            slo,
            read_only,
        };
        tenant.check().map_err(|refusal| refusal.to_string())?;
        Ok(tenant)
    }
}

//! The tenants of the configuration.

use std::fmt::Display;

use schedulers::{Priority, Tenant};
use serde::Deserialize;
use serde_json::Value;

use crate::region::Region;

/// A tenant: what its scheduler is told, and where its blocks lie.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub struct TenantConfig {
    pub tenant: Tenant,
    pub priority: Priority,
    /// The name of its drive; it may be left out where there is only one.
    pub drive: Option<String>,
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
        let mut taken = |key: &str| fields.remove(key).filter(|field| !field.is_null());
        let (region, priority, drive) = (taken("region"), taken("priority"), taken("drive"));
        let region = region.map(serde_json::from_value).transpose();
        let priority = priority.map(serde_json::from_value).transpose();
        let drive = drive.map(serde_json::from_value).transpose();
        Ok(Self {
            region: region.map_err(|error| wrong("region", &error))?,
            priority: priority
                .map_err(|error| wrong("priority", &error))?
                .unwrap_or_default(),
            drive: drive.map_err(|error| wrong("drive", &error))?,
            tenant: serde_json::from_value(value).map_err(|error| error.to_string())?,
        })
    }
}

impl TenantConfig {
    /// Its name, which is that of its export.
    pub fn name(&self) -> &str {
        &self.tenant.name
    }
}

//! The error of an invalid configuration.

/// An invalid configuration: what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

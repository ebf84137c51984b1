//! The error of an invalid configuration.

use std::fmt;

/// An invalid configuration: what is wrong, where, and what to do.
#[derive(Debug)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

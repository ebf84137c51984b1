//! The error of a configuration that cannot be used.

use std::fmt;

/// A configuration that cannot be used: what is wrong, where, and what to do.
#[derive(Debug)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

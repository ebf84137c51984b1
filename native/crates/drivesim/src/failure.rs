//! Failures and their exit statuses.

/// One line for a person; its kind decides the exit status.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input is wrong: exit status 2.
    #[error("{0}")]
    BadInput(String),
    /// The model did not behave as a drive: exit status 3.
    #[error("{0}")]
    Model(String),
}

impl Failure {
    /// The exit status of the process.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::BadInput(_) => 2,
            Self::Model(_) => 3,
        }
    }
}

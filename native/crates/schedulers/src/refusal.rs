//! Refusals of a scheduler.

/// An input that a scheduler refuses. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An objective that the drive cannot meet beside those it was given before, with the arithmetic.
    #[error("CANTMEETSLO: {0}")]
    CannotMeetSlo(String),
    /// A value outside of its range.
    #[error("{0}")]
    Invalid(String),
    /// A second tenant of a name.
    #[error("tenant {0:?} has joined already: give another name, or let it leave first")]
    NameTaken(String),
    /// A tenant that has left, or that belongs to another scheduler.
    #[error("no such tenant: it never joined, or has left")]
    NoSuchTenant,
    /// A request that has completed already or was never dispatched.
    #[error("no such request at the drive: it was never dispatched, or has completed")]
    NotAtDrive,
}

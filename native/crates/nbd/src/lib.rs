//! The NBD wire protocol (the `proto.md` document of the NBD project) and its client half. The server half is the crate
//! `nbdserver`.

pub mod client;
mod negotiation;
pub mod proto;
mod stream;
pub mod uri;

pub use negotiation::Export;
pub use stream::{Error, Patience};

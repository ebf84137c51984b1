//! The NBD wire protocol (the `proto.md` document of the NBD project), shared by rackd's server and rackprobe's client.

pub mod client;
mod negotiation;
pub mod proto;
mod stream;
pub mod uri;

pub use negotiation::Export;
pub use stream::{Error, Patience};

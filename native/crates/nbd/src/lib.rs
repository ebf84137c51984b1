//! The NBD wire protocol (the `proto.md` document of the NBD project), shared by rackd's server, rackprobe's client and its
//! server of one drive.

pub mod client;
mod negotiation;
pub mod proto;
pub mod server;
mod stream;
pub mod uri;

pub use negotiation::Export;
pub use stream::{Error, Patience};

//! The NBD wire protocol (the `proto.md` document of the NBD project), shared by rackd's server and rackprobe's client.

pub mod proto;

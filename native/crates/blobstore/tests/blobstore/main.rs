//! The client on a bench: what its parts promise, whatever drives and workloads do.

mod allocator;
mod bench;
mod client;
mod database;
mod workload;

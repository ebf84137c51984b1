//! The client of a pool of shared drives, as pure state machines: an allocator of blobs in two levels, replicas, a rate
//! limiter by credit, reads steered by credit, and a key-value store on it in the manner of RocksDB, with the workloads of
//! YCSB.
//!
//! After the client of Gimbal (Min et al., SIGCOMM 2021, section 1: a hierarchical blob allocator, an I/O rate limiter and
//! a load balancer). Requests to drives come out, their completions go in with the credit that the drive's switch gives;
//! time is an argument. Nothing here reads a clock, starts a thread or performs I/O, so the same code runs in virtual time
//! and against storage switches.
//!
//! ```
//! use blobstore::{Client, ClientOptions, Database, GlobalAllocator, Layout, PoolDrive, Query, TreeOptions};
//! use schedulers::Outcome;
//!
//! let drives = [0, 1].map(|in_box| PoolDrive { in_box, bytes: 1 << 30 });
//! let mut global = GlobalAllocator::new(Layout::default(), &drives).unwrap();
//! let client = Client::new(ClientOptions::default(), drives.len());
//! let mut database = Database::new(TreeOptions::default(), client, &global).unwrap();
//! database.start(7, Query::Put(1), &mut global, 0);
//! let mut now_ns = 0;
//! while let Some(io) = database.next_io() {
//!     now_ns += 20_000;
//!     database.complete(io.id, Outcome::Succeeded, Some(32), &mut global, now_ns);
//! }
//! let mut finished = Vec::new();
//! database.take_finished(&mut finished);
//! assert_eq!((finished[0].token, finished[0].latency_ns), (7, 40_000), "both replicas are written");
//! ```

mod allocator;
mod client;
mod drives;
mod limiter;
mod lsm;
mod refusal;
mod workload;

pub use allocator::{GlobalAllocator, LocalAllocator, Unit};
pub use client::{Client, ClientOptions, Ended, Io, IoFailure, Steering, PASSED_OVER};
pub use drives::{DriveId, Extent, Layout, PoolDrive};
pub use limiter::Limiter;
pub use lsm::{Answer, Counters, Database, Entry, Finished, Query, TreeOptions};
pub use refusal::Refusal;
pub use workload::{key_of, Mix, RequestDistribution, Workload, YCSB, ZIPF_CONSTANT};

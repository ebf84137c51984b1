//! The workloads of YCSB: mixes of operations, and the choice of records.

mod mix;
mod records;

pub use mix::{Mix, RequestDistribution, YCSB};
pub use records::{key_of, Workload, ZIPF_CONSTANT};

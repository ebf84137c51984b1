//! A tree of sorted tables in the manner of RocksDB: puts go to a log and a memtable, full memtables are flushed to tables,
//! tables are compacted level by level. It holds keys and versions of records; their bytes follow from these.

mod background;
mod content;
mod counters;
mod database;
mod levels;
mod log;
mod lookups;
mod options;
mod table;
mod tasks;

pub use counters::Counters;
pub use database::{Database, Finished, Query};
pub use options::TreeOptions;
pub use table::Entry;
pub use tasks::Answer;

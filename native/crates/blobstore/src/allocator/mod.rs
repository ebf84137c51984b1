//! The hierarchical allocator: a global one hands out large units, a local one blobs out of them.

mod global;
mod local;

pub use global::{GlobalAllocator, Unit};
pub use local::LocalAllocator;

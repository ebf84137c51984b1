//! The storage below simulated and shared drives: memory that many connections read and write at once, or a file.

mod backing;
mod memory;

pub use backing::Backing;
pub use memory::Memory;

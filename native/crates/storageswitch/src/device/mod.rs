//! The ways to a drive.

mod lanes;
mod memory;
mod model;
mod pipes;
mod ring;
mod turns;

use std::sync::Arc;

use nbdserver::Bytes;
use serde_json::Value;

use crate::front::Front;
use crate::job::{Done, Job, Work};

pub use lanes::Lanes;
pub use memory::AtOnce;
pub use model::Model;
pub use pipes::Pipes;
pub use ring::{Files, Ring};

/// A drive that carries out requests. What is not done at once is given to [`Front::finish`] later.
pub trait Device: Send + Sync {
    /// The name of the way to the drive, as clients of the control socket know it.
    fn access(&self) -> &'static str;

    /// Begin requests, in this order; those that are done at once are added to `done`.
    fn submit(&self, work: &mut Vec<Work>, done: &mut Vec<Done>);

    /// Carry out a request that passes the scheduler by, if that can be done at once.
    fn attempt(&self, _job: &Job, _bytes: Bytes<'_>) -> Option<Result<(), u32>> {
        None
    }

    /// Requests that were dispatched and have not reached the drive.
    fn waiting(&self) -> usize {
        0
    }

    /// The lateness of completions, where the drive is a model that has a time for each.
    fn lateness(&self) -> Option<Value> {
        None
    }

    /// Start the threads, which end with the process.
    fn start(self: Arc<Self>, _shard: &Arc<dyn Front>) {}
}

//! An ideal drive: memory, whose requests the dispatching thread carries out.

use backing::Backing;
use nbdserver::Bytes;
use realtime::now_ns;

use crate::device::Device;
use crate::job::{Done, Job, Work};
use crate::store::{carry_out, Store};

/// Storage that answers without delay.
pub struct AtOnce(pub Backing);

impl Device for AtOnce {
    fn access(&self) -> &'static str {
        "memory"
    }

    fn submit(&self, work: &mut Vec<Work>, done: &mut Vec<Done>) {
        let mut since_ns = now_ns();
        for mut work in work.drain(..) {
            let result = carry_out(&mut work, |job, bytes| self.0.perform(job, bytes));
            let at_ns = now_ns();
            done.push(work.done(result, since_ns, at_ns));
            since_ns = at_ns;
        }
    }

    fn attempt(&self, job: &Job, bytes: Bytes<'_>) -> Option<Result<(), u32>> {
        Some(self.0.perform(job, bytes))
    }
}

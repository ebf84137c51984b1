//! The side of a drive that its requests come from and return to.

use std::sync::Arc;
use std::thread;

use nbdserver::Gathering;

use crate::job::{Done, Pending, Work};

/// The scheduler and the clients of a drive, as its device sees them.
pub trait Front: Send + Sync {
    /// Take note of what the drive has done, and do everything that can be done then.
    fn finish(&self, hands: &mut Hands);

    /// Keep the calling thread on the processor of the drive, where it has one of its own.
    fn pin(&self);
}

/// Start a thread on the processor of a drive; it ends with the process.
pub fn spawn(front: &Arc<dyn Front>, work: impl FnOnce(Arc<dyn Front>) + Send + 'static) {
    let front = front.clone();
    thread::spawn(move || {
        front.pin();
        work(front);
    });
}

/// Lists that are used again.
#[derive(Default)]
pub struct Hands {
    pub work: Vec<Work>,
    pub done: Vec<Done>,
    pub refused: Vec<(Pending, u32)>,
    gathering: Gathering,
}

impl Hands {
    /// Answer what is done and what was refused, with one send to each client.
    pub fn answer(&mut self) {
        let done = self.done.drain(..);
        let done = done.map(|done| (done.work.pending, done.result));
        let refused = self.refused.drain(..);
        let all = done.chain(refused.map(|(pending, code)| (pending, Err(code))));
        for (pending, result) in all {
            self.gathering.include(&pending);
            pending.answer(result);
            if self.gathering.is_enough() {
                self.gathering.send();
            }
        }
        self.gathering.send();
    }
}

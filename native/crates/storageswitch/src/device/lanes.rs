//! A drive with threads that carry out one request at a time each.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use realtime::now_ns;

use crate::device::turns::Turns;
use crate::device::Device;
use crate::front::{spawn, Front, Hands};
use crate::job::{Done, Work};
use crate::store::{carry_out, Store};

/// Threads, and the requests that wait for a free one.
pub struct Lanes {
    store: Arc<dyn Store>,
    threads: usize,
    queue: Mutex<Turns>,
    queued: Condvar,
}

impl Lanes {
    pub fn new(store: Arc<dyn Store>, threads: usize) -> Self {
        Self {
            store,
            threads,
            queue: Mutex::default(),
            queued: Condvar::new(),
        }
    }

    /// Carry out requests in one thread, for ever.
    fn work(&self, shard: &dyn Front) {
        let mut hands = Hands::default();
        loop {
            let mut queue = self.queue.lock();
            let mut work = loop {
                match queue.pop() {
                    Some(work) => break work,
                    None => self.queued.wait(&mut queue),
                }
            };
            drop(queue);
            let since_ns = now_ns();
            let result = carry_out(&mut work, |job, bytes| self.store.perform(job, bytes));
            let at_ns = now_ns();
            let mut queue = self.queue.lock();
            queue.done(&work);
            if queue.is_ready() {
                self.queued.notify_one();
            }
            drop(queue);
            hands.done.push(work.done(result, since_ns, at_ns));
            shard.finish(&mut hands);
        }
    }
}

impl Device for Lanes {
    fn access(&self) -> &'static str {
        "threads"
    }

    fn submit(&self, work: &mut Vec<Work>, _done: &mut Vec<Done>) {
        let count = work.len();
        let mut queue = self.queue.lock();
        work.drain(..).for_each(|work| queue.push(work));
        drop(queue);
        match count {
            1 => drop(self.queued.notify_one()),
            _ => drop(self.queued.notify_all()),
        }
    }

    fn waiting(&self) -> usize {
        self.queue.lock().len()
    }

    fn start(self: Arc<Self>, shard: &Arc<dyn Front>) {
        for _ in 0..self.threads {
            let lanes = self.clone();
            spawn(shard, move |shard| lanes.work(&*shard));
        }
    }
}

//! A thread that flushes storage for timed requests, so that the timer does not block.

use std::io;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;

use crate::drive::{Drive, Pending};

/// A handle to the flusher thread.
pub struct Flusher(Sender<(Arc<Drive>, Pending)>);

impl Flusher {
    /// Start the thread.
    pub fn start() -> io::Result<Self> {
        let (sender, receiver) = channel::<(Arc<Drive>, Pending)>();
        thread::Builder::new()
            .name("flusher".into())
            .spawn(move || {
                for (drive, pending) in receiver {
                    pending.answer(drive.flush());
                }
            })?;
        Ok(Self(sender))
    }

    /// Flush the storage of a drive, then answer a request that was executed.
    pub fn flush(&self, drive: Arc<Drive>, pending: Pending) {
        // The thread lives as long as the process.
        let _ = self.0.send((drive, pending));
    }
}

//! A thread that flushes storage for timed requests, so that the timer does not block.

use std::io;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;

use crate::drive::{Drive, Pending};

/// A request to flush for, and what follows its answer, with whether that was good.
struct Flush {
    drive: Arc<Drive>,
    pending: Pending,
    then: Box<dyn FnOnce(bool) + Send>,
}

/// A handle to the flusher thread.
pub struct Flusher(Sender<Flush>);

impl Flusher {
    /// Start the thread.
    pub fn start() -> io::Result<Self> {
        let (sender, receiver) = channel::<Flush>();
        thread::Builder::new()
            .name("flusher".into())
            .spawn(move || {
                for Flush {
                    drive,
                    pending,
                    then,
                } in receiver
                {
                    let flushed = drive.flush();
                    pending.answer(flushed);
                    then(flushed.is_ok());
                }
            })?;
        Ok(Self(sender))
    }

    /// Flush the storage of a drive, then answer a request that was executed, then do what follows.
    pub fn flush(
        &self,
        drive: Arc<Drive>,
        pending: Pending,
        then: impl FnOnce(bool) + Send + 'static,
    ) {
        let then = Box::new(then);
        // The thread lives as long as the process.
        let _ = self.0.send(Flush {
            drive,
            pending,
            then,
        });
    }
}

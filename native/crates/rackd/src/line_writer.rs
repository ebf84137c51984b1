//! Writing whole lines to a client of the control socket from several threads.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

/// Writes whole lines to a client from several threads.
pub struct LineWriter {
    stream: Mutex<UnixStream>,
}

impl LineWriter {
    /// A writer to a client.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream: Mutex::new(stream),
        }
    }

    /// Write lines, waiting while the client does not read.
    pub fn write(&self, lines: &[u8]) -> io::Result<()> {
        self.stream.lock().write_all(lines)
    }
}

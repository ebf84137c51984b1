//! Writing whole lines to a client of the control socket from several threads.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

/// Writes whole lines to a client from several threads.
pub struct LineWriter(pub Mutex<UnixStream>);

impl LineWriter {
    /// Write lines, waiting while the client does not read.
    ///
    /// # Errors
    /// As the socket has them.
    pub fn write(&self, lines: &[u8]) -> io::Result<()> {
        self.0.lock().write_all(lines)
    }
}

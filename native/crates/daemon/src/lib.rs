//! The common parts of programs that run in the background: the command line, the end with a parent or a panic, and the
//! lines of JSON of control sockets, and a timer.

mod args;
pub mod control;
mod line_writer;
mod panic;
mod parent;
mod timer;

use std::io::{self, Write};
use std::net::SocketAddr;

use serde_json::json;

pub use args::{Args, Invocation};
pub use line_writer::LineWriter;
pub use panic::abort_on_panic;
pub use parent::end_with_parent;
pub use timer::Timer;

/// Say on standard output that a program answers, with the address of its NBD server where it has one by TCP.
///
/// # Errors
/// One line, where it cannot be written: who started the program never learns that it answers.
pub fn say_ready(tcp: Option<SocketAddr>) -> Result<(), String> {
    let (pid, t_ns) = (std::process::id(), realtime::now_ns());
    let line = json!({"event": "ready", "pid": pid, "t_ns": t_ns, "nbd_tcp": tcp});
    writeln!(io::stdout(), "{line}").map_err(|error| format!("standard output: {error}"))
}

//! The operations of the control socket.

use std::os::unix::net::UnixStream;

use daemon::control::{answer, refusal, serve_lines, Asked, Fields};
use realtime::now_ns;

use crate::switch::Switch;

/// Serve one client until it disconnects.
pub fn serve(stream: &UnixStream, switch: &Switch) {
    // The only error is a disconnected client.
    let _ = serve_lines(stream, |asked, writer| {
        writer.write(&match run(&asked, switch) {
            Ok(fields) => answer(asked.id, now_ns(), fields),
            Err(what) => refusal(asked.id, "bad_request", &what),
        })
    });
}

fn run(asked: &Asked, switch: &Switch) -> Result<Fields, String> {
    if let Some(name) = asked.fields.keys().next() {
        return Err(format!("{} takes no field {name:?}", asked.op));
    }
    match asked.op.as_str() {
        "state" => Ok(switch.state()),
        op => Err(format!("there is no op {op:?}; known: state")),
    }
}

//! The control socket: one JSON object per line for each request and each answer.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use daemon::control::{answer, refusal, serve_lines, Asked, Fields};
use daemon::LineWriter;
use realtime::now_ns;
use serde_json::Value;

use crate::ops;
use crate::request::{read, OpError, SubscribeFields};
use crate::running_rack::RunningRack;

/// Serve one client until it disconnects.
pub fn serve(stream: &UnixStream, running: &Arc<RunningRack>) {
    // The only error is a disconnected client.
    let _ = serve_lines(stream, |asked, writer| take(asked, writer, stream, running));
}

fn take(
    Asked { id, op, fields }: Asked,
    writer: &Arc<LineWriter>,
    stream: &UnixStream,
    running: &Arc<RunningRack>,
) -> io::Result<()> {
    if op == "sanitize" {
        // A sanitize takes long; other requests of this client do not wait for it.
        let (running, of_thread) = (running.clone(), (id.clone(), writer.clone()));
        let erase = move || {
            let (id, writer) = of_thread;
            // The client may have disconnected.
            let _ = writer.write(&reply(id, ops::run(&running, &op, fields)));
        };
        if let Err(error) = thread::Builder::new().spawn(erase) {
            writer.write(&refused(id, &no_thread(&error)))?;
        }
        return Ok(());
    }
    if op == "subscribe" {
        return match read::<SubscribeFields>(fields).and_then(SubscribeFields::known) {
            Ok(events) => {
                let truth = &running.shared().truth;
                let told = answer(id.clone(), now_ns(), Fields::new());
                let socket = stream.try_clone()?;
                match truth.subscribe(writer.clone(), socket, told, events) {
                    Ok(()) => Ok(()),
                    Err(error) => writer.write(&refused(id, &no_thread(&error))),
                }
            }
            Err(error) => writer.write(&refused(id, &error)),
        };
    }
    writer.write(&reply(id, ops::run(running, &op, fields)))
}

fn no_thread(error: &io::Error) -> OpError {
    OpError::new("busy", format!("no thread can be had for it: {error}"))
}

fn reply(id: Value, result: ops::Answer) -> Vec<u8> {
    match result {
        Ok((t_ns, fields)) => answer(id, t_ns, fields),
        Err(error) => refused(id, &error),
    }
}

fn refused(id: Value, error: &OpError) -> Vec<u8> {
    refusal(id, error.code, &error.message)
}

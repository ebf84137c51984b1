//! The control socket: one JSON object per line for each request and each answer.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use realtime::now_ns;
use serde_json::{json, Value};

use crate::line_writer::LineWriter;
use crate::ops;
use crate::request::{Fields, OpError};
use crate::running_rack::RunningRack;

/// Maximum length of a request.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Serve one client until it disconnects.
pub fn serve(stream: UnixStream, running: &Arc<RunningRack>) {
    // The only error is a disconnected client.
    let _ = serve_lines(stream, running);
}

fn serve_lines(stream: UnixStream, running: &Arc<RunningRack>) -> io::Result<()> {
    let writer = Arc::new(LineWriter(stream.try_clone()?.into()));
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if reader.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() > MAX_LINE_BYTES {
            writer.write(&refusal(
                Value::Null,
                &OpError::bad_request("the line is longer than 1 MiB"),
            ))?;
            reader.skip_until(b'\n')?;
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let (id, op, fields) = match parse(&line) {
            Ok(request) => request,
            Err(error) => {
                writer.write(&refusal(Value::Null, &error))?;
                continue;
            }
        };
        if op == "sanitize" {
            // A sanitize takes long; other requests of this client do not wait for it.
            let (running, writer) = (running.clone(), writer.clone());
            let of_thread = (id.clone(), writer.clone());
            let erase = move || {
                let (id, writer) = of_thread;
                // The client may have disconnected.
                let _ = writer.write(&reply(id, ops::run(&running, &op, fields)));
            };
            if let Err(error) = thread::Builder::new().spawn(erase) {
                writer.write(&refusal(id, &no_thread(&error)))?;
            }
            continue;
        }
        match ops::run(running, &op, fields) {
            Ok((t_ns, fields)) if op == "subscribe" => {
                let truth = &running.shared().truth;
                let told = answer(id.clone(), t_ns, fields);
                let subscribed = truth.subscribe(writer.clone(), stream.try_clone()?, told);
                if let Err(error) = subscribed {
                    writer.write(&refusal(id, &no_thread(&error)))?;
                }
            }
            result => writer.write(&reply(id, result))?,
        }
    }
}

fn no_thread(error: &io::Error) -> OpError {
    OpError::new("busy", format!("no thread can be had for it: {error}"))
}

fn reply(id: Value, result: ops::Answer) -> Vec<u8> {
    match result {
        Ok((t_ns, fields)) => answer(id, t_ns, fields),
        Err(error) => refusal(id, &error),
    }
}

/// The request's id, its operation, and its other fields.
fn parse(line: &[u8]) -> Result<(Value, String, Fields), OpError> {
    let mut fields: Fields = serde_json::from_slice(line)
        .map_err(|error| OpError::bad_request(format!("no JSON object: {error}")))?;
    let id = fields.remove("id").filter(|id| !id.is_null());
    let id = id.ok_or_else(|| OpError::bad_request("the request has no id"))?;
    match fields.remove("op") {
        Some(Value::String(op)) => Ok((id, op, fields)),
        _ => Err(OpError::bad_request("the request has no op")),
    }
}

fn answer(id: Value, t_ns: u64, fields: Fields) -> Vec<u8> {
    let mut answer = fields;
    answer.insert("id".into(), id);
    answer.insert("ok".into(), true.into());
    answer.insert("t_ns".into(), t_ns.into());
    line(Value::Object(answer))
}

fn refusal(id: Value, error: &OpError) -> Vec<u8> {
    let error = json!({"code": error.code, "message": error.message});
    line(json!({"id": id, "ok": false, "t_ns": now_ns(), "error": error}))
}

fn line(value: Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

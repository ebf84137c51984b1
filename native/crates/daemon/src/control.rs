//! Control sockets: one JSON object per line for each request and each answer.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use realtime::now_ns;
use serde_json::{json, Map, Value};

use crate::line_writer::LineWriter;

/// Maximum length of a request.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The members of a JSON object.
pub type Fields = Map<String, Value>;

/// A request.
#[derive(Debug)]
pub struct Asked {
    /// Its id, which the answer repeats.
    pub id: Value,
    /// The operation.
    pub op: String,
    /// Its other fields.
    pub fields: Fields,
}

/// Hand each request of a client to `take`, which answers it, and refuse what is none, until the client disconnects.
///
/// # Errors
/// As the connection and `take` have them.
pub fn serve_lines(
    stream: &UnixStream,
    mut take: impl FnMut(Asked, &Arc<LineWriter>) -> io::Result<()>,
) -> io::Result<()> {
    let writer = Arc::new(LineWriter(stream.try_clone()?.into()));
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if reader.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // With its end the line is whole, and what follows is the next one.
        if line.len() > MAX_LINE_BYTES && !line.ends_with(b"\n") {
            writer.write(&bad_line("the line is longer than 1 MiB"))?;
            reader.skip_until(b'\n')?;
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match parse(&line) {
            Ok(asked) => take(asked, &writer)?,
            Err(what) => writer.write(&bad_line(&what))?,
        }
    }
}

fn parse(line: &[u8]) -> Result<Asked, String> {
    let mut fields: Fields =
        serde_json::from_slice(line).map_err(|error| format!("no JSON object: {error}"))?;
    let id = fields.remove("id").filter(|id| !id.is_null());
    let id = id.ok_or("the request has no id")?;
    match fields.remove("op") {
        Some(Value::String(op)) => Ok(Asked { id, op, fields }),
        _ => Err("the request has no op".to_owned()),
    }
}

/// The line that answers a request with what came of it at `t_ns`.
#[must_use]
pub fn answer(id: Value, t_ns: u64, mut fields: Fields) -> Vec<u8> {
    fields.insert("id".into(), id);
    fields.insert("ok".into(), true.into());
    fields.insert("t_ns".into(), t_ns.into());
    line(Value::Object(fields))
}

/// The line that tells of an event at `t_ns`, which a request with this id asked to be told of.
#[must_use]
pub fn event(name: &str, id: Value, t_ns: u64, mut fields: Fields) -> Vec<u8> {
    fields.insert("event".into(), name.into());
    fields.insert("id".into(), id);
    fields.insert("t_ns".into(), t_ns.into());
    line(Value::Object(fields))
}

/// The line that refuses a request, with the reason in one word and for people.
#[must_use]
pub fn refusal(id: Value, code: &str, message: &str) -> Vec<u8> {
    let error = json!({"code": code, "message": message});
    line(json!({"id": id, "ok": false, "t_ns": now_ns(), "error": error}))
}

fn bad_line(what: &str) -> Vec<u8> {
    refusal(Value::Null, "bad_request", what)
}

fn line(value: Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Shutdown;
    use std::thread;

    use super::*;

    /// The ids in what a client is answered that sends this.
    fn answered(sent: &[u8]) -> Vec<Value> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let served = thread::spawn(move || {
            serve_lines(&theirs, |asked, writer| {
                writer.write(&answer(asked.id, 0, Fields::new()))
            })
        });
        (&ours).write_all(sent).unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        served.join().unwrap().unwrap();
        let lines = BufReader::new(ours).lines();
        let ids = lines.map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            line["id"].clone()
        });
        ids.collect()
    }

    /// A request of so many bytes and its end.
    fn request(id: u64, bytes: usize) -> Vec<u8> {
        let mut line = json!({"id": id, "op": "state"}).to_string().into_bytes();
        line.resize(bytes.max(line.len()), b' ');
        line.push(b'\n');
        line
    }

    #[test]
    fn the_request_behind_the_longest_line_is_answered() {
        for bytes in [MAX_LINE_BYTES - 1, MAX_LINE_BYTES] {
            let sent = [request(1, bytes), request(2, 0)].concat();
            assert_eq!(answered(&sent), [1, 2], "{bytes}");
        }
        let sent = [request(1, MAX_LINE_BYTES + 1), request(2, 0)].concat();
        assert_eq!(answered(&sent), [Value::Null, 2.into()]);
    }
}

//! The operations of the control socket.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use daemon::control::{answer, event, refusal, serve_lines, Asked, Fields};
use daemon::LineWriter;
use realtime::now_ns;
use serde_json::{json, Value};

use crate::share::{Share, Watch};
use crate::switch::{Seat, Switch};

/// The least time between two lines of a watch, unless its client asks for another.
const EVERY_US: u64 = 1000;

/// The most that a client may ask for.
const MOST_EVERY_US: u64 = 60_000_000;

/// A watch of a client, which ends with its connection.
struct Watching {
    seat: Seat,
    watch: Arc<Watch>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watch.end();
        self.seat.shard.unwatch(self.seat.tenant, &self.watch);
    }
}

/// Serve one client until it disconnects.
pub fn serve(stream: &UnixStream, switch: &Switch) {
    let mut watches = Vec::new();
    // The only error is a disconnected client.
    let _ = serve_lines(stream, |asked, writer| {
        let id = asked.id.clone();
        match run(asked, switch) {
            Ok(Answer::Fields(fields)) => writer.write(&answer(id, now_ns(), fields)),
            Ok(Answer::Watch(seat, every)) => {
                let watch = Arc::new(Watch::default());
                let share = seat.shard.watch(seat.tenant, &watch);
                watches.push(Watching {
                    seat: seat.clone(),
                    watch: watch.clone(),
                });
                let first = answer(id.clone(), now_ns(), fields_of(&seat, share));
                writer.write(&first)?;
                let writer = writer.clone();
                thread::Builder::new()
                    .spawn(move || push(&writer, &id, &seat, &watch, every))
                    .map(drop)
            }
            Err(what) => writer.write(&refusal(id, "bad_request", &what)),
        }
    });
}

/// Write a line for each change, until the watch or its client ends.
fn push(writer: &LineWriter, id: &Value, seat: &Seat, watch: &Watch, every: Duration) {
    while let Some(told) = watch.take() {
        let line = event("view", id.clone(), told.t_ns, fields_of(seat, told.share));
        if writer.write(&line).is_err() {
            return;
        }
        thread::sleep(every);
    }
}

enum Answer {
    Fields(Fields),
    Watch(Seat, Duration),
}

fn run(mut asked: Asked, switch: &Switch) -> Result<Answer, String> {
    let fields = &mut asked.fields;
    let found = match asked.op.as_str() {
        "state" => Answer::Fields(switch.state()),
        "view" => {
            let seat = tenant(fields, switch)?;
            Answer::Fields(fields_of(&seat, seat.shard.share(seat.tenant)))
        }
        "watch" => Answer::Watch(tenant(fields, switch)?, every(fields)?),
        op => return Err(format!("there is no op {op:?}; known: state, view, watch")),
    };
    match fields.keys().next() {
        Some(name) => Err(format!("{} takes no field {name:?}", asked.op)),
        None => Ok(found),
    }
}

fn tenant(fields: &mut Fields, switch: &Switch) -> Result<Seat, String> {
    match fields.remove("tenant") {
        Some(Value::String(name)) => switch.tenant(&name).cloned(),
        Some(other) => Err(format!("tenant is {other}; give the name of one")),
        None => Err("there is no tenant; give the name of one".to_owned()),
    }
}

fn every(fields: &mut Fields) -> Result<Duration, String> {
    let every_us = match fields.remove("every_us") {
        None => EVERY_US,
        Some(value) => value
            .as_u64()
            .filter(|&every_us| every_us <= MOST_EVERY_US)
            .ok_or_else(|| format!("every_us is {value}; give 0 to {MOST_EVERY_US}"))?,
    };
    Ok(Duration::from_micros(every_us))
}

fn fields_of(seat: &Seat, share: Share) -> Fields {
    let Value::Object(mut fields) = json!(share) else {
        unreachable!("a share is written as an object");
    };
    fields.insert("tenant".into(), seat.name().into());
    fields
}

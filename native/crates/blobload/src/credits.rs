//! Credits from the control sockets of storage switches, by their op `watch`, or `state` where a switch has no other.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use blobstore::DriveId;
use serde_json::{json, Value};

use crate::document::DriveOf;

const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// A connection to a control socket.
struct Control {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Control {
    fn connect(drive: &DriveOf) -> io::Result<Self> {
        let writer = UnixStream::connect(&drive.control)?;
        writer.set_read_timeout(Some(TIMEOUT))?;
        let reader = BufReader::new(writer.try_clone()?);
        Ok(Self { reader, writer })
    }

    fn ask(&mut self, request: &Value) -> io::Result<Value> {
        writeln!(self.writer, "{request}")?;
        self.line()
    }

    fn line(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_str(&line).map_err(io::Error::from)
    }
}

/// Check that the switch has the tenant. Only exports of storage switches are written to: their drives are those for which
/// a permit was given.
pub fn check(drive: &DriveOf) -> Result<(), String> {
    let failed = |what: &dyn std::fmt::Display| {
        format!(
            "drive {:?}: control {}: {what}",
            drive.tenant,
            drive.control.display()
        )
    };
    let mut control = Control::connect(drive).map_err(|error| failed(&error))?;
    let state = control
        .ask(&json!({"id": 1, "op": "state"}))
        .map_err(|error| failed(&error))?;
    let tenants = state["tenants"].as_array().into_iter().flatten();
    let mut names = tenants.filter_map(|tenant| tenant["name"].as_str());
    if names.any(|name| name == drive.tenant) {
        return Ok(());
    }
    Err(failed(&"the switch has no tenant of this name"))
}

/// Send each credit of a tenant until the switch or the receiver is gone, from a thread of its own.
pub fn follow(drive: DriveOf, id: DriveId, credits: Sender<(DriveId, u32)>) {
    thread::spawn(move || {
        // Without its control socket a switch is about to be gone; its export tells when.
        let _ = watch(&drive, id, &credits);
    });
}

fn watch(drive: &DriveOf, id: DriveId, credits: &Sender<(DriveId, u32)>) -> io::Result<()> {
    let mut control = Control::connect(drive)?;
    let asked = json!({"id": 1, "op": "watch", "tenant": drive.tenant});
    let mut told = control.ask(&asked)?;
    if told["ok"] == false {
        return poll(&mut control, drive, id, credits);
    }
    control.writer.set_read_timeout(None)?;
    loop {
        if !send(&told["credit"], id, credits) {
            return Ok(());
        }
        told = control.line()?;
    }
}

fn poll(
    control: &mut Control,
    drive: &DriveOf,
    id: DriveId,
    credits: &Sender<(DriveId, u32)>,
) -> io::Result<()> {
    loop {
        let state = control.ask(&json!({"id": 1, "op": "state"}))?;
        let tenants = state["tenants"].as_array().into_iter().flatten();
        for tenant in tenants.filter(|tenant| tenant["name"] == drive.tenant.as_str()) {
            if !send(&tenant["view"]["credit"], id, credits) {
                return Ok(());
            }
        }
        thread::sleep(POLL);
    }
}

/// Send a credit, if it is one; returns whether it is still wanted.
fn send(credit: &Value, id: DriveId, credits: &Sender<(DriveId, u32)>) -> bool {
    match credit.as_u64() {
        Some(credit) => credits.send((id, credit as u32)).is_ok(),
        None => true,
    }
}

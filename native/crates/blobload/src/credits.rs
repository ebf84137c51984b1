//! Credits from the control sockets of storage switches, by their op `watch`, or `state` where a switch has no other.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use blobstore::DriveId;
use serde::Serialize;
use serde_json::{json, Value};

use crate::document::DriveOf;

const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// The op of the control socket that tells credits.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Watch,
    State,
}

/// A change of a tenant's credit.
pub struct Told {
    /// The drive that it is of.
    pub drive: DriveId,
    /// The new credit.
    pub credit: u32,
    by: Op,
}

/// The credits that were told of a drive.
#[derive(Debug, Default, Serialize)]
pub struct Credits {
    by: Option<Op>,
    /// Number of changes.
    pub changes: u64,
    least: Option<u32>,
    most: Option<u32>,
}

impl Credits {
    /// Count a change.
    pub fn note(&mut self, told: &Told) {
        let Told { credit, by, .. } = *told;
        self.by = Some(by);
        self.changes += 1;
        self.least = Some(self.least.map_or(credit, |least| least.min(credit)));
        self.most = Some(self.most.map_or(credit, |most| most.max(credit)));
    }
}

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

/// Send each change of a tenant's credit until the switch or the receiver is gone, from a thread of its own.
pub fn follow(of: DriveOf, drive: DriveId, credits: Sender<Told>) {
    let mut follower = Follower {
        of,
        drive,
        told: None,
        credits,
    };
    thread::spawn(move || {
        // Without its control socket a switch is about to be gone; its export tells when.
        let _ = follower.watch();
    });
}

struct Follower {
    of: DriveOf,
    drive: DriveId,
    /// The credit that was sent last.
    told: Option<u32>,
    credits: Sender<Told>,
}

impl Follower {
    fn watch(&mut self) -> io::Result<()> {
        let mut control = Control::connect(&self.of)?;
        let mut line = control.ask(&json!({"id": 1, "op": "watch", "tenant": self.of.tenant}))?;
        if line["ok"] == false {
            return self.poll(&mut control);
        }
        control.writer.set_read_timeout(None)?;
        while self.tell(&line["credit"], Op::Watch) {
            line = control.line()?;
        }
        Ok(())
    }

    fn poll(&mut self, control: &mut Control) -> io::Result<()> {
        loop {
            let state = control.ask(&json!({"id": 1, "op": "state"}))?;
            let mut tenants = state["tenants"].as_array().into_iter().flatten();
            let found = tenants.find(|tenant| tenant["name"] == self.of.tenant.as_str());
            if !found.is_none_or(|tenant| self.tell(&tenant["credit"], Op::State)) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
    }

    /// Send a credit, if it is one and another than the last; returns whether it is still wanted.
    fn tell(&mut self, credit: &Value, by: Op) -> bool {
        let credit = credit.as_u64().map(|credit| credit as u32);
        let Some(credit) = credit.filter(|&credit| self.told != Some(credit)) else {
            return true;
        };
        self.told = Some(credit);
        let told = Told {
            drive: self.drive,
            credit,
            by,
        };
        self.credits.send(told).is_ok()
    }
}

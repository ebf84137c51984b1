//! Credits from the control sockets of storage switches, by their op `watch`, or `state` where a switch has no other.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use blobstore::DriveId;
use serde::Serialize;
use serde_json::{json, Value};

use crate::control::{Control, POLL};
use crate::document::DriveOf;

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
        control.wait_without_end()?;
        while self.tell(&line["credit"], Op::Watch) {
            line = control.line()?;
        }
        Ok(())
    }

    fn poll(&mut self, control: &mut Control) -> io::Result<()> {
        loop {
            let found = control.tenant(&self.of.tenant)?;
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

//! The exports of the rack by their names: each way to a drive, its fail-fast twin, and either for one drive alone.

use std::sync::Arc;

use nbd::proto::{flag, MAX_REQUEST_BYTES};
use nbdserver::{Exports, Offer};
use racksim::OnReadError;

use crate::io_path::IoPath;
use crate::running_rack::RunningRack;

const PREFERRED_BLOCK: u32 = 4096;

/// Suffix of the name of an export's twin, whose reads fail fast.
const FAIL_FAST: &str = ".failfast";

/// Separator between the name of an export and the serial number of the only drive that may answer.
const BY_ID: &str = ".by-id.";

/// A client's choices: an export of the rack, the policy for unreadable sectors, and the only drive that may answer.
#[derive(Clone, Copy)]
pub struct Chosen {
    pub export: usize,
    pub on_read_error: OnReadError,
    pub only: Option<usize>,
}

impl Exports for RunningRack {
    type Export = Chosen;

    fn names(&self) -> Vec<String> {
        let paths = self.paths().iter();
        paths
            .flat_map(|path| [path.name.to_string(), twin(&path.name)])
            .collect()
    }

    fn find(&self, name: &str) -> Option<Chosen> {
        let (name, on_read_error) = match name.strip_suffix(FAIL_FAST) {
            Some(name) => (name, OnReadError::FailFast),
            None => (name, OnReadError::Retry),
        };
        let (name, serial) = match name.split_once(BY_ID) {
            Some((name, serial)) => (name, Some(serial)),
            None => (name, None),
        };
        let export = self.export(name)?;
        let only = match serial {
            Some(serial) => Some(drive_at(self, export, serial)?),
            None => None,
        };
        Some(Chosen {
            export,
            on_read_error,
            only,
        })
    }

    fn offer(&self, chosen: &Chosen) -> Offer {
        let path = &self.paths()[chosen.export];
        Offer {
            bytes: path.bytes,
            flags: flags(path),
            minimum_block: 1,
            preferred_block: PREFERRED_BLOCK,
            maximum_block: MAX_REQUEST_BYTES,
        }
    }
}

/// The drive with this serial number, unless the export leads to another one.
fn drive_at(running: &RunningRack, export: usize, serial: &str) -> Option<usize> {
    let drives = running.drives();
    let mut called_so = drives
        .iter()
        .filter(|drive| drive.identity.serial == serial);
    let (drive, None) = (called_so.next()?, called_so.next()) else {
        return None;
    };
    let other = running.paths()[export].drive();
    (other.is_none_or(|other| Arc::ptr_eq(&other, drive))).then_some(drive.identity.number)
}

fn twin(name: &str) -> String {
    format!("{name}{FAIL_FAST}")
}

fn flags(path: &IoPath) -> u16 {
    let rotational = if path.rotational { flag::ROTATIONAL } else { 0 };
    flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES
        | flag::CAN_MULTI_CONN
        | rotational
}

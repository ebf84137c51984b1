//! A file system that is mounted for its first file: nothing is written, no directory shows it, and it ends with the
//! probe.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use blockdev::Buffer;
use rustix::fs::{openat, Mode, OFlags};
use rustix::mount::{
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, FsMountFlags,
    FsOpenFlags, MountAttrFlags,
};
use sector::{judge, Expected, Verdict, SECTOR_BYTES};
use serde_json::{json, Value};

use crate::clock::{now_ns, sleep_until, Waits};

/// The file that is read: an identified sector, the first of its drive.
const FIRST_FILE: &str = "first";
const LETS_GO_WITHIN_NS: u64 = 1_000_000_000;
const LOOKS_EVERY_NS: u64 = 1_000_000;

/// Mount the file system of type `kind` on `device`, read its first file, unmount it; the fields of the event.
///
/// The device is the one that was read: udev takes the name away for a moment when the drive goes that had it before.
pub fn first_file(name: &str, device: &str, kind: &str, expected: &Expected) -> Value {
    let waits = Waits::of_this_thread();
    let waited_ns = waits.so_far_ns();
    let read = read_first(device, kind);
    let mounted_ns = now_ns();
    let waited_ns = waits
        .so_far_ns()
        .zip(waited_ns)
        .map(|(now, before)| now - before);
    let outcome = read.and_then(|buffer| match judge(buffer.as_ref(), 0, expected).verdict {
        Verdict::Right => unmounted(device),
        verdict => Err(format!(
            "the file {FIRST_FILE} is {}, not the expected drive's",
            verdict.name()
        )),
    });
    match outcome {
        Ok(()) => {
            json!({"mounted_ns": mounted_ns, "mount_waited_ns": waited_ns, "mount_error": null})
        }
        Err(message) => {
            json!({"mounted_ns": null, "mount_waited_ns": null, "mount_error": format!("{name}: {message}")})
        }
    }
}

/// The fields of the event where nothing is to be mounted.
pub fn nothing() -> Value {
    json!({"mounted_ns": null, "mount_waited_ns": null, "mount_error": null})
}

/// The mount is nowhere in the tree: it ends with its descriptor, whatever becomes of the probe.
fn read_first(device: &str, kind: &str) -> Result<Buffer, String> {
    let mount = mount(device, kind)?;
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = openat(&mount, FIRST_FILE, flags, Mode::empty())
        .map_err(|error| format!("the file {FIRST_FILE}: {error}"))?;
    let mut buffer = Buffer::new(SECTOR_BYTES);
    File::from(file)
        .read_exact_at(buffer.as_mut(), 0)
        .map_err(|error| format!("the file {FIRST_FILE}: {error}"))?;
    Ok(buffer)
}

fn mount(device: &str, kind: &str) -> Result<OwnedFd, String> {
    let failed = |what: &str, error: rustix::io::Errno| {
        let error = io::Error::from(error);
        format!("cannot mount it as {kind}: {what}{error}")
    };
    let context =
        fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|error| failed("fsopen: ", error))?;
    fsconfig_set_string(&context, "source", device).map_err(|error| failed("", error))?;
    fsconfig_set_flag(&context, "ro").map_err(|error| failed("", error))?;
    if let Err(error) = fsconfig_create(&context) {
        return Err(failed(&said(context), error));
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .map_err(|error| failed("fsmount: ", error))
}

/// The kernel's own words for what went wrong with a mount, each message a read of its own.
fn said(context: OwnedFd) -> String {
    let mut context = File::from(context);
    let mut words = String::new();
    let mut message = [0; 512];
    while let Ok(length @ 1..) = context.read(&mut message) {
        // Each begins with its level, as in "e /dev/sda: Can't find ext4 filesystem".
        let text = String::from_utf8_lossy(&message[..length]);
        words.push_str(text.get(2..).unwrap_or_default().trim_end());
        words.push_str("; ");
    }
    words
}

/// Return once nothing has the device mounted any more, so that it can be taken away.
fn unmounted(device: &str) -> Result<(), String> {
    let until_ns = now_ns() + LETS_GO_WITHIN_NS;
    loop {
        let flags = (OFlags::EXCL | OFlags::CLOEXEC).bits() as i32;
        match OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(device)
        {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && now_ns() < until_ns => {
                sleep_until(now_ns() + LOOKS_EVERY_NS, false);
            }
            Err(error) => return Err(format!("it is still held after the unmount: {error}")),
            Ok(_) => return Ok(()),
        }
    }
}

//! Block device events of the kernel: NETLINK_KOBJECT_UEVENT.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use kobject_uevent::{ActionType, UEvent};
use rustix::net::{
    bind, netlink, recv, socket_with, sockopt, AddressFamily, RecvFlags, SocketFlags, SocketType,
};
use serde_json::json;

use crate::clock::now_ns;
use crate::failure::Failure;
use crate::lines::emit;

/// The multicast group of events straight from the kernel, before udev has looked at them.
pub const KERNEL_GROUP: u32 = 1;
/// The group of udev's events, sent once its rules have given a device its names.
pub const UDEV_GROUP: u32 = 2;
/// The kernel's messages are at most 2 KiB of variables and a path; udev adds its properties.
pub const MESSAGE_BYTES: usize = 16 << 10;
/// Room for the events of a whole machine that comes up; the kernel gives less where it must.
const ROOM_BYTES: usize = 4 << 20;

/// A selection of a block device: by name (`nvme0n1`), or by a part of its path in the device tree (a PCI address),
/// which stays the same where names change from one attach to the next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Device {
    /// The kernel's name of the device.
    Name(String),
    /// A part of its path under /sys.
    Path(String),
}

impl Device {
    fn is_meant_by(&self, event: &BlockEvent) -> bool {
        match self {
            Self::Name(name) => *name == event.name,
            Self::Path(part) => event.path.contains(part),
        }
    }
}

/// The addition or removal of a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEvent {
    /// Whether it was added.
    pub is_add: bool,
    /// The kernel's name of the device.
    pub name: String,
    /// Its path under /sys.
    pub path: String,
}

impl BlockEvent {
    /// Parse a kernel message, if it is about the addition or removal of a whole block device.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let event = UEvent::from_netlink_packet(message).ok()?;
        let is_add = match event.action {
            ActionType::Add => true,
            ActionType::Remove => false,
            _ => return None,
        };
        let is_disk = event.subsystem == "block"
            && event.env.get("DEVTYPE").is_some_and(|kind| kind == "disk");
        let name = event.env.get("DEVNAME").filter(|_| is_disk)?;
        Some(Self {
            is_add,
            name: name.strip_prefix("/dev/").unwrap_or(name).to_owned(),
            path: event.devpath.to_string_lossy().into_owned(),
        })
    }
}

/// The last arrival of each watched device.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(Arc<Mutex<HashMap<Device, u64>>>);

impl Arrivals {
    /// The last arrival of `device`, if not before `since_ns`.
    pub fn since(&self, device: &Device, since_ns: u64) -> Option<u64> {
        let seen = self.0.lock().expect("no thread panics with it");
        seen.get(device).copied().filter(|&t_ns| t_ns >= since_ns)
    }

    fn note(&self, device: &Device, t_ns: u64) {
        self.0
            .lock()
            .expect("no thread panics with it")
            .insert(device.clone(), t_ns);
    }
}

/// Listen in a thread of its own: each event of a device of `devices` is printed and, if added, recorded as an arrival.
///
/// # Errors
/// [`Failure::Target`] if the kernel refuses the socket (in most containers).
pub fn listen(devices: Vec<Device>) -> Result<Arrivals, Failure> {
    let socket = open(KERNEL_GROUP).map_err(|error| {
        Failure::Target(format!(
            "the kernel's device events cannot be had here ({error}): leave out --uevents, or run on the host itself"
        ))
    })?;
    let arrivals = Arrivals::default();
    let noted = arrivals.clone();
    std::thread::spawn(move || {
        let mut message = [0; MESSAGE_BYTES];
        loop {
            // An overrun (ENOBUFS) loses events and the next receive goes on; there is nothing to repair.
            let Ok((length, _)) = recv(&socket, &mut message, RecvFlags::empty()) else {
                continue;
            };
            let t_ns = now_ns();
            let Some(event) = BlockEvent::parse(&message[..length]) else {
                continue;
            };
            for device in devices.iter().filter(|device| device.is_meant_by(&event)) {
                if event.is_add {
                    noted.note(device, t_ns);
                }
                let action = if event.is_add { "add" } else { "remove" };
                emit(
                    &json!({"event": "uevent", "t_ns": t_ns, "action": action, "devname": event.name, "devpath": event.path}),
                );
            }
        }
    });
    Ok(arrivals)
}

/// A socket that hears these groups.
pub fn open(groups: u32) -> Result<OwnedFd, rustix::io::Errno> {
    let protocol = Some(netlink::KOBJECT_UEVENT);
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    let _ = sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES);
    bind(&socket, &netlink::SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: &str = "/devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n1";

    fn message(action: &str, path: &str, variables: &str) -> Vec<u8> {
        let text =
            format!("{action}@{path}\nACTION={action}\nDEVPATH={path}\n{variables}SEQNUM=1970\n");
        text.replace('\n', "\0").into_bytes()
    }

    fn block(action: &str) -> Vec<u8> {
        let variables =
            "SUBSYSTEM=block\nDEVNAME=nvme0n1\nDEVTYPE=disk\nDISKSEQ=5\nMAJOR=259\nMINOR=0\n";
        message(action, DISK, variables)
    }

    #[test]
    fn a_disk_that_comes_or_goes_is_seen() {
        for (action, is_add) in [("add", true), ("remove", false)] {
            let event = BlockEvent {
                is_add,
                name: "nvme0n1".to_owned(),
                path: DISK.to_owned(),
            };
            assert_eq!(BlockEvent::parse(&block(action)), Some(event));
        }
    }

    #[test]
    fn everything_else_is_passed_over() {
        let generic = "SUBSYSTEM=nvme-generic\nDEVNAME=ng0n1\nMAJOR=245\nMINOR=0\n";
        let partition = "SUBSYSTEM=block\nDEVNAME=nvme0n1p1\nDEVTYPE=partition\n";
        for other in [
            block("change"),
            message("add", "/devices/pci0000:00/ng0n1", generic),
            message("add", DISK, partition),
            message("add", "/devices/virtual/bdi/259:0", "SUBSYSTEM=bdi\n"),
            b"libudev\0\xfe\xed\xca\xfe".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(BlockEvent::parse(&other), None);
        }
    }

    #[test]
    fn a_device_is_meant_by_name_or_by_place() {
        let event = BlockEvent::parse(&block("add")).expect("a disk");
        assert!(Device::Name("nvme0n1".to_owned()).is_meant_by(&event));
        assert!(Device::Path("0000:01:00.0".to_owned()).is_meant_by(&event));
        assert!(!Device::Name("nvme0n2".to_owned()).is_meant_by(&event));
        assert!(!Device::Path("0000:02:00.0".to_owned()).is_meant_by(&event));
    }

    #[test]
    fn only_an_arrival_since_then_counts() {
        let device = Device::Name("sda".to_owned());
        let arrivals = Arrivals::default();
        assert_eq!(arrivals.since(&device, 0), None);
        arrivals.note(&device, 100);
        assert_eq!(
            (arrivals.since(&device, 100), arrivals.since(&device, 101)),
            (Some(100), None)
        );
    }
}

//! Every device event of this machine, stamped: the kernel's, and udev's once it has given a device its names.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{recv, RecvFlags};
use serde_json::{json, Value};

use crate::cli::UeventsArgs;
use crate::clock::{now_ns, Waits};
use crate::failure::Failure;
use crate::identity::identified;
use crate::lines::emit;
use crate::relate;
use crate::uevent::{open, KERNEL_GROUP, MESSAGE_BYTES, UDEV_GROUP};

/// The beginning of udev's messages; the offset and the length of their properties follow.
const UDEV_PREFIX: &[u8] = b"libudev\0";
const UDEV_MAGIC: u32 = 0xfeed_cafe;

/// `rackprobe uevents`: until `quit` or the end of standard input.
///
/// # Errors
/// [`Failure::Target`] if the kernel refuses the socket.
pub fn run(args: &UeventsArgs) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let socket = open(KERNEL_GROUP | UDEV_GROUP).map_err(|error| {
        Failure::Target(format!(
            "the kernel's device events cannot be had here ({error}): run on the host itself"
        ))
    })?;
    let subsystems = args.subsystem.clone();
    emit(&identified(json!({"event": "ready", "t_ns": now_ns()})));
    std::thread::spawn(move || {
        let mut queue = Queue::of(socket, opened_ns);
        let mut message = [0; MESSAGE_BYTES];
        loop {
            let (received, stamp) = queue.next(&mut message);
            match received {
                Ok(length) => {
                    let event = Message::parse(&message[..length.min(MESSAGE_BYTES)]);
                    if let Some(event) = event.filter(|event| event.is_of(&subsystems)) {
                        emit(&event.fields(stamp));
                    }
                }
                Err(Errno::NOBUFS) => emit(&json!({"event": "lost", "t_ns": stamp.t_ns})),
                Err(_) => {}
            }
        }
    });
    relate::follow();
    Ok(())
}

/// The moment at which a datagram was taken; it can have come earlier by `waited_ns`, `None` without kernel support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    t_ns: u64,
    waited_ns: Option<u64>,
}

/// A socket whose datagrams are taken one by one, in a thread of their own.
struct Queue {
    socket: OwnedFd,
    waits: Waits,
    /// The earliest moment at which the content of the socket can have come, if it is known.
    since_ns: Option<u64>,
}

impl Queue {
    /// The queue of a socket that was opened at `opened_ns`, for the calling thread.
    fn of(socket: OwnedFd, opened_ns: u64) -> Self {
        Self {
            socket,
            waits: Waits::of_this_thread(),
            since_ns: Some(opened_ns),
        }
    }

    /// Wait for a datagram; its length.
    fn next(&mut self, message: &mut [u8]) -> (Result<usize, Errno>, Stamp) {
        let (asked_ns, before_ns) = (now_ns(), self.waits.so_far_ns());
        // One that is there already has waited for those before it as well, not only for a core.
        let mut received = recv(&self.socket, &mut *message, RecvFlags::DONTWAIT);
        let mut t_ns = now_ns();
        if matches!(received, Err(Errno::AGAIN)) {
            received = recv(&self.socket, &mut *message, RecvFlags::empty());
            t_ns = now_ns();
            let waited_ns = self.waits.so_far_ns().zip(before_ns);
            self.since_ns =
                waited_ns.map(|(now, before)| t_ns.saturating_sub(now - before).max(asked_ns));
        }
        let waited_ns = self.since_ns.map(|since_ns| t_ns.saturating_sub(since_ns));
        (
            received.map(|(length, _)| length),
            Stamp { t_ns, waited_ns },
        )
    }
}

/// A device event: who said it, and its properties.
#[derive(Debug, PartialEq, Eq)]
struct Message<'a> {
    is_kernels: bool,
    properties: HashMap<&'a str, &'a str>,
}

impl<'a> Message<'a> {
    /// A datagram as an event, if it is one.
    fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (is_kernels, text) = match datagram.strip_prefix(UDEV_PREFIX) {
            Some(header) => (false, udev_properties(datagram, header)?),
            // Behind the summary, `add@/devices/...`.
            None => (
                true,
                &datagram[datagram.iter().position(|&byte| byte == 0)? + 1..],
            ),
        };
        let properties: HashMap<_, _> = text
            .split(|&byte| byte == 0)
            .filter_map(|property| std::str::from_utf8(property).ok()?.split_once('='))
            .collect();
        let is_event = properties.contains_key("ACTION") && properties.contains_key("DEVPATH");
        is_event.then_some(Self {
            is_kernels,
            properties,
        })
    }

    fn is_of(&self, subsystems: &[String]) -> bool {
        let subsystem = self
            .properties
            .get("SUBSYSTEM")
            .copied()
            .unwrap_or_default();
        subsystems.is_empty() || subsystems.iter().any(|wanted| wanted == subsystem)
    }

    fn fields(&self, stamp: Stamp) -> Value {
        let property = |name: &str| self.properties.get(name).copied();
        let name = property("DEVNAME").map(|name| name.strip_prefix("/dev/").unwrap_or(name));
        let links: Vec<_> = property("DEVLINKS")
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        json!({
            "event": "uevent",
            "t_ns": stamp.t_ns,
            "waited_ns": stamp.waited_ns,
            "source": if self.is_kernels { "kernel" } else { "udev" },
            "action": property("ACTION"),
            "subsystem": property("SUBSYSTEM"),
            "devpath": property("DEVPATH"),
            "devtype": property("DEVTYPE"),
            "devname": name,
            "devlinks": links,
            "seqnum": property("SEQNUM").and_then(|number| number.parse::<u64>().ok()),
        })
    }
}

/// The properties in a message of udev's, wherever its header says that they are.
fn udev_properties<'a>(datagram: &'a [u8], header: &[u8]) -> Option<&'a [u8]> {
    let word = |at: usize| header.get(at..at + 4)?.try_into().ok();
    (u32::from_be_bytes(word(0)?) == UDEV_MAGIC).then_some(())?;
    let begin = u32::from_ne_bytes(word(8)?) as usize;
    let length = u32::from_ne_bytes(word(12)?) as usize;
    datagram.get(begin..begin.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use rustix::net::{send, socketpair, AddressFamily, SendFlags, SocketFlags, SocketType};

    use super::*;

    const STAMP: Stamp = Stamp {
        t_ns: 5,
        waited_ns: Some(3),
    };
    /// A drive pulled and plugged in elsewhere, by `udevadm monitor --kernel --property` on a guest.
    const RECORDED: &str = include_str!("testdata/uevents-nvme-replug.txt");

    fn recorded() -> Vec<Vec<u8>> {
        let blocks = RECORDED
            .split("\n\n")
            .filter(|block| block.starts_with("KERNEL["));
        blocks
            .map(|block| {
                let mut words = block.lines().next().unwrap().split_whitespace().skip(1);
                let summary = format!("{}@{}", words.next().unwrap(), words.next().unwrap());
                let lines = block.lines().skip(1).map(str::to_owned);
                let mut message = [summary]
                    .into_iter()
                    .chain(lines)
                    .collect::<Vec<_>>()
                    .join("\0");
                message.push('\0');
                message.into_bytes()
            })
            .collect()
    }

    fn udev(properties: &str) -> Vec<u8> {
        let mut message = UDEV_PREFIX.to_vec();
        message.extend(UDEV_MAGIC.to_be_bytes());
        for word in [40_u32, 40, properties.len() as u32, 0, 0, 0, 0] {
            message.extend(word.to_ne_bytes());
        }
        message.extend(properties.bytes());
        message
    }

    #[test]
    fn a_recorded_replug_is_read_whole_and_in_order() {
        let messages = recorded();
        let fields: Vec<_> = messages
            .iter()
            .map(|message| Message::parse(message).expect("an event").fields(STAMP))
            .collect();
        let numbers: Vec<_> = fields
            .iter()
            .map(|event| event["seqnum"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (1968..=1986).collect::<Vec<_>>());
        let disks: Vec<_> = fields
            .iter()
            .filter(|event| event["devtype"] == "disk")
            .collect();
        let told = |event: &Value| (event["action"].clone(), event["devname"].clone());
        assert_eq!(disks.len(), 2);
        assert_eq!(
            (&disks[0]["t_ns"], &disks[0]["waited_ns"]),
            (&json!(5), &json!(3))
        );
        assert_eq!(told(disks[0]), (json!("remove"), json!("nvme0n1")));
        assert_eq!(told(disks[1]), (json!("add"), json!("nvme0n1")));
        assert_eq!(disks[1]["source"], "kernel");
        assert_eq!(
            disks[1]["devpath"],
            "/devices/pci0000:00/0000:00:05.0/0000:02:00.0/nvme/nvme0/nvme0n1"
        );
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::empty();
        socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap()
    }

    #[test]
    fn a_datagram_that_was_there_already_can_have_come_when_it_was_sent() {
        let (here, there) = pair();
        let (mut queue, mut message) = (Queue::of(here, now_ns()), [0; 8]);
        let sent_ns = now_ns();
        for said in [b"one", b"two"] {
            send(&there, said, SendFlags::empty()).unwrap();
        }
        for said in [b"one", b"two"] {
            let (length, stamp) = queue.next(&mut message);
            assert_eq!(&message[..length.unwrap()], said);
            assert!(stamp.t_ns - stamp.waited_ns.unwrap() <= sent_ns);
        }
    }

    #[test]
    fn a_datagram_that_is_waited_for_has_not_come_before() {
        let (here, there) = pair();
        let began_ns = now_ns();
        let receiver = std::thread::spawn(move || Queue::of(here, began_ns).next(&mut [0; 8]).1);
        let sent_ns = now_ns();
        send(&there, b"one", SendFlags::empty()).unwrap();
        let stamp = receiver.join().unwrap();
        assert!(sent_ns <= stamp.t_ns);
        assert!(stamp.t_ns - stamp.waited_ns.unwrap_or(0) >= began_ns);
    }

    #[test]
    fn udev_tells_the_names_of_a_device() {
        let message = udev(
            "ACTION=add\0DEVPATH=/devices/x/block/sda\0SUBSYSTEM=block\0DEVNAME=/dev/sda\0DEVTYPE=disk\0\
             DEVLINKS=/dev/disk/by-path/pci-0000:00:17.0-ata-3 /dev/disk/by-id/wwn-0x5000c500a0000001\0",
        );
        let fields = Message::parse(&message).unwrap().fields(STAMP);
        assert_eq!(
            (&fields["source"], &fields["devname"]),
            (&json!("udev"), &json!("sda"))
        );
        assert_eq!(
            fields["devlinks"][0],
            "/dev/disk/by-path/pci-0000:00:17.0-ata-3"
        );
        assert_eq!(fields["seqnum"], Value::Null);
    }

    #[test]
    fn only_what_is_wanted_is_told() {
        let messages = recorded();
        let of = |subsystems: &[&str]| {
            let wanted: Vec<_> = subsystems.iter().map(|&name| name.to_owned()).collect();
            let events = messages
                .iter()
                .filter_map(|message| Message::parse(message));
            events.filter(|event| event.is_of(&wanted)).count()
        };
        assert_eq!(
            (of(&[]), of(&["block"]), of(&["block", "pci"]), of(&["usb"])),
            (19, 2, 6, 0)
        );
    }

    #[test]
    fn what_is_no_event_is_passed_over() {
        let short = udev("ACTION=add\0DEVPATH=/x\0");
        let mut of_another_version = short.clone();
        of_another_version[8] ^= 1;
        for other in [
            b"".to_vec(),
            b"add@/x".to_vec(),
            b"add@/x\0SUBSYSTEM=block\0".to_vec(),
            short[..30].to_vec(),
            short[..short.len() - 1].to_vec(),
            of_another_version,
        ] {
            assert_eq!(Message::parse(&other), None);
        }
        assert!(Message::parse(&short).is_some());
    }
}

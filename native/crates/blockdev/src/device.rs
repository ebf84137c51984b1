//! A block device, or a regular file in its place, beside the page cache where that can be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use nbd::proto::{flag, MAX_REQUEST_BYTES};
use nbdserver::Offer;
use rustix::fs::{fallocate, FallocateFlags, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Setter};

use crate::buffer::Buffer;
use crate::medium::Medium;
use crate::node::Node;

const PREFERRED_BLOCK: u32 = 4096;
const SMALLEST_BLOCK: u32 = 512;
const ZEROES_BYTES: usize = 1 << 20;

/// `BLKDISCARD` (linux/fs.h): two numbers, the first byte and the number of bytes.
const BLKDISCARD: u32 = 0x1277;

/// States of a SCSI device (`scsi_sysfs.c`) and of an NVMe controller in which nothing is answered any more.
const STATES_WITHOUT_ANSWER: [&str; 5] = [
    "offline",
    "transport-offline",
    "dead",
    "deleting",
    "deleting (no IO)",
];

/// An open drive. Its descriptor leads to that drive and to no other, also once it is unplugged.
pub struct Device {
    node: Node,
    file: File,
    is_direct: bool,
    bytes: u64,
    may_write: bool,
}

impl Device {
    /// Open what was examined for I/O.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn open(node: Node, bytes: u64, may_write: bool) -> io::Result<Self> {
        // By way of the descriptor that was examined: its name may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", node.file.as_raw_fd());
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(may_write);
            // The kernel's flag word is an int; no flag used here reaches its sign bit.
            options.custom_flags(flags.bits() as i32).open(&path)
        };
        let (file, is_direct) = match open(OFlags::DIRECT) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                (open(OFlags::empty())?, false)
            }
            opened => (opened?, true),
        };
        Ok(Self {
            node,
            file,
            is_direct,
            bytes,
            may_write,
        })
    }

    /// The descriptor of its I/O, beside the page cache where [`Device::is_direct`].
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether its I/O is beside the page cache: buffers and places are multiples of its smallest block then.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// An attribute of its queue, 0 where it has none.
    fn queue(&self, name: &str) -> u64 {
        let value = self.node.attribute(&format!("queue/{name}"));
        value.parse().unwrap_or(0)
    }

    fn can_trim(&self) -> bool {
        !self.node.is_block || self.queue("discard_max_bytes") > 0
    }
}

impl Medium for Device {
    fn offer(&self) -> Offer {
        let mut flags = flag::SEND_FLUSH;
        if self.may_write {
            flags |= flag::SEND_FUA | flag::SEND_WRITE_ZEROES;
            flags |= if self.can_trim() { flag::SEND_TRIM } else { 0 };
        } else {
            flags |= flag::READ_ONLY;
        }
        if self.queue("rotational") == 1 {
            flags |= flag::ROTATIONAL;
        }
        let block = u32::try_from(self.queue("logical_block_size")).unwrap_or(0);
        Offer {
            bytes: self.bytes,
            flags,
            minimum_block: block.max(SMALLEST_BLOCK),
            preferred_block: block.max(PREFERRED_BLOCK),
            maximum_block: MAX_REQUEST_BYTES,
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        let done = if self.node.is_block {
            // SAFETY: the kernel reads two numbers of 64 bits and writes nothing.
            unsafe {
                let range = Setter::<BLKDISCARD, [u64; 2]>::new([offset, length]);
                ioctl(&self.file, range)
            }
        } else {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, flags, offset, length)
        };
        match done {
            // It is advice.
            Err(Errno::OPNOTSUPP) => Ok(()),
            done => Ok(done?),
        }
    }

    fn zero(&self, offset: u64, length: u64, keeps_place: bool) -> io::Result<()> {
        let punching = (!keeps_place).then_some(FallocateFlags::PUNCH_HOLE);
        for flags in punching.into_iter().chain([FallocateFlags::ZERO_RANGE]) {
            match fallocate(
                &self.file,
                flags | FallocateFlags::KEEP_SIZE,
                offset,
                length,
            ) {
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {}
                done => return Ok(done?),
            }
        }
        let most = ZEROES_BYTES.min(usize::try_from(length).unwrap_or(ZEROES_BYTES));
        let zeroes = Buffer::new(most);
        let mut done = 0;
        while done < length {
            let part = (length - done).min(most as u64);
            self.write(offset + done, &zeroes.as_ref()[..part as usize])?;
            done += part;
        }
        Ok(())
    }

    fn is_gone(&self) -> bool {
        let state = self.node.attribute("device/state");
        !self.node.folder.exists() || STATES_WITHOUT_ANSWER.contains(&state.as_str())
    }
}

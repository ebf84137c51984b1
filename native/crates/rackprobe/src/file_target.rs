//! A block device or file as target: threads that each execute one blocking, direct request at a time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use nbd::Patience;
use rustix::fs::OFlags;

use crate::clock;
use crate::io::{Access, Broken, Done, Request};

/// The device or file that a name leads to: a block device by its number, a file by its file system and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    Device(u64),
    File(u64, u64),
}

impl Node {
    /// The node that `path` leads to now.
    pub fn at(path: &str) -> io::Result<Self> {
        std::fs::metadata(path).map(|found| Self::of(&found))
    }

    fn of(found: &Metadata) -> Self {
        if found.file_type().is_block_device() {
            Self::Device(found.rdev())
        } else {
            Self::File(found.dev(), found.ino())
        }
    }
}

/// An open device or file and its I/O threads. A thread that is blocked in the kernel is abandoned.
pub struct FileTarget {
    file: Arc<File>,
    node: Node,
    bytes: u64,
    next_id: u64,
    requests: Sender<(u64, Request)>,
    done: Receiver<Done>,
}

impl FileTarget {
    pub fn open(path: &str, access: Access, depth: usize) -> io::Result<Self> {
        let kind = std::fs::metadata(path)?.file_type();
        if !kind.is_block_device() && !kind.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a block device nor a file",
            ));
        }
        let exclusive = access == Access::Write { claims: true } && kind.is_block_device();
        let mut file = open_direct(path, access, exclusive)?;
        let node = Node::of(&file.metadata()?);
        let bytes = file.seek(SeekFrom::End(0))?;
        let (requests, incoming) = channel();
        let (outgoing, done) = channel();
        let (file, incoming) = (Arc::new(file), Arc::new(Mutex::new(incoming)));
        for _ in 0..depth {
            let (file, incoming, outgoing) =
                (Arc::clone(&file), Arc::clone(&incoming), outgoing.clone());
            std::thread::spawn(move || serve(&file, &incoming, &outgoing));
        }
        Ok(Self {
            file,
            node,
            bytes,
            next_id: 0,
            requests,
            done,
        })
    }

    /// The node that was opened.
    pub fn node(&self) -> Node {
        self.node
    }

    /// A path that leads to what was opened and to nothing else, whatever becomes of its name.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn submit(&mut self, request: Request) -> Result<u64, Broken> {
        let id = self.next_id;
        self.next_id += 1;
        let sent = self.requests.send((id, request));
        sent.map_err(|_| threads_are_gone())?;
        Ok(id)
    }

    pub fn receive(&mut self, patience: Patience) -> Result<Option<Done>, Broken> {
        let Some(until) = patience.until else {
            return self.done.recv().map(Some).map_err(|_| threads_are_gone());
        };
        match self
            .done
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            Ok(done) => Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(threads_are_gone()),
        }
    }
}

fn threads_are_gone() -> Broken {
    Broken("its threads ended".to_owned())
}

/// Open with direct I/O, or through the page cache if the file system does not support it (tmpfs).
fn open_direct(path: &str, access: Access, exclusive: bool) -> io::Result<File> {
    let open = |flags: OFlags| {
        let flags = if exclusive {
            flags | OFlags::EXCL
        } else {
            flags
        };
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        // The kernel's flag word is an int; no flag used here reaches its sign bit.
        options.custom_flags(flags.bits() as i32).open(path)
    };
    match open(OFlags::DIRECT) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => open(OFlags::empty()),
        Err(error) if exclusive && error.kind() == io::ErrorKind::ResourceBusy => {
            Err(io::Error::new(
                error.kind(),
                "the device is in use (a mount, swap, RAID or another writer): it is not written",
            ))
        }
        opened => opened,
    }
}

fn serve(file: &File, incoming: &Mutex<Receiver<(u64, Request)>>, outgoing: &Sender<Done>) {
    loop {
        let next = incoming
            .lock()
            .expect("no thread panics while it waits")
            .recv();
        let Ok((id, request)) = next else {
            return;
        };
        let submit_ns = clock::now_ns();
        let (result, buffer) = match request {
            Request::Read(offset, mut buffer) => {
                (file.read_exact_at(buffer.as_mut(), offset), Some(buffer))
            }
            Request::Write(offset, buffer) => {
                (file.write_all_at(buffer.as_ref(), offset), Some(buffer))
            }
            Request::Flush => (file.sync_data(), None),
        };
        let done = Done {
            id,
            buffer,
            result: result.map_err(|error| error.to_string()),
            submit_ns,
            complete_ns: clock::now_ns(),
        };
        if outgoing.send(done).is_err() {
            return;
        }
    }
}

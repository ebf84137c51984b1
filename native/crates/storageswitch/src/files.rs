//! Files and block devices, by io_uring or by threads.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use backing::Backing;
use rustix::fs::OFlags;

use crate::config::Access;
use crate::device::{Device, Files, Lanes, Ring};
use crate::store::Store;

/// The blocks of direct I/O: as large as any file system or drive has them.
const DIRECT_BLOCK: u32 = 4096;

/// The way that was asked for, with its limits.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Without one, a ring if there can be one.
    pub access: Option<Access>,
    /// Requests in a ring.
    pub depth: usize,
    pub threads: usize,
}

/// The way to storage, and the reason where it is not that of a ring though none was ruled out.
pub type Chosen = (Arc<dyn Device>, Option<String>);

impl Way {
    /// The way to `store`, whose descriptors `files` are used by a ring, as `make` makes one. The error is that of a ring
    /// that was demanded.
    fn choose(
        self,
        store: Arc<dyn Store>,
        make: impl FnOnce(usize) -> io::Result<Ring>,
    ) -> Result<Chosen, String> {
        let threads = |store| -> Arc<dyn Device> { Arc::new(Lanes::new(store, self.threads)) };
        if self.access == Some(Access::Threads) {
            return Ok((threads(store), None));
        }
        match make(self.depth) {
            Ok(ring) => Ok((Arc::new(ring), None)),
            Err(error) if self.access == Some(Access::Ring) => {
                Err(format!("access ring: io_uring is refused: {error}"))
            }
            Err(error) => Ok((
                threads(store),
                Some(format!("io_uring is refused: {error}")),
            )),
        }
    }
}

/// A file that is not identified: a regular one, or a block device that is only read.
pub struct Plain {
    pub bytes: u64,
    pub is_device: bool,
    pub chosen: Chosen,
}

/// Open the file at `path`.
pub fn plain(path: &Path, way: Way) -> Result<Plain, String> {
    let said = |error: io::Error| error.to_string();
    let kind = path.metadata().map_err(said)?.file_type();
    let is_device = kind.is_block_device();
    if !is_device && !kind.is_file() {
        return Err("it is neither a file nor a block device".to_owned());
    }
    let open = |flags: OFlags| {
        let mut options = OpenOptions::new();
        // A block device that is given by its path has no permit of the guard: it is never written.
        options.read(true).write(!is_device);
        // The kernel's flag word is an int; no flag used here reaches its sign bit.
        options.custom_flags(flags.bits() as i32).open(path)
    };
    let mut cached = open(OFlags::empty()).map_err(said)?;
    let bytes = io::Seek::seek(&mut cached, io::SeekFrom::End(0)).map_err(said)?;
    // Where the file system has no direct I/O, the page cache it is.
    let direct = open(OFlags::DIRECT).ok();
    let files = Files {
        direct,
        block: DIRECT_BLOCK,
        cached: Some(cached.try_clone().map_err(said)?),
    };
    let store: Arc<dyn Store> = Arc::new(Backing::File(cached));
    let chosen = way.choose(store.clone(), |depth| Ring::new(files, store, depth))?;
    Ok(Plain {
        bytes,
        is_device,
        chosen,
    })
}

/// The way to a drive that was identified.
pub fn identified(device: blockdev::Device, block: u32, way: Way) -> Result<Chosen, String> {
    let file = device.file().try_clone();
    let file = file.map_err(|error| error.to_string())?;
    let (direct, cached) = match device.is_direct() {
        true => (Some(file), None),
        false => (None, Some(file)),
    };
    let files = Files {
        direct,
        block,
        cached,
    };
    let store: Arc<dyn Store> = Arc::new(device);
    way.choose(store.clone(), |depth| Ring::new(files, store, depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Arc<dyn Store> {
        let memory = backing::Memory::new(4096, false).unwrap();
        Arc::new(Backing::Memory(memory))
    }

    fn way(access: Option<Access>) -> Way {
        Way {
            access,
            depth: 4,
            threads: 2,
        }
    }

    fn refused(_depth: usize) -> io::Result<Ring> {
        Err(io::Error::from_raw_os_error(1))
    }

    #[test]
    fn threads_take_the_place_of_a_ring_that_is_refused_and_the_reason_is_kept() {
        let (device, reason) = way(None).choose(store(), refused).unwrap();
        assert_eq!(device.access(), "threads");
        assert!(reason.unwrap().contains("io_uring is refused"));
    }

    #[test]
    fn a_ring_that_is_demanded_and_refused_is_an_error() {
        let said = way(Some(Access::Ring)).choose(store(), refused).err();
        assert!(said.unwrap().contains("access ring: io_uring is refused"));
    }

    #[test]
    fn threads_that_are_asked_for_need_no_reason() {
        let make = |_| panic!("no ring is asked for");
        let (device, reason) = way(Some(Access::Threads)).choose(store(), make).unwrap();
        assert_eq!((device.access(), reason), ("threads", None));
    }
}

//! Drive memory that many connections read and write at once.

use std::io;
use std::ptr::NonNull;

use parking_lot::RwLock;
use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

/// Bytes one lock covers: larger than any sector, so that a sector is never seen half written.
const STRIPE_BYTES: u64 = 64 << 10;
const LOCKS: usize = 256;
const PAGE_BYTES: u64 = 4096;

/// Zeroed anonymous memory. Each piece of a request that lies in one stripe is atomic.
pub struct Memory {
    start: NonNull<u8>,
    bytes: u64,
    locks: Box<[RwLock<()>]>,
}

// SAFETY: the memory belongs to this value alone and every access holds the lock of its stripe.
unsafe impl Send for Memory {}
// SAFETY: as above; readers share a stripe's lock, writers hold it alone.
unsafe impl Sync for Memory {}

impl Memory {
    /// Map `bytes` (not 0) of zeroes; with `populate` the pages are there at once, else on first write.
    pub fn new(bytes: u64, populate: bool) -> io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let flags = if populate {
            MapFlags::PRIVATE | MapFlags::POPULATE
        } else {
            MapFlags::PRIVATE | MapFlags::NORESERVE
        };
        // SAFETY: a fresh private mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }?;
        Ok(Self {
            start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            bytes,
            locks: (0..LOCKS).map(|_| RwLock::new(())).collect(),
        })
    }

    /// Fill `data` from `offset`. Panics beyond the end.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (at, piece) in self.stripes(offset, data.len() as u64) {
            let _shared = self.lock(at).read();
            let into = &mut data[(at - offset) as usize..][..piece as usize];
            // SAFETY: `stripes` checked the range; no thread writes it while the lock is shared.
            unsafe {
                self.at(at)
                    .copy_to_nonoverlapping(into.as_mut_ptr(), into.len())
            };
        }
    }

    /// Store `data` at `offset`. Panics beyond the end.
    pub fn write(&self, offset: u64, data: &[u8]) {
        for (at, piece) in self.stripes(offset, data.len() as u64) {
            let _alone = self.lock(at).write();
            let from = &data[(at - offset) as usize..][..piece as usize];
            // SAFETY: `stripes` checked the range; no other thread touches it while the lock is held.
            unsafe {
                self.at(at)
                    .copy_from_nonoverlapping(from.as_ptr(), from.len())
            };
        }
    }

    /// Store zeroes; whole pages are given back to the kernel where `punch`. Panics beyond the end.
    pub fn zero(&self, offset: u64, length: u64, punch: bool) -> io::Result<()> {
        for (at, piece) in self.stripes(offset, length) {
            let _alone = self.lock(at).write();
            let end = at + piece;
            let (first, last) = (
                at.next_multiple_of(PAGE_BYTES),
                end / PAGE_BYTES * PAGE_BYTES,
            );
            if !punch || first >= last {
                self.fill_zero(at, end);
                continue;
            }
            self.fill_zero(at, first);
            self.fill_zero(last, end);
            // SAFETY: whole pages of this mapping, which read as zeroes from now on; the lock is held.
            unsafe {
                madvise(
                    self.at(first).cast(),
                    (last - first) as usize,
                    Advice::LinuxDontNeed,
                )
            }?;
        }
        Ok(())
    }

    /// The caller holds the lock and has checked the range.
    fn fill_zero(&self, from: u64, to: u64) {
        // SAFETY: see above.
        unsafe { self.at(from).write_bytes(0, (to - from) as usize) };
    }

    fn at(&self, offset: u64) -> *mut u8 {
        // SAFETY: callers pass offsets inside the mapping, or its end with a length of 0.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }

    fn lock(&self, offset: u64) -> &RwLock<()> {
        &self.locks[(offset / STRIPE_BYTES) as usize % LOCKS]
    }

    fn stripes(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, u64)> {
        let end = offset.checked_add(length).filter(|&end| end <= self.bytes);
        let end = end.expect("the request lies within the drive");
        let mut at = offset;
        std::iter::from_fn(move || {
            let piece = (STRIPE_BYTES - at % STRIPE_BYTES).min(end - at);
            let stripe = (piece > 0).then_some((at, piece));
            at += piece;
            stripe
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing borrows it any more.
        // A failure would leak address space of a process that is ending.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_across_stripes_is_read_back() {
        let memory = Memory::new(1 << 20, false).unwrap();
        let data: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        memory.write(STRIPE_BYTES - 5, &data);
        let mut back = vec![0; data.len() + 2];
        memory.read(STRIPE_BYTES - 6, &mut back);
        assert_eq!((back[0], back[back.len() - 1]), (0, 0));
        assert_eq!(back[1..=data.len()], data);
    }

    #[test]
    fn zeroing_keeps_the_neighbours() {
        for (populate, punch) in [(false, true), (true, true), (false, false)] {
            let memory = Memory::new(1 << 20, populate).unwrap();
            memory.write(0, &vec![7; 1 << 20]);
            memory.zero(100, 300_000, punch).unwrap();
            let mut back = vec![1; 1 << 20];
            memory.read(0, &mut back);
            assert!(back[..100]
                .iter()
                .chain(&back[300_100..])
                .all(|&byte| byte == 7));
            assert!(back[100..300_100].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    #[should_panic(expected = "within the drive")]
    fn the_end_is_checked() {
        Memory::new(4096, false).unwrap().read(4090, &mut [0; 7]);
    }
}

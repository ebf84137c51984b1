//! The storage of a drive's bytes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{fallocate, FallocateFlags};

use crate::memory::Memory;

/// A drive's bytes.
pub enum Backing {
    /// In memory: lost when the process ends.
    Memory(Memory),
    /// In a file of the drive's size.
    File(File),
}

impl Backing {
    /// The file at `path`, made or grown to `bytes` where it is smaller.
    ///
    /// # Errors
    /// As the file system has them.
    pub fn file(path: &Path, bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        if file.metadata()?.len() < bytes {
            file.set_len(bytes)?;
        }
        Ok(Self::File(file))
    }

    /// Fill `data` from `offset`.
    ///
    /// # Errors
    /// As the file has them.
    ///
    /// # Panics
    /// When it lies beyond the end of memory.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory.read(offset, data);
                Ok(())
            }
            Self::File(file) => file.read_exact_at(data, offset),
        }
    }

    /// Store `data` at `offset`.
    ///
    /// # Errors
    /// As [`Backing::read`] has them.
    ///
    /// # Panics
    /// As [`Backing::read`] does.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory.write(offset, data);
                Ok(())
            }
            Self::File(file) => file.write_all_at(data, offset),
        }
    }

    /// Store zeroes, as a hole where `punch` allows one.
    ///
    /// # Errors
    /// As [`Backing::read`] has them.
    ///
    /// # Panics
    /// As [`Backing::read`] does.
    pub fn zero(&self, offset: u64, length: u64, punch: bool) -> io::Result<()> {
        match self {
            Self::Memory(memory) => memory.zero(offset, length, punch),
            Self::File(_) if length == 0 => Ok(()),
            Self::File(file) => {
                let how = if punch {
                    FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE
                } else {
                    FallocateFlags::ZERO_RANGE
                };
                match fallocate(file, how, offset, length) {
                    Err(rustix::io::Errno::OPNOTSUPP) => write_zeroes(file, offset, length),
                    done => Ok(done?),
                }
            }
        }
    }

    /// Flush written data to stable storage.
    ///
    /// # Errors
    /// As the file has them.
    pub fn flush(&self) -> io::Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::File(file) => file.sync_data(),
        }
    }
}

/// Fallback for file systems that cannot make holes or zero ranges.
fn write_zeroes(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let zeroes = [0; 64 << 10];
    let mut at = offset;
    while at < offset + length {
        let piece = (offset + length - at).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..piece as usize], at)?;
        at += piece;
    }
    Ok(())
}

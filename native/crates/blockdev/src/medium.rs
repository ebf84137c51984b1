//! The content of a drive that is served, wherever it lies.

use std::io;

use nbdserver::Offer;

/// Blocks that many threads read and write at once. Ranges lie within them, and begin and end between blocks.
pub trait Medium: Send + Sync {
    /// The description for clients.
    fn offer(&self) -> Offer;

    /// Fill `buffer`, which begins on a page, with the bytes from `offset` on.
    ///
    /// # Errors
    /// As the drive has them.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Put bytes there; `data` begins on a page.
    ///
    /// # Errors
    /// As the drive has them.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Make completed writes durable.
    ///
    /// # Errors
    /// As the drive has them.
    fn flush(&self) -> io::Result<()>;

    /// Give up what is there.
    ///
    /// # Errors
    /// As the drive has them.
    fn trim(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Put zeroes there, in the place that is kept where it `keeps_place`.
    ///
    /// # Errors
    /// As the drive has them.
    fn zero(&self, offset: u64, length: u64, keeps_place: bool) -> io::Result<()>;

    /// Whether the drive as a whole answers no more, so that an I/O error says nothing of sectors.
    fn is_gone(&self) -> bool;
}

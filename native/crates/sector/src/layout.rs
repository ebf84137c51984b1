//! The layout of an identified sector. All numbers are little-endian.
//!
//! ```text
//!    0   8  magic "RLSECTOR"          84   4  check of bytes 0..84
//!    8   2  version, 1                88      payload up to the next stamp
//!   10   2  length of the serial   512*k  16  stamp of stripe k, k = 1..7
//!   12   4  zero                    4076  16  stamp of the trailer, as k = 8
//!   16   8  address (4 KiB)         4092   4  CRC-32C of bytes 0..4092
//!   24   8  generation
//!   32   8  seed                   a stamp is: generation 8, place 4, check 4
//!   40  44  serial, zero-padded
//! ```

use std::fmt;

use crate::payload;

/// Length of an identified sector.
pub const SECTOR_BYTES: usize = 4096;
/// Longest serial that fits: NVMe and ATA have 20 bytes, SCSI drives in practice up to 36.
pub const MAX_SERIAL_BYTES: usize = 44;

/// One sector's bytes.
pub(crate) type Sector = [u8; SECTOR_BYTES];

const MAGIC: [u8; 8] = *b"RLSECTOR";
const VERSION: u16 = 1;
const HEADER_CHECK_AT: usize = 84;
const HEADER_END: usize = 88;
const STRIPE_BYTES: usize = 512;
const STAMP_BYTES: usize = 16;
const TRAILER_AT: usize = 4076;
const CRC_AT: usize = 4092;
/// Stamps a sector carries: stripes 1 to 7, and the trailer.
pub(crate) const STAMPS: usize = 8;

/// The error of a serial that cannot be written into a sector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialError(String);

impl fmt::Display for SerialError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "serial {:?} cannot be stamped: use 1 to {MAX_SERIAL_BYTES} printable ASCII characters",
            self.0
        )
    }
}

impl std::error::Error for SerialError {}

/// A drive's serial and its hash, which all of its sectors share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drive {
    serial: String,
    hash: u64,
}

impl Drive {
    /// The drive with `serial`.
    ///
    /// # Errors
    /// [`SerialError`] where the serial is empty, too long, or not printable ASCII.
    pub fn new(serial: &str) -> Result<Self, SerialError> {
        let printable = serial.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if serial.is_empty() || serial.len() > MAX_SERIAL_BYTES || !printable {
            return Err(SerialError(serial.to_owned()));
        }
        let hash = serial
            .bytes()
            .fold(0, |hash, byte| payload::mix(hash ^ u64::from(byte)));
        Ok(Self {
            serial: serial.to_owned(),
            hash,
        })
    }

    /// The serial this drive was made with.
    #[must_use]
    pub fn serial(&self) -> &str {
        &self.serial
    }
}

/// The identity in a sector's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Serial of the drive it was written for.
    pub serial: String,
    /// Address it was written to, in 4 KiB sectors.
    pub lba: u64,
    /// Generation of the write.
    pub generation: u64,
    /// Seed of the write.
    pub seed: u64,
}

/// The stamp that a write leaves in every stripe: its generation, and a 32-bit hash of all else that identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) generation: u64,
    place: u32,
}

impl Stamp {
    fn of(drive: &Drive, lba: u64, generation: u64, seed: u64) -> Self {
        let place = (key(drive, lba, seed) >> 32) as u32;
        Self { generation, place }
    }

    fn check(self, stripe: usize) -> u32 {
        let mixed = payload::mix(
            self.generation ^ payload::mix((stripe as u64) << 32 | u64::from(self.place)),
        );
        (mixed >> 32) as u32
    }

    fn encode(self, stripe: usize) -> [u8; STAMP_BYTES] {
        let mut out = [0; STAMP_BYTES];
        out[0..8].copy_from_slice(&self.generation.to_le_bytes());
        out[8..12].copy_from_slice(&self.place.to_le_bytes());
        out[12..16].copy_from_slice(&self.check(stripe).to_le_bytes());
        out
    }
}

fn key(drive: &Drive, lba: u64, seed: u64) -> u64 {
    payload::mix(drive.hash ^ payload::mix(lba ^ payload::mix(seed)))
}

fn stamp_at(stripe: usize) -> usize {
    if stripe == STAMPS {
        TRAILER_AT
    } else {
        stripe * STRIPE_BYTES
    }
}

/// Write one identified sector.
pub(crate) fn write(sector: &mut Sector, drive: &Drive, lba: u64, generation: u64, seed: u64) {
    payload::fill(sector, key(drive, lba, seed) ^ payload::mix(generation));
    sector[..HEADER_END].fill(0);
    sector[0..8].copy_from_slice(&MAGIC);
    sector[8..10].copy_from_slice(&VERSION.to_le_bytes());
    sector[10..12].copy_from_slice(&(drive.serial.len() as u16).to_le_bytes());
    sector[16..24].copy_from_slice(&lba.to_le_bytes());
    sector[24..32].copy_from_slice(&generation.to_le_bytes());
    sector[32..40].copy_from_slice(&seed.to_le_bytes());
    sector[40..40 + drive.serial.len()].copy_from_slice(drive.serial.as_bytes());
    let check = header_check(sector);
    sector[HEADER_CHECK_AT..HEADER_END].copy_from_slice(&check.to_le_bytes());
    let stamp = Stamp::of(drive, lba, generation, seed);
    for stripe in 1..=STAMPS {
        let at = stamp_at(stripe);
        sector[at..at + STAMP_BYTES].copy_from_slice(&stamp.encode(stripe));
    }
    let crc = crc32c::crc32c(&sector[..CRC_AT]);
    sector[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// Whether the CRC over the whole sector is right.
pub(crate) fn crc_is_right(sector: &Sector) -> bool {
    crc32c::crc32c(&sector[..CRC_AT]) == u32_at(sector, CRC_AT)
}

/// Whether the sector begins as an identified sector does.
pub(crate) fn has_magic(sector: &Sector) -> bool {
    sector[..MAGIC.len()] == MAGIC
}

/// Whether the header's own check is right.
pub(crate) fn header_check_is_right(sector: &Sector) -> bool {
    header_check(sector) == u32_at(sector, HEADER_CHECK_AT)
}

/// The CRC of the header, mixed: a plain CRC here would leave the CRC of the whole sector the same for every header.
fn header_check(sector: &Sector) -> u32 {
    let crc = crc32c::crc32c(&sector[..HEADER_CHECK_AT]);
    (payload::mix(crc.into()) >> 32) as u32
}

/// The fields of a header, borrowed from a sector whose CRC is known to be right.
pub(crate) struct Header<'a> {
    pub(crate) serial: &'a str,
    pub(crate) lba: u64,
    pub(crate) generation: u64,
    pub(crate) seed: u64,
}

impl<'a> Header<'a> {
    /// The header, if the sector has one of this version. The CRC is not checked.
    pub(crate) fn of(sector: &'a Sector) -> Option<Self> {
        let length = usize::from(u16_at(sector, 10));
        if !has_magic(sector)
            || u16_at(sector, 8) != VERSION
            || !(1..=MAX_SERIAL_BYTES).contains(&length)
        {
            return None;
        }
        Some(Self {
            serial: std::str::from_utf8(&sector[40..40 + length]).ok()?,
            lba: u64_at(sector, 16),
            generation: u64_at(sector, 24),
            seed: u64_at(sector, 32),
        })
    }

    /// The stamp that this write leaves in every stripe.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let drive = Drive::new(self.serial).ok()?;
        Some(Stamp::of(&drive, self.lba, self.generation, self.seed))
    }
}

impl From<Header<'_>> for Identity {
    fn from(header: Header<'_>) -> Self {
        Self {
            serial: header.serial.to_owned(),
            lba: header.lba,
            generation: header.generation,
            seed: header.seed,
        }
    }
}

/// The stamp of stripe `stripe` (1 to [`STAMPS`]); `None` if it is damaged.
pub(crate) fn stamp(sector: &Sector, stripe: usize) -> Option<Stamp> {
    let at = stamp_at(stripe);
    let found = Stamp {
        generation: u64_at(sector, at),
        place: u32_at(sector, at + 8),
    };
    (found.encode(stripe) == sector[at..at + STAMP_BYTES]).then_some(found)
}

/// Whether stripe `stripe` holds nothing but zeros: a part that was never written.
pub(crate) fn stripe_is_blank(sector: &Sector, stripe: usize) -> bool {
    let end = if stripe == STAMPS {
        SECTOR_BYTES
    } else {
        stamp_at(stripe) + STRIPE_BYTES
    };
    sector[stamp_at(stripe)..end].iter().all(|&byte| byte == 0)
}

fn u16_at(sector: &Sector, at: usize) -> u16 {
    u16::from_le_bytes(sector[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(sector: &Sector, at: usize) -> u32 {
    u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(sector: &Sector, at: usize) -> u64 {
    u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"))
}

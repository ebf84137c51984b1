//! Numbers and fixed-size messages of the protocol, as pure functions over bytes.

/// `NBDMAGIC`, the first eight bytes a server sends.
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`, before every option in fixed newstyle negotiation.
pub const OPT_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The magic number of an option reply.
pub const OPT_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The magic number of a request in the transmission phase.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The magic number of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The magic number of a structured reply chunk.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags.
pub mod handshake {
    /// Server speaks fixed newstyle.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// Server can leave out the 124 zero bytes.
    pub const NO_ZEROES: u16 = 2;
}

/// Options of the negotiation.
pub mod opt {
    /// Old way to choose an export.
    pub const EXPORT_NAME: u32 = 1;
    /// End the negotiation.
    pub const ABORT: u32 = 2;
    /// List exports.
    pub const LIST: u32 = 3;
    /// Ask about an export.
    pub const INFO: u32 = 6;
    /// Choose an export.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
}

/// Option reply types.
pub mod rep {
    /// Done.
    pub const ACK: u32 = 1;
    /// One export of a list.
    pub const SERVER: u32 = 2;
    /// One piece of information about an export.
    pub const INFO: u32 = 3;
    /// Option not supported.
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    /// Option forbidden by policy.
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    /// Option malformed.
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    /// Option data too long.
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Information types inside [`rep::INFO`].
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Canonical name.
    pub const NAME: u16 = 1;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub mod flag {
    /// Flags are valid.
    pub const HAS_FLAGS: u16 = 1;
    /// Read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Rotational medium.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Several connections see one coherent device.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Commands of the transmission phase.
pub mod cmd {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Disconnect.
    pub const DISC: u16 = 2;
    /// Flush.
    pub const FLUSH: u16 = 3;
    /// Trim.
    pub const TRIM: u16 = 4;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Command flag: force unit access.
    pub const FLAG_FUA: u16 = 1;
    /// Command flag: write zeroes without making a hole.
    pub const FLAG_NO_HOLE: u16 = 2;
    /// Command flag: do not fragment a structured read reply.
    pub const FLAG_DF: u16 = 4;
}

/// Structured reply chunk types and flags.
pub mod chunk {
    /// Last chunk of a reply.
    pub const FLAG_DONE: u16 = 1;
    /// No payload.
    pub const NONE: u16 = 0;
    /// Offset and data.
    pub const OFFSET_DATA: u16 = 1;
    /// Offset and length of a hole.
    pub const OFFSET_HOLE: u16 = 2;
    /// Error without offset.
    pub const ERROR: u16 = (1 << 15) + 1;
    /// Error at an offset.
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// Error numbers on the wire (Linux values, fixed by the protocol).
pub mod errno {
    /// Not permitted.
    pub const EPERM: u32 = 1;
    /// I/O error.
    pub const EIO: u32 = 5;
    /// Invalid argument.
    pub const EINVAL: u32 = 22;
    /// No space left.
    pub const ENOSPC: u32 = 28;
    /// The drive is going away, or gone.
    pub const ESHUTDOWN: u32 = 108;
}

/// Largest request rackd accepts and rackprobe sends: 64 MiB.
pub const MAX_REQUEST_BYTES: u32 = 64 << 20;

/// Length of a request header on the wire.
pub const REQUEST_LEN: usize = 28;

/// A request header of the transmission phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Command flags ([`cmd`]).
    pub flags: u16,
    /// Command ([`cmd`]).
    pub command: u16,
    /// Echoed in the reply.
    pub cookie: u64,
    /// Byte offset.
    pub offset: u64,
    /// Byte count.
    pub length: u32,
}

impl Request {
    /// Encode the header; the payload of a write follows it.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_LEN] {
        let mut out = [0; REQUEST_LEN];
        out[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.to_be_bytes());
        out[6..8].copy_from_slice(&self.command.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..28].copy_from_slice(&self.length.to_be_bytes());
        out
    }

    /// Decode a header, or `None` where the magic is wrong.
    #[must_use]
    pub fn decode(raw: &[u8; REQUEST_LEN]) -> Option<Self> {
        if u32_at(raw, 0) != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: u16_at(raw, 4),
            command: u16_at(raw, 6),
            cookie: u64_at(raw, 8),
            offset: u64_at(raw, 16),
            length: u32_at(raw, 24),
        })
    }
}

/// The big-endian u16 at `at`. Panics when `raw` is shorter.
#[must_use]
pub fn u16_at(raw: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(raw[at..at + 2].try_into().expect("two bytes"))
}

/// The big-endian u32 at `at`. Panics when `raw` is shorter.
#[must_use]
pub fn u32_at(raw: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(raw[at..at + 4].try_into().expect("four bytes"))
}

/// The big-endian u64 at `at`. Panics when `raw` is shorter.
#[must_use]
pub fn u64_at(raw: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(raw[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_wire() {
        let request = Request {
            flags: 1,
            command: cmd::WRITE,
            cookie: 7,
            offset: 4096,
            length: 512,
        };
        assert_eq!(Request::decode(&request.encode()), Some(request));
    }

    #[test]
    fn a_wrong_magic_is_no_request() {
        assert_eq!(Request::decode(&[0; REQUEST_LEN]), None);
    }
}

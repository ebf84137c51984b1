//! The client side of the fixed newstyle negotiation.

use crate::proto::{self, flag, handshake, info, opt, rep, u16_at, u32_at, u64_at};
use crate::stream::{Error, Stream};

/// Maximum accepted length of an option reply; useful ones have at most a few hundred bytes.
const MAX_OPTION_REPLY: u32 = 64 << 10;

/// The server's description of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Size in bytes.
    pub bytes: u64,
    /// Transmission flags ([`flag`]).
    pub flags: u16,
    /// The bytes that requests are multiples of, which they begin and end at.
    pub minimum_block: u32,
    /// Longest request the server takes.
    pub max_request_bytes: u32,
}

impl Export {
    /// Whether a transmission flag of [`flag`] is set.
    #[must_use]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Negotiate the export `name`, with structured replies if the server supports them.
pub(crate) fn negotiate(stream: &mut Stream, name: &str) -> Result<Export, Error> {
    let greeting: [u8; 18] = stream.read_array()?;
    if u64_at(&greeting, 0) != proto::INIT_MAGIC || u64_at(&greeting, 8) != proto::OPT_MAGIC {
        return Err(Error::Protocol(
            "it did not greet as a newstyle server".to_owned(),
        ));
    }
    let server = u16_at(&greeting, 16);
    if server & handshake::FIXED_NEWSTYLE == 0 {
        return Err(Error::Protocol(
            "it does not speak fixed newstyle".to_owned(),
        ));
    }
    let client = server & (handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
    stream.write_all(&u32::from(client).to_be_bytes())?;

    send_option(stream, opt::STRUCTURED_REPLY, &[])?;
    read_option_reply(stream, opt::STRUCTURED_REPLY)?;

    let mut go = (name.len() as u32).to_be_bytes().to_vec();
    go.extend_from_slice(name.as_bytes());
    go.extend_from_slice(&1u16.to_be_bytes());
    go.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
    send_option(stream, opt::GO, &go)?;
    let mut size_and_flags = None;
    let mut minimum_block = 1;
    let mut max_request_bytes = proto::MAX_REQUEST_BYTES;
    loop {
        let (kind, data) = read_option_reply(stream, opt::GO)?;
        match kind {
            rep::INFO if data.len() == 12 && u16_at(&data, 0) == info::EXPORT => {
                size_and_flags = Some((u64_at(&data, 2), u16_at(&data, 10)));
            }
            rep::INFO if data.len() == 14 && u16_at(&data, 0) == info::BLOCK_SIZE => {
                minimum_block = u32_at(&data, 2).max(1);
                max_request_bytes = max_request_bytes.min(u32_at(&data, 10));
            }
            rep::INFO => (),
            rep::ACK => break,
            _ => return Err(Error::Refused(refusal(name, kind, &data))),
        }
    }
    let (bytes, flags) =
        size_and_flags.ok_or_else(|| Error::Protocol("it gave no size".to_owned()))?;
    if flags & flag::HAS_FLAGS == 0 {
        return Err(Error::Protocol(
            "its transmission flags are not valid".to_owned(),
        ));
    }
    Ok(Export {
        bytes,
        flags,
        minimum_block,
        max_request_bytes,
    })
}

fn send_option(stream: &mut Stream, option: u32, data: &[u8]) -> Result<(), Error> {
    let mut message = proto::OPT_MAGIC.to_be_bytes().to_vec();
    message.extend_from_slice(&option.to_be_bytes());
    message.extend_from_slice(&(data.len() as u32).to_be_bytes());
    message.extend_from_slice(data);
    Ok(stream.write_all(&message)?)
}

fn read_option_reply(stream: &mut Stream, option: u32) -> Result<(u32, Vec<u8>), Error> {
    let head: [u8; 20] = stream.read_array()?;
    let (magic, answered, kind, length) = (
        u64_at(&head, 0),
        u32_at(&head, 8),
        u32_at(&head, 12),
        u32_at(&head, 16),
    );
    if magic != proto::OPT_REPLY_MAGIC || answered != option || length > MAX_OPTION_REPLY {
        return Err(Error::Protocol(format!("a bad answer to option {option}")));
    }
    let mut data = vec![0; length as usize];
    stream.read_exact(&mut data)?;
    Ok((kind, data))
}

fn refusal(name: &str, kind: u32, data: &[u8]) -> String {
    let why = match kind {
        rep::ERR_UNKNOWN => "there is none of that name".to_owned(),
        rep::ERR_POLICY => "it is forbidden".to_owned(),
        rep::ERR_UNSUP => "the server is too old for NBD_OPT_GO".to_owned(),
        other => format!("reply {other:#010x}"),
    };
    format!("{name:?}: {why} {}", String::from_utf8_lossy(data))
        .trim_end()
        .to_owned()
}

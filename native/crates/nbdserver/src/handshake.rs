//! The server side of the fixed newstyle negotiation.

use std::io::{self, Read, Write};

use nbd::proto::{
    flag, handshake, info, opt, rep, u16_at, u32_at, u64_at, INIT_MAGIC, OPT_MAGIC, OPT_REPLY_MAGIC,
};

use crate::inbox::Inbox;
use crate::reply::Style;

/// Maximum length of option data.
const MAX_OPTION_BYTES: u32 = 64 << 10;

/// The description of an export for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Size in bytes.
    pub bytes: u64,
    /// Transmission flags ([`flag`]), without [`flag::HAS_FLAGS`].
    pub flags: u16,
    /// The bytes that requests are multiples of.
    pub minimum_block: u32,
    /// The bytes that requests are best multiples of.
    pub preferred_block: u32,
    /// The longest request.
    pub maximum_block: u32,
}

/// The exports of a server.
pub trait Exports {
    /// One that a client may choose.
    type Export;

    /// The names of all that are listed.
    fn names(&self) -> Vec<String>;

    /// The export of a name; `None` where there is none.
    fn find(&self, name: &str) -> Option<Self::Export>;

    /// The description of an export.
    fn offer(&self, export: &Self::Export) -> Offer;
}

/// Negotiate until the client chooses an export, and whether it takes structured replies.
///
/// `None` if it leaves without one, which a client that breaks the protocol is taken for.
///
/// # Errors
/// `UnexpectedEof` where it hangs up, and as the connection has them.
pub fn negotiate<E: Exports>(
    mut from: impl Read,
    mut to: impl Write,
    inbox: &mut Inbox,
    exports: &E,
) -> io::Result<Option<(E::Export, Style)>> {
    let mut greeting = INIT_MAGIC.to_be_bytes().to_vec();
    greeting.extend_from_slice(&OPT_MAGIC.to_be_bytes());
    greeting.extend_from_slice(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
    to.write_all(&greeting)?;
    to.flush()?;
    inbox.fill(&mut from, 4)?;
    let client_flags = u32_at(inbox.take(4), 0);
    let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
    if client_flags & !known != 0 {
        return Ok(None);
    }
    let mut talk = Talk {
        to,
        exports,
        no_zeroes: client_flags & u32::from(handshake::NO_ZEROES) != 0,
        style: Style::Simple,
    };
    loop {
        inbox.fill(&mut from, 16)?;
        let header = inbox.take(16);
        let (magic, option, length) = (u64_at(header, 0), u32_at(header, 8), u32_at(header, 12));
        if magic != OPT_MAGIC {
            return Ok(None);
        }
        if length > MAX_OPTION_BYTES {
            inbox.discard(&mut from, u64::from(length))?;
            talk.reply(option, rep::ERR_TOO_BIG, &[])?;
            continue;
        }
        inbox.fill(&mut from, length as usize)?;
        let data = inbox.take(length as usize);
        match talk.answer(option, data)? {
            Next::Stay => {}
            Next::Leave => return Ok(None),
            Next::Serve(export) => return Ok(Some((export, talk.style))),
        }
    }
}

enum Next<E> {
    Stay,
    Leave,
    Serve(E),
}

struct Talk<'a, W, E> {
    to: W,
    exports: &'a E,
    no_zeroes: bool,
    style: Style,
}

impl<W: Write, E: Exports> Talk<'_, W, E> {
    fn answer(&mut self, option: u32, data: &[u8]) -> io::Result<Next<E::Export>> {
        match option {
            opt::EXPORT_NAME => return self.export_name(data),
            opt::ABORT => {
                self.reply(option, rep::ACK, &[])?;
                return Ok(Next::Leave);
            }
            opt::LIST if data.is_empty() => {
                for name in self.exports.names() {
                    let mut entry = (name.len() as u32).to_be_bytes().to_vec();
                    entry.extend_from_slice(name.as_bytes());
                    self.reply(option, rep::SERVER, &entry)?;
                }
                self.reply(option, rep::ACK, &[])?;
            }
            opt::STRUCTURED_REPLY if data.is_empty() => {
                self.style = Style::Structured;
                self.reply(option, rep::ACK, &[])?;
            }
            opt::LIST | opt::STRUCTURED_REPLY => self.reply(option, rep::ERR_INVALID, &[])?,
            opt::INFO | opt::GO => return self.info(option, data),
            _ => self.reply(option, rep::ERR_UNSUP, &[])?,
        }
        Ok(Next::Stay)
    }

    /// The oldest option: there is no error reply, an unknown name ends the connection.
    fn export_name(&mut self, name: &[u8]) -> io::Result<Next<E::Export>> {
        let Some(export) = self.find(name) else {
            return Ok(Next::Leave);
        };
        let mut answer = size_and_flags(&self.exports.offer(&export));
        if !self.no_zeroes {
            answer.extend_from_slice(&[0; 124]);
        }
        self.to.write_all(&answer)?;
        self.to.flush()?;
        Ok(Next::Serve(export))
    }

    fn info(&mut self, option: u32, data: &[u8]) -> io::Result<Next<E::Export>> {
        let Some((name, wanted)) = parse_info(data) else {
            self.reply(option, rep::ERR_INVALID, &[])?;
            return Ok(Next::Stay);
        };
        let Some(export) = self.find(name) else {
            self.reply(
                option,
                rep::ERR_UNKNOWN,
                b"no such export, or no such drive there; LIST names the exports",
            )?;
            return Ok(Next::Stay);
        };
        let offer = self.exports.offer(&export);
        let mut about = info::EXPORT.to_be_bytes().to_vec();
        about.extend_from_slice(&size_and_flags(&offer));
        self.reply(option, rep::INFO, &about)?;
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for bytes in [
            offer.minimum_block,
            offer.preferred_block,
            offer.maximum_block,
        ] {
            sizes.extend_from_slice(&bytes.to_be_bytes());
        }
        self.reply(option, rep::INFO, &sizes)?;
        if wanted.contains(&info::NAME) {
            let mut canonical = info::NAME.to_be_bytes().to_vec();
            canonical.extend_from_slice(name);
            self.reply(option, rep::INFO, &canonical)?;
        }
        self.reply(option, rep::ACK, &[])?;
        Ok(if option == opt::GO {
            Next::Serve(export)
        } else {
            Next::Stay
        })
    }

    fn find(&self, name: &[u8]) -> Option<E::Export> {
        self.exports.find(std::str::from_utf8(name).ok()?)
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let mut out = OPT_REPLY_MAGIC.to_be_bytes().to_vec();
        for word in [option, kind, data.len() as u32] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(data);
        self.to.write_all(&out)?;
        self.to.flush()
    }
}

fn size_and_flags(offer: &Offer) -> Vec<u8> {
    let mut out = offer.bytes.to_be_bytes().to_vec();
    out.extend_from_slice(&(offer.flags | flag::HAS_FLAGS).to_be_bytes());
    out
}

/// The export name and the information types an INFO or GO asks for, `None` where the data is malformed.
fn parse_info(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let (length, rest) = data.split_at_checked(4)?;
    let (name, rest) = rest.split_at_checked(u32_at(length, 0) as usize)?;
    let (count, rest) = rest.split_at_checked(2)?;
    if rest.len() != usize::from(u16_at(count, 0)) * 2 {
        return None;
    }
    Some((
        name,
        rest.chunks_exact(2).map(|pair| u16_at(pair, 0)).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_info_asks_for_is_parsed() {
        let data = [0, 0, 0, 2, b'a', b'b', 0, 1, 0, 3];
        assert_eq!(parse_info(&data), Some((b"ab".as_slice(), vec![3])));
    }

    #[test]
    fn malformed_info_is_refused() {
        let bad: [&[u8]; 5] = [
            &[],
            &[0, 0, 0],
            &[0xff, 0xff, 0xff, 0xff, 0, 0],
            &[0, 0, 0, 0, 0, 1],
            &[0, 0, 0, 0, 0, 0, 9],
        ];
        assert!(bad.iter().all(|data| parse_info(data).is_none()));
    }
}

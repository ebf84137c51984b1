//! Fixed newstyle negotiation, server side.

use std::io::{self, Write};
use std::sync::Arc;

use nbd::proto::{
    flag, handshake, info, opt, rep, u16_at, u32_at, u64_at, INIT_MAGIC, MAX_REQUEST_BYTES,
    OPT_MAGIC, OPT_REPLY_MAGIC,
};
use racksim::OnReadError;
use socket2::Socket;

use crate::inbox::Inbox;
use crate::io_path::IoPath;
use crate::reply::Style;
use crate::running_rack::RunningRack;

/// Maximum length of option data.
const MAX_OPTION_BYTES: u32 = 64 << 10;
const PREFERRED_BLOCK: u32 = 4096;

/// Suffix of the name of an export's twin, whose reads fail fast.
const FAIL_FAST: &str = ".failfast";

/// Separator between the name of an export and the serial number of the only drive that may answer.
const BY_ID: &str = ".by-id.";

/// A client's choices: an export of the rack, the policy for unreadable sectors, the only drive that may answer, and
/// the style of replies.
pub struct Chosen {
    pub export: usize,
    pub on_read_error: OnReadError,
    pub only: Option<usize>,
    pub style: Style,
}

/// Negotiate until the client chooses an export; `None` if it disconnects without one.
pub fn negotiate(
    socket: &Socket,
    inbox: &mut Inbox,
    running: &RunningRack,
) -> io::Result<Option<Chosen>> {
    let mut greeting = INIT_MAGIC.to_be_bytes().to_vec();
    greeting.extend_from_slice(&OPT_MAGIC.to_be_bytes());
    greeting.extend_from_slice(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
    write(socket, &greeting)?;
    inbox.fill(socket, 4)?;
    let client_flags = u32_at(inbox.take(4), 0);
    let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
    if client_flags & !known != 0 {
        return Ok(None);
    }
    let mut talk = Talk {
        socket,
        running,
        no_zeroes: client_flags & u32::from(handshake::NO_ZEROES) != 0,
        style: Style::Simple,
    };
    loop {
        inbox.fill(socket, 16)?;
        let header = inbox.take(16);
        let (magic, option, length) = (u64_at(header, 0), u32_at(header, 8), u32_at(header, 12));
        if magic != OPT_MAGIC {
            return Ok(None);
        }
        if length > MAX_OPTION_BYTES {
            inbox.discard(socket, u64::from(length))?;
            talk.reply(option, rep::ERR_TOO_BIG, &[])?;
            continue;
        }
        inbox.fill(socket, length as usize)?;
        let data = inbox.take(length as usize);
        match talk.answer(option, data)? {
            Next::Stay => {}
            Next::Leave => return Ok(None),
            Next::Serve(Requested {
                export,
                on_read_error,
                only,
            }) => {
                return Ok(Some(Chosen {
                    export,
                    on_read_error,
                    only,
                    style: talk.style,
                }))
            }
        }
    }
}

enum Next {
    Stay,
    Leave,
    Serve(Requested),
}

/// A requested export: its index, the fail-fast twin or not, and the only drive that may answer.
#[derive(Clone, Copy)]
struct Requested {
    export: usize,
    on_read_error: OnReadError,
    only: Option<usize>,
}

struct Talk<'a> {
    socket: &'a Socket,
    running: &'a RunningRack,
    no_zeroes: bool,
    style: Style,
}

impl Talk<'_> {
    fn answer(&mut self, option: u32, data: &[u8]) -> io::Result<Next> {
        match option {
            opt::EXPORT_NAME => return self.export_name(data),
            opt::ABORT => {
                self.reply(option, rep::ACK, &[])?;
                return Ok(Next::Leave);
            }
            opt::LIST if data.is_empty() => {
                let paths = self.running.paths().iter();
                for name in paths.flat_map(|path| [path.name.to_string(), twin(&path.name)]) {
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
    fn export_name(&self, name: &[u8]) -> io::Result<Next> {
        let Some(requested) = self.requested(name) else {
            return Ok(Next::Leave);
        };
        let path = &self.running.paths()[requested.export];
        let mut answer = path.bytes.to_be_bytes().to_vec();
        answer.extend_from_slice(&export_flags(path).to_be_bytes());
        if !self.no_zeroes {
            answer.extend_from_slice(&[0; 124]);
        }
        write(self.socket, &answer)?;
        Ok(Next::Serve(requested))
    }

    fn info(&self, option: u32, data: &[u8]) -> io::Result<Next> {
        let Some((name, wanted)) = parse_info(data) else {
            self.reply(option, rep::ERR_INVALID, &[])?;
            return Ok(Next::Stay);
        };
        let Some(requested) = self.requested(name) else {
            self.reply(
                option,
                rep::ERR_UNKNOWN,
                b"no such export, or no such drive there; LIST names the exports",
            )?;
            return Ok(Next::Stay);
        };
        let path = &self.running.paths()[requested.export];
        let mut about = info::EXPORT.to_be_bytes().to_vec();
        about.extend_from_slice(&path.bytes.to_be_bytes());
        about.extend_from_slice(&export_flags(path).to_be_bytes());
        self.reply(option, rep::INFO, &about)?;
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for bytes in [1, PREFERRED_BLOCK, MAX_REQUEST_BYTES] {
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
            Next::Serve(requested)
        } else {
            Next::Stay
        })
    }

    fn requested(&self, name: &[u8]) -> Option<Requested> {
        let name = std::str::from_utf8(name).ok()?;
        let (name, on_read_error) = match name.strip_suffix(FAIL_FAST) {
            Some(name) => (name, OnReadError::FailFast),
            None => (name, OnReadError::Retry),
        };
        let (name, serial) = match name.split_once(BY_ID) {
            Some((name, serial)) => (name, Some(serial)),
            None => (name, None),
        };
        let export = self.running.export(name)?;
        let only = match serial {
            Some(serial) => Some(self.drive_at(export, serial)?),
            None => None,
        };
        Some(Requested {
            export,
            on_read_error,
            only,
        })
    }

    /// The drive with this serial number, unless the export leads to another one.
    fn drive_at(&self, export: usize, serial: &str) -> Option<usize> {
        let drives = self.running.drives();
        let mut called_so = drives
            .iter()
            .filter(|drive| drive.identity.serial == serial);
        let (drive, None) = (called_so.next()?, called_so.next()) else {
            return None;
        };
        let other = self.running.paths()[export].drive();
        (other.is_none_or(|other| Arc::ptr_eq(&other, drive))).then_some(drive.identity.number)
    }

    fn reply(&self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let mut out = OPT_REPLY_MAGIC.to_be_bytes().to_vec();
        for word in [option, kind, data.len() as u32] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(data);
        write(self.socket, &out)
    }
}

fn write(mut socket: &Socket, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes)
}

fn twin(name: &str) -> String {
    format!("{name}{FAIL_FAST}")
}

fn export_flags(path: &IoPath) -> u16 {
    let rotational = if path.rotational { flag::ROTATIONAL } else { 0 };
    flag::HAS_FLAGS
        | flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES
        | flag::CAN_MULTI_CONN
        | rotational
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

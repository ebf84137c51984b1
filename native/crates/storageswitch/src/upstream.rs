//! A drive behind another NBD server.

use std::sync::Arc;

use nbd::client::{Client, Command};
use nbd::proto::{errno, flag, MAX_REQUEST_BYTES};
use nbd::uri::NbdUri;
use nbd::{Error, Export, Patience};
use nbdserver::Bytes;

use crate::job::{Job, Kind};
use crate::lane::Lane;

const WITHOUT_END: Patience = Patience {
    until: None,
    spin: false,
};

/// A connection to the export, made anew after it broke.
pub struct Upstream {
    uri: Arc<NbdUri>,
    export: Export,
    client: Option<Client<Vec<u8>>>,
    buffer: Vec<u8>,
}

impl Upstream {
    /// Connect.
    pub fn connect(uri: &Arc<NbdUri>) -> Result<Self, Error> {
        let client = Client::connect(uri)?;
        Ok(Self {
            uri: uri.clone(),
            export: client.export(),
            client: Some(client),
            buffer: Vec::new(),
        })
    }

    /// The server's description of the export.
    pub fn export(&self) -> Export {
        self.export
    }

    /// Whether several connections see one coherent drive.
    pub fn may_be_several(&self) -> bool {
        self.export.flags & (flag::CAN_MULTI_CONN | flag::READ_ONLY) != 0
    }

    /// Carry out one request on the connection; the error number that the server gave.
    fn ask(&mut self, command: Command<Vec<u8>>) -> Result<Result<Vec<u8>, u32>, Error> {
        let client = match &mut self.client {
            Some(client) => client,
            none => {
                let client = Client::connect(&self.uri)?;
                if client.export() != self.export {
                    let what = "the export is not what it was when the switch started";
                    return Err(Error::Refused(what.to_owned()));
                }
                none.insert(client)
            }
        };
        client.submit(command)?;
        let completion = client.receive(WITHOUT_END)?;
        let completion = completion.expect("patience has no end");
        let buffer = completion.buffer.unwrap_or_default();
        Ok(completion.result.map(|()| buffer))
    }

    /// The same, where a broken connection fails the request alone.
    fn answer(&mut self, command: Command<Vec<u8>>) -> Result<Vec<u8>, u32> {
        self.ask(command).unwrap_or_else(|_| {
            self.client = None;
            Err(errno::ESHUTDOWN)
        })
    }

    fn flush(&mut self) -> Result<(), u32> {
        if self.export.flags & flag::SEND_FLUSH == 0 {
            return Ok(());
        }
        self.answer(Command::Flush).map(drop)
    }

    /// The longest request that both sides take.
    fn longest(&self) -> usize {
        self.export.max_request_bytes.clamp(1, MAX_REQUEST_BYTES) as usize
    }
}

impl Lane for Upstream {
    fn perform(&mut self, job: &Job, bytes: Bytes<'_>) -> Result<(), u32> {
        let (mut offset, longest) = (job.offset, self.longest());
        match (job.kind, bytes) {
            (Kind::Read, Bytes::Fill(data)) => {
                for piece in data.chunks_mut(longest) {
                    let mut buffer = std::mem::take(&mut self.buffer);
                    buffer.resize(piece.len(), 0);
                    let buffer = self.answer(Command::Read { offset, buffer })?;
                    piece.copy_from_slice(&buffer);
                    self.buffer = buffer;
                    offset += piece.len() as u64;
                }
                Ok(())
            }
            (Kind::Write, Bytes::Store(data)) => {
                for piece in data.chunks(longest) {
                    let mut buffer = std::mem::take(&mut self.buffer);
                    buffer.clear();
                    buffer.extend_from_slice(piece);
                    self.buffer = self.answer(Command::Write { offset, buffer })?;
                    offset += piece.len() as u64;
                }
                if job.fua {
                    self.flush()?;
                }
                Ok(())
            }
            (Kind::Flush, _) => self.flush(),
            _ => Err(errno::EINVAL),
        }
    }
}

//! A drive of the pool: the connection to its export.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use blobstore::Io;
use nbd::client::{Client, Command};
use nbd::proto::flag;
use nbd::Patience;
use schedulers::Operation;

use crate::credits::Credits;
use crate::document::DriveOf;

/// A request that has been answered, with its bytes.
pub struct Answered {
    /// The request.
    pub io: Io,
    /// The bytes that were read or written.
    pub buffer: Vec<u8>,
    /// Whether the switch did it.
    pub is_done: bool,
}

/// A connection, and the requests in flight on it.
pub struct Drive {
    /// `None` once the connection is lost.
    client: Option<Client<Vec<u8>>>,
    in_flight: HashMap<u64, Io>,
    /// Bytes that these read or write.
    pub in_flight_bytes: u64,
    /// Byte count.
    pub bytes: u64,
    /// Requests that its switch has failed.
    pub failed: u64,
    /// The credits that its switch has told.
    pub credits: Credits,
    /// The reason why the connection was lost.
    pub lost: Option<String>,
}

impl Drive {
    /// Connect to the export.
    pub fn connect(of: &DriveOf) -> Result<Self, String> {
        let client = Client::connect(&of.parsed_uri()?)
            .map_err(|error| format!("drive {:?}: {error}", of.tenant))?;
        let export = client.export();
        if export.has(flag::READ_ONLY) {
            return Err(format!(
                "drive {:?}: its export is read-only; name a tenant that may write",
                of.tenant
            ));
        }
        Ok(Self {
            client: Some(client),
            in_flight: HashMap::new(),
            in_flight_bytes: 0,
            bytes: export.bytes,
            failed: 0,
            credits: Credits::default(),
            lost: None,
        })
    }

    /// Whether requests are in flight.
    pub fn is_busy(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Send a request; returns it if the connection is lost.
    pub fn submit(&mut self, io: Io, buffer: Vec<u8>) -> Result<(), Io> {
        let offset = io.offset;
        let command = match io.operation {
            Operation::Read => Command::Read { offset, buffer },
            Operation::Write => Command::Write {
                offset,
                buffer,
                fua: false,
            },
        };
        let Some(client) = &mut self.client else {
            return Err(io);
        };
        match client.submit(command) {
            Ok(cookie) => {
                self.in_flight_bytes += u64::from(io.bytes);
                self.in_flight.insert(cookie, io);
                Ok(())
            }
            Err(error) => {
                self.lose(&error.to_string());
                Err(io)
            }
        }
    }

    /// The next answer, if one comes within `wait`.
    pub fn receive(&mut self, wait: Duration) -> Option<Answered> {
        let patience = Patience {
            until: Some(Instant::now() + wait),
            spin: false,
        };
        match self.client.as_mut()?.receive(patience) {
            Ok(None) => None,
            Ok(Some(completion)) => {
                let io = self.in_flight.remove(&completion.cookie);
                let io = io.expect("a request that was sent");
                self.in_flight_bytes -= u64::from(io.bytes);
                self.failed += u64::from(completion.result.is_err());
                Some(Answered {
                    io,
                    buffer: completion.buffer.expect("reads and writes have one"),
                    is_done: completion.result.is_ok(),
                })
            }
            Err(error) => {
                self.lose(&error.to_string());
                None
            }
        }
    }

    /// Requests that were in flight when the connection was lost.
    pub fn take_lost(&mut self) -> Vec<Io> {
        if self.client.is_some() {
            return Vec::new();
        }
        self.in_flight_bytes = 0;
        self.in_flight.drain().map(|(_, io)| io).collect()
    }

    fn lose(&mut self, why: &str) {
        self.client = None;
        self.lost = Some(why.to_owned());
    }
}

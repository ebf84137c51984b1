//! The control socket of a storage switch, and the check that an export is that of a tenant there.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::document::DriveOf;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two questions for a state.
pub const POLL: Duration = Duration::from_millis(10);
/// A switch counts a connection shortly after it has answered it.
const COUNTED_WITHIN: Duration = Duration::from_secs(2);

/// A connection to a control socket.
pub struct Control {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Control {
    pub fn connect(drive: &DriveOf) -> io::Result<Self> {
        let writer = UnixStream::connect(&drive.control)?;
        writer.set_read_timeout(Some(TIMEOUT))?;
        let reader = BufReader::new(writer.try_clone()?);
        Ok(Self { reader, writer })
    }

    pub fn ask(&mut self, request: &Value) -> io::Result<Value> {
        writeln!(self.writer, "{request}")?;
        self.line()
    }

    pub fn line(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_str(&line).map_err(io::Error::from)
    }

    /// The state of a tenant; `None` where the switch has none of this name.
    pub fn tenant(&mut self, name: &str) -> io::Result<Option<Value>> {
        let mut state = self.ask(&json!({"id": 1, "op": "state"}))?;
        let tenants = state["tenants"].as_array_mut();
        Ok(tenants.and_then(|tenants| {
            let place = tenants.iter().position(|tenant| tenant["name"] == name)?;
            Some(tenants.swap_remove(place))
        }))
    }

    /// Wait for the next line for as long as it takes.
    pub fn wait_without_end(&self) -> io::Result<()> {
        self.writer.set_read_timeout(None)
    }
}

/// The check that an export is that of a tenant of a switch. Only these are written to: their drives are those for which
/// a permit was given.
pub struct Check<'a> {
    of: &'a DriveOf,
    control: Control,
    /// The tenant's connections before.
    connections: u64,
}

impl<'a> Check<'a> {
    /// Begin, before the connection to the export: the switch has the tenant.
    pub fn begin(of: &'a DriveOf) -> Result<Self, String> {
        let control = Control::connect(of).map_err(|error| failed(of, &error))?;
        let mut check = Self {
            of,
            control,
            connections: 0,
        };
        check.connections = check.state()?.0;
        Ok(check)
    }

    /// End, with one connection to the export and before the first write: the switch has counted it as the tenant's, whose
    /// region has the `bytes` of the export.
    pub fn end(mut self, bytes: u64) -> Result<(), String> {
        let (mut connections, region) = self.state()?;
        if region != bytes {
            let what =
                format!("its export has {bytes} bytes, and the tenant's region there {region}");
            return Err(self.not_of_it(&what));
        }
        let until = Instant::now() + COUNTED_WITHIN;
        while connections != self.connections + 1 {
            if Instant::now() > until {
                let what = format!(
                    "the tenant had {} connections there before, and {connections} with that to the export",
                    self.connections
                );
                return Err(self.not_of_it(&what));
            }
            thread::sleep(POLL);
            (connections, _) = self.state()?;
        }
        Ok(())
    }

    /// The tenant's connections, and the size of its region.
    fn state(&mut self) -> Result<(u64, u64), String> {
        let tenant = self.control.tenant(&self.of.tenant);
        let tenant = tenant.map_err(|error| failed(self.of, &error))?;
        let tenant =
            tenant.ok_or_else(|| failed(self.of, &"the switch has no tenant of this name"))?;
        let told = (
            tenant["connections"].as_u64(),
            tenant["region"]["bytes"].as_u64(),
        );
        match told {
            (Some(connections), Some(bytes)) => Ok((connections, bytes)),
            _ => Err(failed(
                self.of,
                &"the switch tells neither connections nor region of the tenant",
            )),
        }
    }

    fn not_of_it(&self, what: &str) -> String {
        let uri = &self.of.uri;
        failed(
            self.of,
            &format!("{uri} is not of this switch: {what}; name its own, that no other client opens meanwhile"),
        )
    }
}

fn failed(drive: &DriveOf, what: &dyn Display) -> String {
    format!(
        "drive {:?}: control {}: {what}",
        drive.tenant,
        drive.control.display()
    )
}

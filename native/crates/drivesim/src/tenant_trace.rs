//! Replay of a recorded trace.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use racksim::{Io, Kind};
use serde::Deserialize;

use crate::load_document::Region;

const LARGEST_BYTES: u64 = 64 << 20;

/// A trace, read from JSON lines with the columns of `rackloop_traces`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Replay {
    /// Speed of the replay, relative to that of the recording.
    pub speed: f64,
    repeats: bool,
    path: PathBuf,
    requests: Vec<Recorded>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    path: PathBuf,
    #[serde(default = "as_recorded")]
    speed: f64,
    #[serde(default)]
    repeat: bool,
}

fn as_recorded() -> f64 {
    1.0
}

/// A line; other columns of a trace are of no use here.
#[derive(Debug, Deserialize)]
struct Line {
    t_ns: u64,
    op: u8,
    offset_bytes: u64,
    size_bytes: u64,
}

/// A request of the trace.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    at_ns: u64,
    kind: Kind,
    offset: u64,
    bytes: u64,
}

/// The generator of a trace's requests.
pub struct TraceBlocks<'a> {
    replay: &'a Replay,
    region: Region,
    next: usize,
    laps: u64,
}

impl TryFrom<Written> for Replay {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written {
            path,
            speed,
            repeat,
        } = written;
        if !(1e-6..=1e6).contains(&speed) {
            return Err(format!("trace.speed {speed} is not from 1e-6 to 1e6"));
        }
        let of_trace = |what: String| format!("trace {}: {what}", path.display());
        let file = File::open(&path).map_err(|error| of_trace(error.to_string()))?;
        let mut requests: Vec<Recorded> = Vec::new();
        for (line, number) in BufReader::new(file).lines().zip(1..) {
            let at_line = |what: String| of_trace(format!("line {number}: {what}"));
            let line = line.map_err(|error| at_line(error.to_string()))?;
            let before_ns = requests.last().map_or(0, |last| last.at_ns);
            requests.push(Recorded::read(&line, before_ns).map_err(at_line)?);
        }
        if requests.is_empty() {
            return Err(of_trace("it has no requests".to_owned()));
        }
        Ok(Self {
            speed,
            repeats: repeat,
            path,
            requests,
        })
    }
}

impl Recorded {
    fn read(line: &str, before_ns: u64) -> Result<Self, String> {
        let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if line.t_ns < before_ns {
            return Err(format!(
                "t_ns {} is before the line before; sort the trace by time",
                line.t_ns
            ));
        }
        if line.size_bytes == 0 || line.size_bytes > LARGEST_BYTES {
            return Err(format!(
                "size_bytes {} is not from 1 to {LARGEST_BYTES}",
                line.size_bytes
            ));
        }
        Ok(Self {
            at_ns: line.t_ns,
            kind: match line.op {
                0 => Kind::Read,
                1 => Kind::Write,
                other => {
                    return Err(format!(
                    "op {other} is neither 0, a read, nor 1, a write; leave other operations out"
                ))
                }
            },
            offset: line.offset_bytes,
            bytes: line.size_bytes,
        })
    }
}

impl Replay {
    /// Refuse requests that are no whole sectors, or larger than the region.
    pub fn check(&self, sector_bytes: u64, region: Region) -> Result<(), String> {
        for (request, number) in self.requests.iter().zip(1..) {
            let Recorded { offset, bytes, .. } = *request;
            let wrong = if bytes % sector_bytes != 0 || offset % sector_bytes != 0 {
                format!("it is not in whole sectors of {sector_bytes} bytes")
            } else if bytes > region.length {
                format!("it does not fit into the region of {} bytes", region.length)
            } else {
                continue;
            };
            return Err(format!(
                "trace {}: line {number}: {bytes} bytes at {offset}: {wrong}",
                self.path.display()
            ));
        }
        Ok(())
    }

    /// Refuse to repeat a trace at its own pace where that is more than a request a nanosecond, as where all have one time.
    pub fn check_pace(&self) -> Result<(), String> {
        let (count, lap_ns) = (self.requests.len(), self.lap_ns() / self.speed);
        if !self.repeats || count as f64 <= lap_ns {
            return Ok(());
        }
        Err(format!(
            "trace {}: its {count} requests take {lap_ns} ns at this speed, too few to repeat them at their own pace; give \
             arrivals, or leave repeat out",
            self.path.display()
        ))
    }

    /// Whether it writes.
    pub fn has_writes(&self) -> bool {
        self.requests.iter().any(|one| one.kind == Kind::Write)
    }

    /// The time from its first request to that of its repetition: the mean gap follows its last one.
    fn lap_ns(&self) -> f64 {
        let last_ns = self.requests[self.requests.len() - 1].at_ns;
        let whole_ns = (last_ns - self.requests[0].at_ns) as f64;
        whole_ns + whole_ns / (self.requests.len() - 1).max(1) as f64
    }
}

impl<'a> TraceBlocks<'a> {
    /// The requests of `replay`, each of which fits into the region.
    pub fn new(replay: &'a Replay, region: Region) -> Self {
        Self {
            replay,
            region,
            next: 0,
            laps: 0,
        }
    }

    /// The time of the next request since the first one, as it was recorded; `None` where the trace is over.
    pub fn next_at_ns(&self) -> Option<f64> {
        let next = self.replay.requests.get(self.next)?;
        let since_ns = (next.at_ns - self.replay.requests[0].at_ns) as f64;
        Some(self.laps as f64 * self.replay.lap_ns() + since_ns)
    }

    /// The next request, wrapped into the region; `None` where the trace is over.
    pub fn next(&mut self) -> Option<Io> {
        let one = *self.replay.requests.get(self.next)?;
        self.next += 1;
        if self.next == self.replay.requests.len() && self.replay.repeats {
            self.next = 0;
            self.laps += 1;
        }
        let place = one.offset % self.region.length;
        Some(Io {
            kind: one.kind,
            offset: self.region.offset + place.min(self.region.length - one.bytes),
            length: one.bytes,
        })
    }
}

//! The hardware of a box around its drives: cores, a link, and the path between drives and memory.

use serde::Deserialize;

/// The parts of a box besides its drives, and what they take. Times are of one request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The cores.
    pub cores: Cores,
    /// The link to the clients.
    pub link: Link,
    /// Data rate of the path that all drives share to the memory of the box, 10^6 B/s; without it, that path takes no
    /// time.
    #[serde(default)]
    pub memory_mb_s: Option<f64>,
}

/// Alike cores, each of which does one thing after the other.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cores {
    /// Their number.
    pub count: usize,
    /// The assignment of requests to cores.
    #[serde(default)]
    pub serve: Serve,
    /// Work from the command capsule to the drive.
    pub submission_us: f64,
    /// The same for each KiB of data.
    #[serde(default)]
    pub submission_us_per_kib: f64,
    /// Work from the drive's completion to the response.
    pub completion_us: f64,
    /// The same for each KiB of data.
    #[serde(default)]
    pub completion_us_per_kib: f64,
    /// Time until a core takes notice of a command or of a completion, which does not occupy it.
    #[serde(default)]
    pub notice_us: f64,
}

/// The assignment of requests to cores, in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serve {
    /// Cores are assigned by drive.
    #[default]
    Drives,
    /// Cores are assigned by tenant.
    Connections,
}

/// A link that carries one message after the other in each direction.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Data rate of a direction, 10^6 B/s.
    pub mb_s: f64,
    /// Time from one end to the other, with that of both network adapters.
    #[serde(default)]
    pub propagation_us: f64,
    /// Size of a command capsule without data.
    #[serde(default = "command_bytes")]
    pub command_bytes: u64,
    /// Size of a response capsule.
    #[serde(default = "completion_bytes")]
    pub completion_bytes: u64,
    /// Writes up to this size come in the capsule; the data of others is fetched.
    #[serde(default)]
    pub inline_kib: u64,
}

/// A submission queue entry of NVMe.
fn command_bytes() -> u64 {
    64
}

/// A completion queue entry of NVMe.
fn completion_bytes() -> u64 {
    16
}

impl Hardware {
    /// Check the parameters; the error names the wrong one and its range.
    pub fn check(&self) -> Result<(), String> {
        let Cores {
            count,
            serve: _,
            submission_us,
            submission_us_per_kib,
            completion_us,
            completion_us_per_kib,
            notice_us,
        } = self.cores;
        if !(1..=1024).contains(&count) {
            return Err(format!("cores.count {count} is not from 1 to 1024"));
        }
        within("cores.submission_us", submission_us, 0.0, 1e4)?;
        within("cores.completion_us", completion_us, 0.0, 1e4)?;
        within("cores.notice_us", notice_us, 0.0, 1e4)?;
        within(
            "cores.submission_us_per_kib",
            submission_us_per_kib,
            0.0,
            1e3,
        )?;
        within(
            "cores.completion_us_per_kib",
            completion_us_per_kib,
            0.0,
            1e3,
        )?;
        let link = &self.link;
        within("link.mb_s", link.mb_s, 1.0, 1e6)?;
        within("link.propagation_us", link.propagation_us, 0.0, 1e6)?;
        for (key, bytes) in [
            ("link.command_bytes", link.command_bytes),
            ("link.completion_bytes", link.completion_bytes),
        ] {
            if bytes > 1 << 20 {
                return Err(format!("{key} {bytes} is not from 0 to 1048576"));
            }
        }
        if link.inline_kib > 65_536 {
            return Err(format!(
                "link.inline_kib {} is not from 0 to 65536",
                link.inline_kib
            ));
        }
        if let Some(memory_mb_s) = self.memory_mb_s {
            within("memory_mb_s", memory_mb_s, 1.0, 1e6)?;
        }
        Ok(())
    }
}

fn within(key: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("{key} {value} is not from {low} to {high}"))
}

//! Steps experiments: a host computes, then submits all requests of a step at once.

use racksim::{Io, Kind, OnReadError, Request};
use serde::{Deserialize, Serialize};

use crate::drive::Drive;
use crate::failure::Failure;

const LARGEST_BYTES: u64 = 64 << 20;
const LONGEST_WORK_US: f64 = 1e12;

/// The steps of a host in the document.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// Returned with the result.
    pub name: String,
    steps: Vec<Step>,
}

/// A step: computation, then requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Duration of the computation.
    #[serde(default)]
    work_us: f64,
    requests: Vec<Ask>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    operation: Operation,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Read,
    Write,
    Flush,
}

/// The result of a steps experiment.
#[derive(Debug, Serialize)]
pub struct StepsResult<'a> {
    name: &'a str,
    kind: &'static str,
    seconds: f64,
    requests: u64,
    read_bytes: u64,
    written_bytes: u64,
    /// Reads that failed.
    errors: u64,
}

impl Steps {
    /// Check the experiment for a drive of this size; the error names the wrong key.
    pub fn check(&self, bytes: u64, sector_bytes: u64) -> Result<(), String> {
        for (step, number) in self.steps.iter().zip(1..) {
            if !(0.0..=LONGEST_WORK_US).contains(&step.work_us) {
                return Err(format!(
                    "step {number}: work_us {} is not from 0 to {LONGEST_WORK_US:e}",
                    step.work_us
                ));
            }
            for ask in &step.requests {
                ask.check(bytes, sector_bytes)
                    .map_err(|what| format!("step {number}: {what}"))?;
            }
        }
        Ok(())
    }
}

impl Ask {
    fn check(&self, bytes: u64, sector_bytes: u64) -> Result<(), String> {
        let Self {
            operation,
            offset,
            length,
        } = *self;
        if operation == Operation::Flush {
            return Ok(());
        }
        if offset % sector_bytes != 0 || length % sector_bytes != 0 {
            return Err(format!(
                "offset {offset} and length {length} are not whole sectors of {sector_bytes} bytes"
            ));
        }
        if length == 0 || length > LARGEST_BYTES {
            return Err(format!("length {length} is not from 1 sector to 64 MiB"));
        }
        if offset.checked_add(length).is_none_or(|end| end > bytes) {
            return Err(format!(
                "offset {offset} and length {length} go beyond the drive's {bytes} bytes"
            ));
        }
        Ok(())
    }

    fn io(&self) -> Io {
        Io {
            kind: match self.operation {
                Operation::Read => Kind::Read,
                Operation::Write => Kind::Write,
                Operation::Flush => Kind::Flush,
            },
            offset: self.offset,
            length: self.length,
        }
    }
}

/// Run the steps, each after the end of the previous one.
pub fn run<'a>(steps: &'a Steps, drive: &mut Drive) -> Result<StepsResult<'a>, Failure> {
    let began_ns = drive.now_ns();
    let mut result = StepsResult {
        name: &steps.name,
        kind: "steps",
        seconds: 0.0,
        requests: 0,
        read_bytes: 0,
        written_bytes: 0,
        errors: 0,
    };
    let mut completions = Vec::new();
    for step in &steps.steps {
        drive.rest_until(drive.now_ns() + (step.work_us * 1e3).round() as u64)?;
        for (ask, ticket) in step.requests.iter().zip(0..) {
            drive.submit(&Request {
                ticket,
                io: ask.io(),
                fua: false,
                on_read_error: OnReadError::Retry,
            });
            result.requests += 1;
            match ask.operation {
                Operation::Read => result.read_bytes += ask.length,
                Operation::Write => result.written_bytes += ask.length,
                Operation::Flush => {}
            }
        }
        completions.clear();
        while completions.len() < step.requests.len() {
            drive.pass(None, &mut completions)?;
        }
        let failed = |done: &&racksim::Completion| done.failed_at.is_some();
        result.errors += completions.iter().filter(failed).count() as u64;
    }
    result.seconds = (drive.now_ns() - began_ns) as f64 / 1e9;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{InOrder, BAD};
    use serde_json::{json, Value};

    const BYTES: u64 = 4 << 20;

    fn steps(value: Value) -> Steps {
        serde_json::from_value(json!({"name": "x", "steps": value})).unwrap()
    }

    /// 100 us for a read, 300 us for anything else.
    fn drive() -> Drive {
        let cost_ns = |request: &Request, _| match request.io.kind {
            Kind::Read => 100_000,
            _ => 300_000,
        };
        Drive::new(Box::new(InOrder::new(cost_ns)), BYTES)
    }

    #[test]
    fn a_step_begins_when_the_one_before_is_over() {
        let steps = steps(json!([
            {"requests": [
                {"operation": "read", "offset": 0, "length": 8192},
                {"operation": "read", "offset": BAD, "length": 4096},
            ]},
            {"work_us": 50, "requests": [{"operation": "write", "offset": 0, "length": 4096}, {"operation": "flush"}]},
            {"work_us": 7.5, "requests": []},
        ]));
        steps.check(BYTES, 512).unwrap();
        let result = serde_json::to_value(run(&steps, &mut drive()).unwrap()).unwrap();
        assert_eq!(
            result,
            json!({"name": "x", "kind": "steps", "seconds": 0.000_857_5, "requests": 4, "read_bytes": 12288,
                   "written_bytes": 4096, "errors": 1})
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (step, part) in [
            (json!({"work_us": -1, "requests": []}), "step 1: work_us -1"),
            (
                json!({"requests": [{"operation": "read", "offset": 1, "length": 512}]}),
                "offset 1",
            ),
            (
                json!({"requests": [{"operation": "read", "offset": 0}]}),
                "length 0",
            ),
            (
                json!({"requests": [{"operation": "write", "offset": BYTES, "length": 512}]}),
                "beyond",
            ),
        ] {
            let message = steps(json!([step])).check(BYTES, 512).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}

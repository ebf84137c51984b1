//! The document of a tenant and its load.

use schedulers::{Priority, Tenant};
use serde::Deserialize;

use crate::load_document::{Amount, Arrivals, Load, Pattern, Region};
use crate::tenant_mix::{Choice, Mix};
use crate::tenant_trace::Replay;

/// A tenant and its requests: of one size, of several sizes, of a list of operations, or of a trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantLoad {
    /// Its name, weight and objective, as the scheduler is told.
    pub tenant: Tenant,
    /// The drive of a box; without it drives are taken in turns.
    #[serde(default)]
    pub drive: Option<usize>,
    #[serde(default)]
    pattern: Option<Pattern>,
    #[serde(default)]
    block_bytes: Option<u64>,
    #[serde(default)]
    sizes: Option<Vec<Size>>,
    #[serde(default)]
    operations: Option<Vec<Operation>>,
    #[serde(default)]
    trace: Option<Replay>,
    #[serde(default)]
    arrivals: Option<Arrivals>,
    #[serde(default)]
    read_percent: Option<f64>,
    #[serde(default)]
    region: Option<Region>,
    /// The tag of its requests, unless an operation has its own.
    #[serde(default)]
    pub priority: Priority,
    /// Whether it keeps its outstanding requests within the credit that it is told.
    #[serde(default)]
    pub follows_credit: bool,
    /// Bursts; without them it always asks.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// The time at which it joins, from the beginning of the warm-up.
    #[serde(default)]
    pub joins_s: f64,
    /// The time at which it disconnects, from the same beginning; without it, it stays.
    #[serde(default)]
    pub disconnects_s: Option<f64>,
}

/// Requests of a size, in a mix of sizes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    block_bytes: u64,
    weight: f64,
}

/// An operation of a mix, such as a get or a compaction of a key-value store.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    operation: schedulers::Operation,
    block_bytes: u64,
    pattern: Pattern,
    weight: f64,
    #[serde(default)]
    priority: Option<Priority>,
}

/// Times with and without requests, in turns, from the time a tenant joins.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Time in which it asks.
    pub on_s: f64,
    /// Time in which it does not.
    pub off_s: f64,
}

/// The times of a tenant's requests.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// A closed or an open loop.
    Loop(Arrivals),
    /// Those that a trace recorded, so many times as fast.
    Recorded(f64),
}

/// The requests of a tenant.
#[derive(Debug)]
pub enum Requests<'a> {
    /// Of one size.
    Blocks(Load),
    /// Of several sizes or operations.
    Mix(Mix),
    /// Of a trace.
    Trace(&'a Replay, Region),
}

impl TenantLoad {
    /// The times of its requests. The document has been checked.
    pub fn pace(&self) -> Pace {
        match (self.arrivals, &self.trace) {
            (Some(arrivals), _) => Pace::Loop(arrivals),
            (None, Some(trace)) => Pace::Recorded(trace.speed),
            (None, None) => unreachable!("the document's check: arrivals"),
        }
    }

    /// Its requests on a drive of `bytes`. The document has been checked.
    pub fn requests(&self, bytes: u64) -> Requests<'_> {
        let region = self.region_in(bytes);
        match (&self.trace, self.block_bytes) {
            (Some(trace), _) => Requests::Trace(trace, region),
            (None, Some(block_bytes)) => Requests::Blocks(self.load(block_bytes)),
            (None, None) => Requests::Mix(Mix {
                region,
                choices: self.choices(),
            }),
        }
    }

    /// Check the load for a drive of this size in an experiment of `whole_s`; the error names the wrong key.
    pub fn check(&self, bytes: u64, sector_bytes: u64, whole_s: f64) -> Result<(), String> {
        self.check_kind()?;
        if let Some(block_bytes) = self.block_bytes {
            self.load(block_bytes).check(bytes, sector_bytes)?;
        }
        for (choice, number) in self.choices().iter().zip(0..) {
            if !(choice.weight >= 0.0 && choice.weight <= 1e9) || choice.weight == 0.0 {
                let weight = choice.weight;
                return Err(format!(
                    "weight {weight} is not above 0 and up to 1e9: give a weight to each of its requests (number \
                     {number})"
                ));
            }
            self.load(choice.bytes).check(bytes, sector_bytes)?;
        }
        if let Some(trace) = &self.trace {
            // Any size will do: it is the region that is looked at.
            self.load(sector_bytes).check(bytes, sector_bytes)?;
            trace.check(sector_bytes, self.region_in(bytes))?;
            if self.arrivals.is_none() {
                trace.check_pace()?;
            }
        }
        if let Some(Bursts { on_s, off_s }) = self.bursts {
            check_seconds("bursts.on_s", on_s)?;
            check_seconds("bursts.off_s", off_s)?;
        }
        self.check_times(whole_s)?;
        if self.tenant.only_reads() && self.has_writes() {
            return Err(match self.read_percent {
                Some(percent) => format!(
                    "read_percent {percent} has writes, and the tenant declares that it only reads"
                ),
                None => "its requests include writes, and the tenant declares that it only reads"
                    .to_owned(),
            });
        }
        Ok(())
    }

    /// Refuse a load that is of no kind, or of several.
    fn check_kind(&self) -> Result<(), String> {
        let kinds = [
            ("block_bytes", self.block_bytes.is_some()),
            ("sizes", self.sizes.is_some()),
            ("operations", self.operations.is_some()),
            ("trace", self.trace.is_some()),
        ];
        let given: Vec<_> = kinds
            .iter()
            .filter(|kind| kind.1)
            .map(|one| one.0)
            .collect();
        let [kind] = given[..] else {
            let found = match given.is_empty() {
                true => "it has no requests".to_owned(),
                false => format!("it has {}", given.join(" and ")),
            };
            return Err(format!(
                "{found}; give one of block_bytes, sizes, operations and trace"
            ));
        };
        let has_places = matches!(kind, "block_bytes" | "sizes");
        if has_places && self.pattern.is_none() {
            return Err(format!("{kind} needs a pattern, random or sequential"));
        }
        if !has_places && (self.pattern.is_some() || self.read_percent.is_some()) {
            return Err(format!(
                "pattern and read_percent do not go with {kind}, which says itself what is read where"
            ));
        }
        if self.sizes.as_ref().is_some_and(Vec::is_empty)
            || self.operations.as_ref().is_some_and(Vec::is_empty)
        {
            return Err(format!("{kind} is empty; give at least one"));
        }
        match (self.arrivals, kind) {
            (None, "trace") if self.bursts.is_some() => Err(
                "bursts do not go with the times of a trace; give arrivals, or leave bursts out"
                    .to_owned(),
            ),
            (None, "trace") | (Some(_), _) => Ok(()),
            (None, _) => Err(
                "it has no arrivals; give {\"depth\": N} for a closed loop or {\"per_second\": R} for an open one"
                    .to_owned(),
            ),
        }
    }

    fn check_times(&self, whole_s: f64) -> Result<(), String> {
        let end_s = self.disconnects_s.unwrap_or(whole_s);
        if !(0.0..whole_s).contains(&self.joins_s) || self.joins_s >= end_s {
            return Err(format!(
                "joins_s {} is not from 0 to before its end at {end_s}",
                self.joins_s
            ));
        }
        if end_s > whole_s {
            return Err(format!(
                "disconnects_s {end_s} is beyond the experiment's {whole_s}"
            ));
        }
        Ok(())
    }

    fn has_writes(&self) -> bool {
        self.reads_percent() < 100.0
            || self
                .choices()
                .iter()
                .any(|choice| choice.kind == racksim::Kind::Write)
            || self.trace.as_ref().is_some_and(Replay::has_writes)
    }

    fn reads_percent(&self) -> f64 {
        self.read_percent.unwrap_or(100.0)
    }

    fn region_in(&self, bytes: u64) -> Region {
        self.region.unwrap_or(Region {
            offset: 0,
            length: bytes,
        })
    }

    /// The requests of one size, as a load of their own.
    fn load(&self, block_bytes: u64) -> Load {
        Load {
            name: self.tenant.name.clone(),
            pattern: self.pattern.unwrap_or(Pattern::Random),
            block_bytes,
            arrivals: self.arrivals.unwrap_or(Arrivals::Depth(1)),
            until: Amount::Requests(1),
            warm_up: None,
            read_percent: self.reads_percent(),
            region: self.region,
            interval_s: None,
            fua: false,
            fail_fast: false,
        }
    }

    /// The requests of a mix, each with its share; those of `sizes` continue one another where they are sequential.
    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for size in self.sizes.iter().flatten() {
            let read_share = self.reads_percent() / 100.0;
            for (kind, share) in [
                (racksim::Kind::Read, read_share),
                (racksim::Kind::Write, 1.0 - read_share),
            ] {
                if share > 0.0 {
                    choices.push(Choice {
                        kind,
                        bytes: size.block_bytes,
                        pattern: self.pattern.unwrap_or(Pattern::Random),
                        stream: 0,
                        priority: self.priority,
                        weight: size.weight * share,
                    });
                }
            }
        }
        for (one, stream) in self.operations.iter().flatten().zip(0..) {
            choices.push(Choice {
                kind: match one.operation {
                    schedulers::Operation::Read => racksim::Kind::Read,
                    schedulers::Operation::Write => racksim::Kind::Write,
                },
                bytes: one.block_bytes,
                pattern: one.pattern,
                stream,
                priority: one.priority.unwrap_or(self.priority),
                weight: one.weight,
            });
        }
        choices
    }
}

/// Refuse a time of an experiment with tenants that is out of range.
pub fn check_seconds(key: &str, seconds: f64) -> Result<(), String> {
    if (1e-6..=1e6).contains(&seconds) {
        return Ok(());
    }
    Err(format!("{key} {seconds} is not from 1e-6 to 1e6"))
}

#[cfg(test)]
#[path = "tenant_load_tests.rs"]
mod tests;

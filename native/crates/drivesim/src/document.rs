//! The input document: drives and a sequence of experiments.

use racksim::Timing;
use serde::Deserialize;

use crate::drive::Drive;
use crate::experiment::Experiment;
use crate::failure::Failure;

const SCHEMA: u32 = 1;

/// The document on standard input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    schema: u32,
    /// The model and its parameters.
    pub timing: Timing,
    /// Size of the drive.
    pub bytes: u64,
    /// Size of a logical sector.
    pub sector_bytes: u32,
    /// Seed of the model's and the load's randomness.
    #[serde(default)]
    pub seed: u64,
    /// Number of drives, all alike but for their chance.
    #[serde(default = "one_drive")]
    pub drives: usize,
    /// Experiments, in this order, on these drives.
    pub experiments: Vec<Experiment>,
    /// Further ones, each list of them on copies of the drives as the experiments have left them.
    #[serde(default)]
    pub branches: Vec<Vec<Experiment>>,
}

const MOST_DRIVES: usize = 64;

fn one_drive() -> usize {
    1
}

impl Document {
    /// Read and check the document; the failure names the experiment and the key.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let document: Self = serde_json::from_str(text)
            .map_err(|error| Failure::BadInput(format!("standard input: {error}")))?;
        document.check().map_err(Failure::BadInput)?;
        Ok(document)
    }

    /// The drives, as delivered, at time 0. Their seeds differ where those of experiments and tenants do not.
    pub fn start(&self) -> Vec<Drive> {
        let seeds = (0..self.drives as u64).map(|place| self.seed ^ place << 56);
        let services = seeds.map(|seed| self.timing.start(self.bytes, self.sector_bytes, seed));
        services
            .map(|service| Drive::new(service, self.bytes))
            .collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema {} is not {SCHEMA}", self.schema));
        }
        let sector_bytes = u64::from(self.sector_bytes);
        if !matches!(sector_bytes, 512 | 4096) {
            return Err(format!(
                "sector_bytes {sector_bytes} is neither 512 nor 4096"
            ));
        }
        if self.bytes == 0 || self.bytes % sector_bytes != 0 {
            return Err(format!(
                "bytes {} is not a number of sectors of {sector_bytes} bytes",
                self.bytes
            ));
        }
        self.timing
            .check(self.bytes)
            .map_err(|what| format!("timing: {what}"))?;
        if !(1..=MOST_DRIVES).contains(&self.drives) {
            return Err(format!(
                "drives {} is not from 1 to {MOST_DRIVES}",
                self.drives
            ));
        }
        for experiment in self
            .experiments
            .iter()
            .chain(self.branches.iter().flatten())
        {
            experiment
                .check(self.bytes, self.sector_bytes, self.drives)
                .map_err(|what| format!("experiment {:?}: {what}", experiment.name()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_document::Region;

    const LOAD: &str =
        r#""kind":"load","name":"x","pattern":"random","block_bytes":4096,"arrivals":{"depth":1}"#;

    fn parse(experiment: &str) -> Result<Document, String> {
        let text = format!(
            r#"{{"schema":1,"timing":{{"kind":"ideal"}},"bytes":1048576,"sector_bytes":512,"experiments":[{{{experiment}}}]}}"#
        );
        Document::parse(&text).map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_experiment_has_defaults() {
        let document = parse(&format!(r#"{LOAD},"until":{{"requests":1}}"#)).unwrap();
        let [Experiment::Load(load)] = &document.experiments[..] else {
            panic!("a load");
        };
        assert_eq!(load.read_percent, 100.0);
        let whole = Region {
            offset: 0,
            length: 1 << 20,
        };
        assert_eq!(load.region_in(document.bytes), whole);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (rest, part) in [
            (
                r#""until":{"requests":0}"#,
                "experiment \"x\": until.requests is 0",
            ),
            (r#""until":{"seconds":-1}"#, "until.seconds -1"),
            (r#""until":{"passes":0}"#, "until.passes 0"),
            (
                r#""until":{"requests":1},"warm_up":{"seconds":0}"#,
                "warm_up.seconds 0",
            ),
            (
                r#""until":{"requests":1},"read_percent":101"#,
                "read_percent 101",
            ),
            (r#""until":{"seconds":1},"interval_s":0"#, "interval_s 0"),
            (
                r#""until":{"requests":1},"region":{"offset":1,"length":4096}"#,
                "region.offset 1",
            ),
            (
                r#""until":{"requests":1},"region":{"offset":1048576,"length":4096}"#,
                "beyond the drive's 1048576",
            ),
            (
                r#""until":{"requests":1},"region":{"offset":0,"length":512}"#,
                "do not fit into the region",
            ),
            (r#""until":{"requests":1},"colour":1"#, "colour"),
            (r#""until":{"days":1}"#, "days"),
        ] {
            let message = parse(&format!("{LOAD},{rest}")).unwrap_err();
            assert!(message.contains(part), "{rest}: {message}");
        }
        for (experiment, part) in [
            (
                r#""kind":"seek","name":"x","operation":"read","distances":[1.5],"pairs":1"#,
                "1.5",
            ),
            (
                r#""kind":"seek","name":"x","operation":"read","pairs":0"#,
                "pairs is 0",
            ),
            (
                r#""kind":"seek","name":"x","operation":"read","inner_share":2,"pairs":1"#,
                "inner_share 2",
            ),
            (r#""kind":"idle","name":"x","seconds":1e300"#, "seconds 1"),
            (r#""kind":"nap","name":"x""#, "nap"),
        ] {
            let message = parse(experiment).unwrap_err();
            assert!(message.contains(part), "{experiment}: {message}");
        }
    }

    #[test]
    fn block_and_arrivals_are_checked() {
        for (key, value, part) in [
            ("block_bytes", "100", "block_bytes 100"),
            ("block_bytes", "134217728", "block_bytes 134217728"),
            ("arrivals", r#"{"depth":0}"#, "arrivals.depth 0"),
            ("arrivals", r#"{"per_second":0}"#, "arrivals.per_second 0"),
        ] {
            let other = match key {
                "block_bytes" => r#""arrivals":{"depth":1}"#,
                _ => r#""block_bytes":4096"#,
            };
            let message = parse(&format!(
                r#""kind":"load","name":"x","pattern":"random","until":{{"requests":1}},{other},"{key}":{value}"#
            ))
            .unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}

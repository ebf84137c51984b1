//! The document of a blobstore experiment.

use blobstore::{ClientOptions, GlobalAllocator, Layout, Mix, PoolDrive, TreeOptions};
use schedulers::{Parameters, Tenant};
use serde::Deserialize;

use crate::hardware::Hardware;
use crate::load_document::check_seconds;

const MOST_RECORDS: u64 = 1 << 28;
const DEEPEST: usize = 65_536;

/// Key-value stores of many clients on the drives of some boxes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobStore {
    /// Returned with the result.
    pub name: String,
    /// The scheduler in front of each drive, and its parameters.
    pub scheduler: Parameters,
    /// The hardware of each box.
    pub hardware: Hardware,
    /// Boxes, which share the drives out evenly.
    #[serde(default = "one")]
    pub boxes: usize,
    /// The clients with their databases.
    pub clients: Vec<StoreClient>,
    /// The measured time.
    pub seconds: f64,
    /// The unmeasured time before it, after all databases have been loaded.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Sizes of allocation, and replicas.
    #[serde(default)]
    pub layout: Layout,
    /// Limiter and steering of all clients.
    #[serde(default)]
    pub options: ClientOptions,
    /// The settings of all databases.
    #[serde(default)]
    pub tree: TreeOptions,
}

/// A client: a tenant of every drive, with a database of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreClient {
    /// Its name, weight and objective, as the schedulers are told.
    pub tenant: Tenant,
    /// The operations.
    pub mix: Mix,
    /// Records of its database.
    pub records: u64,
    /// Operations that it keeps under way.
    pub depth: usize,
    /// Its own time for each operation, before the next one.
    #[serde(default = "operation_us")]
    pub operation_us: f64,
}

/// A get that RocksDB answers from memory takes some microseconds.
fn operation_us() -> f64 {
    5.0
}

fn one() -> usize {
    1
}

impl BlobStore {
    /// The drives of the pool, as the allocators see them.
    pub fn pool(&self, bytes: u64, drives: usize) -> Vec<PoolDrive> {
        let each = drives / self.boxes;
        let drive = |number| PoolDrive {
            in_box: (number / each) as u32,
            bytes,
        };
        (0..drives).map(drive).collect()
    }

    /// Check the experiment for so many drives of this size; the error names the client and the wrong key.
    pub fn check(&self, bytes: u64, sector_bytes: u32, drives: usize) -> Result<(), String> {
        check_seconds("seconds", self.seconds)?;
        if self.warm_up_s != 0.0 {
            check_seconds("warm_up_s", self.warm_up_s)?;
        }
        self.hardware
            .check()
            .map_err(|what| format!("hardware.{what}"))?;
        if self.boxes == 0 || drives % self.boxes != 0 {
            return Err(format!(
                "boxes {} do not share {drives} drives out evenly",
                self.boxes
            ));
        }
        if self.tree.block_bytes % sector_bytes != 0 {
            return Err(format!(
                "tree.block_bytes {} is not a number of sectors of {sector_bytes} bytes",
                self.tree.block_bytes
            ));
        }
        let global = GlobalAllocator::new(self.layout, &self.pool(bytes, drives));
        let global = global.map_err(|refusal| format!("layout: {refusal}"))?;
        let tree = self.tree.check(&global.layout());
        tree.map_err(|refusal| format!("tree: {refusal}"))?;
        if self.clients.is_empty() {
            return Err("clients is empty; give at least one".to_owned());
        }
        for client in &self.clients {
            client
                .check()
                .map_err(|what| format!("client {:?}: {what}", client.tenant.name))?;
        }
        self.check_space(bytes * drives as u64)?;
        let mut scheduler = self.scheduler.start();
        for client in &self.clients {
            let joined = scheduler.join(&client.tenant, 0);
            joined.map_err(|refusal| format!("client {:?}: {refusal}", client.tenant.name))?;
        }
        Ok(())
    }

    /// Refuse databases that cannot fit; those that fit at first and grow are told by their failure.
    fn check_space(&self, bytes: u64) -> Result<(), String> {
        let records: u64 = self.clients.iter().map(|client| client.records).sum();
        let needed = records * u64::from(self.tree.record_bytes) * self.layout.replicas as u64;
        if needed > bytes {
            return Err(format!(
                "the records of all clients with their replicas are {needed} bytes, and the drives have {bytes}"
            ));
        }
        Ok(())
    }
}

impl StoreClient {
    fn check(&self) -> Result<(), String> {
        if !(1..=MOST_RECORDS).contains(&self.records) {
            return Err(format!(
                "records {} is not from 1 to {MOST_RECORDS}",
                self.records
            ));
        }
        if !(1..=DEEPEST).contains(&self.depth) {
            return Err(format!("depth {} is not from 1 to {DEEPEST}", self.depth));
        }
        if !(0.1..=1e6).contains(&self.operation_us) {
            return Err(format!(
                "operation_us {} is not from 0.1 to 1e6",
                self.operation_us
            ));
        }
        if self.tenant.only_reads() {
            return Err(
                "the tenant declares that it only reads, and its database is written first"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

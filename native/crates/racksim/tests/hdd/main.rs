//! A hard disk as a host sees it.

mod caches;
mod disk;
mod errors;
mod mechanics;
mod parameters;
#[path = "../service/mod.rs"]
mod service;
mod shingled;

use racksim::{Hdd, HddParameters, Service};

fn keeps_the_contract(parameters: &HddParameters) {
    service::holds(|seed| -> Box<dyn Service> {
        Box::new(Hdd::new(
            parameters.clone(),
            service::BYTES,
            service::SECTOR_BYTES,
            seed,
        ))
    });
}

#[test]
fn a_hard_disk_keeps_the_contract() {
    keeps_the_contract(&disk::parameters());
}

#[test]
fn one_without_memory_for_writes_that_reads_badly_keeps_the_contract() {
    let mut parameters = disk::parameters();
    parameters.write_cache_kib = 0;
    parameters.read_error_probability = 0.01;
    keeps_the_contract(&parameters);
}

#[test]
fn one_with_little_memory_and_a_short_queue_keeps_the_contract() {
    let mut parameters = disk::parameters();
    parameters.write_cache_kib = 256;
    parameters.write_cache_extents = 4;
    parameters.queue_depth = 2;
    parameters.read_segments = 1;
    keeps_the_contract(&parameters);
}

#[test]
fn a_shingled_one_keeps_the_contract() {
    keeps_the_contract(&disk::shingled());
}

#[test]
fn a_shingled_one_that_merges_before_it_destages_keeps_the_contract() {
    let mut parameters = disk::shingled();
    parameters.destage_after_ms = 700.0;
    parameters.read_error_probability = 0.001;
    if let Some(smr) = &mut parameters.smr {
        smr.clean_after_ms = 1.0;
        smr.open_bands = 1;
    }
    keeps_the_contract(&parameters);
}

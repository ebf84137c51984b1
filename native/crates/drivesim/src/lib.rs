//! Experiments on a drive model in virtual time: the program drivesim, and the preparation of a model for other programs.

mod blob_client;
mod blob_document;
mod blob_result;
mod blob_store;
mod blocks;
mod box_result;
mod boxes;
mod document;
mod drive;
mod experiment;
mod failure;
mod figures;
mod flight;
mod hardware;
mod layout;
mod load;
mod load_document;
mod phases;
mod play;
mod preparation;
mod seek;
mod sequential_read;
mod sequential_read_document;
mod server;
mod shared_drive;
mod steps;
mod storage_box;
mod target;
mod tenant_blocks;
mod tenant_load;
mod tenant_mix;
mod tenant_trace;
mod tenants;
mod tenants_document;
mod tenants_result;
#[cfg(test)]
mod testing;

use std::io::{self, Read, Write};
use std::slice;

use serde::Serialize;

use document::Document;
use drive::Drive;
use experiment::Experiment;
pub use failure::Failure;
pub use preparation::Preparation;

/// Carry out the document on standard input; each result is a line on standard output.
///
/// # Errors
/// [`Failure`] with its exit status: bad input, or a model that failed.
pub fn run() -> Result<(), Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::BadInput(format!("standard input: {error}")))?;
    let document = Document::parse(&text)?;
    let mut drives = document.start();
    run_all(&document.experiments, &mut drives, document.seed)?;
    let seed = document
        .seed
        .wrapping_add(document.experiments.len() as u64);
    for branch in &document.branches {
        let mut copies: Vec<Drive> = drives.iter().map(Drive::copy).collect();
        run_all(branch, &mut copies, seed)?;
    }
    Ok(())
}

/// Run experiments one after the other, and print their results.
fn run_all(experiments: &[Experiment], drives: &mut [Drive], seed: u64) -> Result<(), Failure> {
    // Each experiment has its own random generator, by its place: one that takes longer does not change the next.
    for (experiment, number) in experiments.iter().zip(1..) {
        let seed = seed.wrapping_add(number);
        if let Experiment::Box(tenants) = experiment {
            print(&line(&boxes::run(tenants, drives, seed)?));
            continue;
        }
        if let Experiment::BlobStore(store) = experiment {
            print(&line(&blob_store::run(store, drives, seed)?));
            continue;
        }
        // Drives are alike, and so is what they go through; the result is that of the first.
        for (place, drive) in drives.iter_mut().enumerate() {
            let result = run_on(experiment, drive, seed)?;
            if place == 0 {
                print(&result);
            }
        }
    }
    Ok(())
}

/// Run an experiment on one drive; returns the line of its result.
fn run_on(experiment: &Experiment, drive: &mut Drive, seed: u64) -> Result<Vec<u8>, Failure> {
    Ok(match experiment {
        Experiment::Load(load) => line(&load::run(load, drive, seed)?),
        Experiment::Seek(seek) => line(&seek::run(seek, drive, seed)?),
        Experiment::SequentialRead(read) => line(&sequential_read::run(read, drive, seed)?),
        Experiment::Steps(steps) => line(&steps::run(steps, drive)?),
        Experiment::Tenants(tenants) => line(&tenants::run(tenants, drive, seed)?),
        Experiment::Box(tenants) => line(&boxes::run(tenants, slice::from_mut(drive), seed)?),
        Experiment::BlobStore(store) => {
            line(&blob_store::run(store, slice::from_mut(drive), seed)?)
        }
        Experiment::Idle(idle) => {
            drive.rest_until(drive.now_ns() + (idle.seconds * 1e9).round() as u64)?;
            line(&Done::new("idle", &idle.name, drive))
        }
        Experiment::Sanitize(sanitize) => {
            drive.sanitize();
            line(&Done::new("sanitize", &sanitize.name, drive))
        }
    })
}

/// An experiment that measures nothing.
#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    kind: &'static str,
    end_s: f64,
}

impl<'a> Done<'a> {
    fn new(kind: &'static str, name: &'a str, drive: &Drive) -> Self {
        Self {
            name,
            kind,
            end_s: drive.now_ns() as f64 / 1e9,
        }
    }
}

/// A result as a line of JSON.
fn line(result: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(result).expect("numbers and names");
    line.push(b'\n');
    line
}

/// Print a line on standard output; exit if the reader has closed it.
fn print(line: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(line).and_then(|()| out.flush()).is_err() {
        std::process::exit(3);
    }
}

//! drivesim: experiments on a drive model in virtual time.

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
use std::process::ExitCode;
use std::slice;

use clap::Parser;
use serde::Serialize;

use document::Document;
use drive::Drive;
use experiment::Experiment;
use failure::Failure;

/// Experiments on Rackloop's drive models, in virtual time.
///
/// Reads one JSON document on standard input: drives and a sequence of experiments. Prints
/// a JSON line for each result as it comes. Same document, same results. Exit status: 0 done, 2 bad input, 3 the model
/// failed.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 110,
    after_help = "Example:\n  \
    drivesim <<'END'\n  \
    {\"schema\":1, \"timing\":{\"kind\":\"ideal\"}, \"bytes\":1073741824, \"sector_bytes\":512, \"seed\":1,\n   \
    \"experiments\":[\n    \
    {\"kind\":\"load\", \"name\":\"fill\", \"pattern\":\"sequential\", \"read_percent\":0, \"block_bytes\":131072,\n     \
    \"arrivals\":{\"depth\":32}, \"until\":{\"passes\":1}},\n    \
    {\"kind\":\"load\", \"name\":\"busy\", \"pattern\":\"random\", \"block_bytes\":4096,\n     \
    \"arrivals\":{\"per_second\":100}, \"until\":{\"requests\":1000}, \"interval_s\":1},\n    \
    {\"kind\":\"seek\", \"name\":\"arm\", \"operation\":\"read\", \"distances\":[0, 0.5, 1], \"pairs\":10},\n    \
    {\"kind\":\"idle\", \"name\":\"rest\", \"seconds\":60},\n    \
    {\"kind\":\"sanitize\", \"name\":\"as new\"}]}\n  \
    END\n\
    Every key is described in docs/reference/drive-models.md."
)]
struct Cli {}

fn main() -> ExitCode {
    Cli::parse();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("drivesim: {failure}");
            failure.exit_status().into()
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::BadInput(format!("standard input: {error}")))?;
    let document = Document::parse(&text)?;
    let mut drives = document.start();
    // Each experiment has its own random generator: inserting one before it does not change its load.
    for (experiment, number) in document.experiments.iter().zip(1..) {
        let seed = document.seed.wrapping_add(number);
        if let Experiment::Box(tenants) = experiment {
            print(&line(&boxes::run(tenants, &mut drives, seed)?));
            continue;
        }
        if let Experiment::BlobStore(store) = experiment {
            print(&line(&blob_store::run(store, &mut drives, seed)?));
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

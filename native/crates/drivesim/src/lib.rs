//! Experiments on a drive model in virtual time: the program drivesim, and the preparation of a model for other programs.

mod blocks;
mod document;
mod drive;
mod experiment;
mod failure;
mod figures;
mod layout;
mod load;
mod load_document;
mod preparation;
mod seek;
mod sequential_read;
mod sequential_read_document;
mod steps;
mod tenants;
mod tenants_document;
mod tenants_result;
#[cfg(test)]
mod testing;

use std::io::{self, Read, Write};

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
    let Document {
        timing,
        bytes,
        sector_bytes,
        seed,
        ..
    } = &document;
    let mut drive = Drive::new(timing.start(*bytes, *sector_bytes, *seed), *bytes);
    // Each experiment has its own random generator: inserting one before it does not change its load.
    for (experiment, number) in document.experiments.iter().zip(1..) {
        let seed = document.seed.wrapping_add(number);
        match experiment {
            Experiment::Load(load) => print(&load::run(load, &mut drive, seed)?),
            Experiment::Seek(seek) => print(&seek::run(seek, &mut drive, seed)?),
            Experiment::SequentialRead(read) => {
                print(&sequential_read::run(read, &mut drive, seed)?)
            }
            Experiment::Steps(steps) => print(&steps::run(steps, &mut drive)?),
            Experiment::Tenants(tenants) => print(&tenants::run(tenants, &mut drive, seed)?),
            Experiment::Idle(idle) => {
                drive.rest_until(drive.now_ns() + (idle.seconds * 1e9).round() as u64)?;
                print(&Done::new("idle", &idle.name, &drive));
            }
            Experiment::Sanitize(sanitize) => {
                drive.sanitize();
                print(&Done::new("sanitize", &sanitize.name, &drive));
            }
        }
    }
    Ok(())
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

/// Print a line on standard output; exit if the reader has closed it.
fn print(result: &impl Serialize) {
    let mut line = serde_json::to_vec(result).expect("numbers and names");
    line.push(b'\n');
    let mut out = io::stdout().lock();
    if out.write_all(&line).and_then(|()| out.flush()).is_err() {
        std::process::exit(3);
    }
}

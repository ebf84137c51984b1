//! blobload: a key-value store on exports of storage switches, under load.

mod control;
mod credits;
mod document;
mod drive;
mod run;

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use serde_json::{json, Value};

use document::Document;
use run::Run;

/// Loads a key-value store on exports of storage switches, and verifies what it reads.
///
/// Reads one JSON document on standard input: the exports, the workload. Overwrites the exports. Prints JSON lines: "loaded" once
/// the records are stored, "progress" as asked, "result" at the end. Exit status: 0 done, 1 operations failed or returned
/// other bytes than were written, 2 bad input.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 110,
    after_help = "Example:\n  \
    blobload <<'END'\n  \
    {\"schema\":1, \"mix\":\"a\", \"records\":4000, \"depth\":16, \"operations\":10000,\n   \
    \"drives\":[\n    \
    {\"uri\":\"nbd+unix:///a?socket=/tmp/one.nbd\", \"control\":\"/tmp/one.control\", \"tenant\":\"a\", \"in_box\":0},\n    \
    {\"uri\":\"nbd+unix:///a?socket=/tmp/two.nbd\", \"control\":\"/tmp/two.control\", \"tenant\":\"a\", \"in_box\":1}]}\n  \
    END\n\
    Every key is described in docs/reference/blobstore.md."
)]
struct Cli {}

fn main() -> ExitCode {
    Cli::parse();
    match run() {
        Ok(code) => code,
        Err(message) => {
            eprintln!("blobload: {message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    let document = Document::parse(&text)?;
    let mut run = Run::new(&document)?;
    run.load()?;
    if let Some(what) = run.trouble() {
        return Ok(failed(&what));
    }
    print(&json!({"event": "loaded", "records": document.records}));
    let start = Instant::now();
    run.operate(|operations| print(&json!({"event": "progress", "operations": operations})));
    let result = run.result(start.elapsed().as_secs_f64());
    print(&result);
    Ok(match run.trouble() {
        Some(what) => failed(&what),
        None => ExitCode::SUCCESS,
    })
}

fn failed(what: &str) -> ExitCode {
    eprintln!("blobload: {what}");
    ExitCode::from(1)
}

/// Print a line on standard output; exit if the reader has closed it.
fn print(line: &Value) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

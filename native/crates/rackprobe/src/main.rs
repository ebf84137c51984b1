//! rackprobe: writes, reads and verifies identified sectors on an initiator, and stamps events.

mod arm;
mod bench;
mod bulk;
mod by_path;
mod cli;
mod clock;
mod failure;
mod file_target;
mod hold;
mod identity;
mod io;
mod lines;
mod mounted;
mod record;
mod relate;
mod remap;
mod serve;
mod shown_clock;
mod steering;
mod swap;
mod tally;
mod target;
mod uevent;
mod uevents;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use failure::Failure;

/// Exit status of `verify` where a sector was not right.
const NOT_RIGHT: u8 = 1;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Optional: without it wake-ups are later on a busy machine. Precedence is for what measures a latency.
    let _ = match command {
        Command::Remap(_) | Command::Watch(_) => realtime::ask_for_precedence(),
        _ => realtime::ask_for_short_slices(),
    };
    match run(&command) {
        Ok(status) => status.into(),
        Err(failure) => {
            eprintln!("rackprobe: {failure}");
            failure.exit_status().into()
        }
    }
}

fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Write(args) => lines::emit(&bulk::write(args)?),
        Command::Verify(args) => {
            let (result, all_right) = bulk::verify(args)?;
            lines::emit(&result);
            return Ok(if all_right { 0 } else { NOT_RIGHT });
        }
        Command::Remap(args) => remap::run(args)?,
        Command::Watch(args) => watch::run(args)?,
        Command::Swap(args) => swap::run(args)?,
        Command::Hold(args) => hold::run(args)?,
        Command::Uevents(args) => uevents::run(args)?,
        Command::Serve(args) => serve::run(args)?,
        Command::Bench(args) => lines::emit(&bench::run(args)?),
    }
    Ok(0)
}

//! The `rackd` program.

use std::process::ExitCode;

use daemon::{Args, Invocation};
use rackd::{Config, ConfigError, RunningRack, Sockets, HELP};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> ExitCode {
    let args = match Invocation::parse("rackd", lexopt::Parser::from_env()) {
        Ok(Invocation::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Version) => {
            println!("rackd {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Run(args)) => args,
        Err(message) => return refuse(&message),
    };
    daemon::abort_on_panic("rackd");
    // Optional: without it wake-ups are later on a busy machine. Lateness is recorded.
    let _ = realtime::ask_for_short_slices();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("rackd: {message}");
    ExitCode::from(2)
}

fn run(args: &Args) -> Result<(), ConfigError> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| ConfigError(format!("{what}: {error}"));
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| failed("signals", &error))?;
    if args.exit_with_parent {
        daemon::end_with_parent().map_err(|error| failed("--exit-with-parent", &error))?;
    }
    let config = Config::read(&args.config)?;
    let sockets = Sockets::bind(&config)?;
    let running = RunningRack::start(&config)?;
    let tcp = sockets.tcp_address();
    let _files = sockets.serve(&running);
    daemon::say_ready(tcp).map_err(ConfigError)?;
    signals.forever().next();
    running.settle();
    Ok(())
}

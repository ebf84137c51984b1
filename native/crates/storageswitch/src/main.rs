//! The storage switch: one drive shared by tenants through a scheduler, one NBD export for each tenant.
//! `docs/reference/storageswitch.md` specifies what clients rely on.

mod config;
mod control;
mod core;
mod drive;
mod exports;
mod job;
mod lane;
mod listen;
mod region;
mod session;
mod statistics;
mod switch;
mod upstream;

use std::process::ExitCode;

use daemon::Invocation;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::{Config, PROGRAM};
use crate::listen::Sockets;
use crate::switch::Switch;

/// The text that `--help` prints.
const HELP: &str = "\
storageswitch: a storage switch. Shares one drive among tenants through a scheduler; each tenant has an NBD export.

usage: storageswitch --config FILE [--exit-with-parent]

  --config FILE         drive, scheduler and tenants, as one JSON document
  --exit-with-parent    end when the process that started it ends
  --version             print the version
  --help                print this

example:
  cat > switch.json <<'END'
  {\"schema\": 1, \"control\": \"/tmp/control.sock\", \"nbd\": \"/tmp/nbd.sock\",
   \"drive\": {\"kind\": \"memory\", \"bytes\": 1073741824},
   \"scheduler\": {\"kind\": \"gimbal\"},
   \"tenants\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}
  END
  storageswitch --config switch.json &
  nbdinfo 'nbd+unix:///a?socket=/tmp/nbd.sock'
  echo '{\"id\": 1, \"op\": \"state\"}' | socat - UNIX-CONNECT:/tmp/control.sock

It prints {\"event\":\"ready\",...} once everything answers. Exit status: 0 after SIGTERM or SIGINT, 2 for a bad
command line or configuration. Drives, schedulers, tenants and the control socket are described in
docs/reference/storageswitch.md.
";

fn main() -> ExitCode {
    let args = match Invocation::parse(PROGRAM, lexopt::Parser::from_env()) {
        Ok(Invocation::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Version) => {
            println!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Run(args)) => args,
        Err(message) => return refuse(&message),
    };
    daemon::abort_on_panic(PROGRAM);
    // Optional: without it wake-ups are later on a busy machine.
    let _ = realtime::ask_for_short_slices();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{PROGRAM}: {message}");
    ExitCode::from(2)
}

fn run(args: &daemon::Args) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| failed("signals", &error))?;
    if args.exit_with_parent {
        daemon::end_with_parent().map_err(|error| failed("--exit-with-parent", &error))?;
    }
    let config = Config::read(&args.config)?;
    let switch = Switch::start(&config).map_err(|error| failed(&config.place(), &error))?;
    let sockets = Sockets::bind(&config)?;
    let tcp = sockets.tcp_address();
    let _files = sockets.serve(&switch);
    println!("{}", daemon::ready(tcp));
    signals.forever().next();
    Ok(())
}

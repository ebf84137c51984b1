//! The storage switch: drives shared by tenants, each through a scheduler of its own, one NBD export for each tenant.
//! `docs/reference/storageswitch.md` specifies what clients rely on.

mod config;
mod control;
mod core;
mod device;
mod drive;
mod exports;
mod files;
mod front;
mod job;
mod listen;
mod permission;
mod pin;
mod region;
mod session;
mod shard;
mod share;
mod statistics;
mod store;
mod switch;

use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;

use daemon::Invocation;
use lexopt::ValueExt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::{Config, PROGRAM};
use crate::listen::Sockets;
use crate::permission::Permission;
use crate::switch::Switch;

/// The text that `--help` prints.
const HELP: &str = "\
storageswitch: a storage switch. Shares drives among tenants through a scheduler; each tenant has an NBD export.

usage: storageswitch --config FILE [--exit-with-parent] [--allow-write SERIAL]... [--claimed] [--check]

  --config FILE         drives, scheduler and tenants, as one JSON document
  --allow-write SERIAL  the drive with this serial may be written: the guard checked that its data may be lost;
                        once for each such drive, all others of kind device are only read
  --claimed             the caller holds these drives exclusively (O_EXCL) until this ends; without it they are
                        claimed here, and refused if another process holds them
  --check               only check the configuration, and that the scheduler admits all tenants: no drive is opened
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
    let mut permission = Permission::default();
    let mut checks = false;
    let own = |name: &str, parser: &mut lexopt::Parser| {
        match name {
            "allow-write" => permission.serials.push(parser.value()?.string()?),
            "claimed" => permission.claimed = true,
            "check" => checks = true,
            _ => return Ok(false),
        }
        Ok(true)
    };
    let args = match Invocation::parse_with(PROGRAM, lexopt::Parser::from_env(), own) {
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
    let done = if checks {
        check(&args)
    } else {
        run(&args, permission)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{PROGRAM}: {message}");
    ExitCode::from(2)
}

fn check(args: &daemon::Args) -> Result<(), String> {
    let config = Config::read(&args.config)?;
    Switch::check(&config).map_err(|what| format!("{}: {what}", config.place()))
}

/// The end of the start, or a signal.
enum Event {
    Started(Result<Arc<Switch>, String>),
    Signal,
}

fn run(args: &daemon::Args, permission: Permission) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| failed("signals", &error))?;
    if args.exit_with_parent {
        daemon::end_with_parent().map_err(|error| failed("--exit-with-parent", &error))?;
    }
    let config = Arc::new(Config::read(&args.config)?);
    let (events, waits) = channel();
    let (of_start, starting) = (events.clone(), config.clone());
    // Beside this thread, which a signal ends meanwhile: the preparation of a drive may take for ever.
    thread::spawn(move || of_start.send(Event::Started(Switch::start(&starting, &permission))));
    thread::spawn(move || {
        signals
            .forever()
            .try_for_each(|_| events.send(Event::Signal))
    });
    let started = match waits.recv() {
        Ok(Event::Started(started)) => started,
        Ok(Event::Signal) | Err(_) => return Ok(()),
    };
    let switch = started.map_err(|error| failed(&config.place(), &error))?;
    let sockets = Sockets::bind(&config)?;
    let tcp = sockets.tcp_address();
    let _files = sockets.serve(&switch);
    daemon::say_ready(tcp)?;
    // Only a signal can come any more.
    drop(waits.recv());
    Ok(())
}

//! The `rackd` program.

use std::process::ExitCode;
use std::thread;

use rackd::{Args, Config, ConfigError, Invocation, RunningRack, Sockets, HELP};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{getpid, getppid, kill_process, pidfd_open, PidfdFlags, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> ExitCode {
    let args = match Invocation::parse(lexopt::Parser::from_env()) {
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
    rackd::abort_on_panic();
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
        watch_parent().map_err(|error| failed("--exit-with-parent", &error))?;
    }
    let config = Config::read(&args.config)?;
    let sockets = Sockets::bind(&config)?;
    let running = RunningRack::start(&config)?;
    let tcp = sockets.tcp_address();
    let _files = sockets.serve(&running);
    println!("{}", running.ready(tcp));
    signals.forever().next();
    running.settle();
    Ok(())
}

/// End this process, as SIGTERM does, when its parent ends. PR_SET_PDEATHSIG would not do: it also fires when only
/// the parent's thread that started this process ends.
fn watch_parent() -> rustix::io::Result<()> {
    let end = || kill_process(getpid(), Signal::TERM);
    let Some(parent) = getppid() else {
        return end();
    };
    let descriptor = pidfd_open(parent, PidfdFlags::empty())?;
    if getppid() != Some(parent) {
        return end();
    }
    thread::spawn(move || {
        let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
        while poll(&mut ended, None) == Err(rustix::io::Errno::INTR) {}
        // Signalling oneself cannot fail.
        let _ = end();
    });
    Ok(())
}

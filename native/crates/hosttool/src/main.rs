//! hosttool: the program behind every emulated tool of a mock host, which asks the lab for the tool's output.

mod ask;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Path of the lab's socket inside every mock host.
const SOCKET: &str = "/run/rackloop/tools.sock";

/// Exit status when the lab cannot be asked: none of the emulated tools uses it.
const UNANSWERED: u8 = 125;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let tool = tool_name(&program);
    let argv: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let answer = match ask::ask(Path::new(SOCKET), &tool, &argv) {
        Ok(answer) => answer,
        Err(error) => {
            eprintln!("{tool}: the mock lab does not answer at {SOCKET}: {error}");
            return UNANSWERED.into();
        }
    };
    match print(&answer) {
        Ok(()) => answer.status.into(),
        // The reader of the output has closed it, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => answer.status.into(),
        Err(error) => {
            eprintln!("{tool}: cannot write: {error}");
            UNANSWERED.into()
        }
    }
}

fn tool_name(program: &OsString) -> String {
    let path = Path::new(program);
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn print(answer: &ask::Answer) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(answer.stdout.as_bytes())?;
    stdout.flush()?;
    io::stderr().lock().write_all(answer.stderr.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::tool_name;

    #[test]
    fn a_tool_is_named_by_how_it_is_called() {
        assert_eq!(tool_name(&"/opt/rackloop/bin/nvme".into()), "nvme");
        assert_eq!(tool_name(&"smartctl".into()), "smartctl");
    }
}

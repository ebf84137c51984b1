//! JSON lines: results and events on standard output, commands on standard input.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Write one event as a line, whole and at once, whichever thread it comes from.
///
/// Exits if the reader has closed standard output.
pub fn emit(event: &Value) {
    let mut line = event.to_string();
    line.push('\n');
    let mut out = io::stdout().lock();
    if out
        .write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(3);
    }
}

/// The commands on standard input, each parsed or an error; ends at the end of the input.
pub fn commands<C: DeserializeOwned>() -> impl Iterator<Item = Result<C, String>> {
    let lines = io::stdin().lock().split(b'\n').map_while(Result::ok);
    lines
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| {
            serde_json::from_slice(&line).map_err(|error| {
                format!(
                    "{:.200} is no command: {error}",
                    String::from_utf8_lossy(&line)
                )
            })
        })
}

//! Commands of a session that relate this machine's clock to another: a reading of it, and a port where it is read.

use serde::Deserialize;
use serde_json::json;

use crate::clock::now_ns;
use crate::identity::identified;
use crate::lines::{commands, emit};
use crate::shown_clock;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum SessionCommand {
    Clock { id: u64 },
    ShowClock { port: u16, key: String },
    Quit {},
}

/// Answer `{"op":"clock","id":...}`: the time now, which is between the question's leaving and the answer's arrival.
pub fn answer(id: u64) {
    let event = json!({"event": "clock", "id": id, "t_ns": now_ns()});
    emit(&identified(event));
}

/// Answer `{"op":"show_clock","port":...,"key":...}`: from now on the clock is asked for at that TCP port as well.
pub fn show(port: u16, key: &str) {
    let refused = shown_clock::show(port, key).err();
    emit(&json!({"event": "clock_shown", "refused": refused}));
}

/// Answer the commands of a session that takes none of its own, until `quit` or the end of standard input.
pub fn follow() {
    for command in commands::<SessionCommand>() {
        match command {
            Ok(SessionCommand::Clock { id }) => answer(id),
            Ok(SessionCommand::ShowClock { port, key }) => show(port, &key),
            Ok(SessionCommand::Quit {}) => break,
            Err(message) => emit(&json!({"event": "error", "id": null, "message": message})),
        }
    }
}

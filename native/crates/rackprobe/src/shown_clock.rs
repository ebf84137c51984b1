//! This machine's clock, shown by TCP to the holder of a key: through SSH a question takes several times as long.
//!
//! A question is a line, `MAC ID`, with the HMAC-SHA-256 (RFC 2104) of `ask ID`; its answer `MAC JSON`, with that of
//! `say JSON`. A connection that says anything else is closed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::clock::now_ns;
use crate::identity::identified;

type Code = Hmac<Sha256>;

const KEY_BYTES: usize = 32;
/// The longest question, with its code in hexadecimal digits.
const QUESTION_BYTES: u64 = 2 * 32 + 1 + 20 + 1;
const MOST_CONNECTIONS: usize = 4;
/// The time in which the first authenticated question must come.
const FIRST_WITHIN: Duration = Duration::from_secs(2);

/// Answer at `port`, on every address of this machine, from now until the process ends.
pub fn show(port: u16, key: &str) -> Result<(), String> {
    let mut bytes = [0; KEY_BYTES];
    hex::decode_to_slice(key, &mut bytes)
        .map_err(|error| format!("the key is no {KEY_BYTES} bytes: {error}"))?;
    let code = Code::new_from_slice(&bytes).map_err(|error| error.to_string())?;
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind(("0.0.0.0", port)))
        .map_err(|error| format!("TCP port {port} cannot be had: {error}"))?;
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::AcqRel) >= MOST_CONNECTIONS {
                open.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (code, open) = (code.clone(), Arc::clone(&open));
            std::thread::spawn(move || {
                // A peer that went away, or asked for something else: its connection is closed, and no more.
                let _ = answer(&stream, &code);
                open.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    Ok(())
}

/// Answer until the other end closes, or says what is no question.
fn answer(stream: &TcpStream, code: &Code) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(FIRST_WITHIN))?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    let mut is_known = false;
    loop {
        line.clear();
        (&mut lines).take(QUESTION_BYTES).read_line(&mut line)?;
        let t_ns = now_ns();
        let Some(id) = question(&line, code) else {
            return Ok(());
        };
        if !is_known {
            stream.set_read_timeout(None)?;
            is_known = true;
        }
        let mut event = identified(json!({"event": "clock", "id": id, "t_ns": t_ns}));
        event["answered_ns"] = json!(now_ns());
        let text = event.to_string();
        let signed = format!("{} {text}\n", signature(code, &text));
        let mut out = stream;
        out.write_all(signed.as_bytes())?;
    }
}

/// The number of a question that the holder of the key asks.
fn question(line: &str, code: &Code) -> Option<u64> {
    let (signed, id) = line.strip_suffix('\n')?.split_once(' ')?;
    let mut asked = code.clone();
    asked.update(format!("ask {id}").as_bytes());
    asked.verify_slice(&hex::decode(signed).ok()?).ok()?;
    id.parse().ok()
}

fn signature(code: &Code, text: &str) -> String {
    let mut said = code.clone();
    said.update(format!("say {text}").as_bytes());
    hex::encode(said.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

    fn code() -> Code {
        Code::new_from_slice(&KEY).expect("any length is a key")
    }

    fn signed(text: &str) -> String {
        let mut asked = code();
        asked.update(text.as_bytes());
        hex::encode(asked.finalize().into_bytes())
    }

    #[test]
    fn only_the_holder_of_the_key_is_answered() {
        assert_eq!(
            question(&format!("{} 5\n", signed("ask 5")), &code()),
            Some(5)
        );
        for other in [
            format!("{} 6\n", signed("ask 5")),
            format!("{} 5\n", signed("say 5")),
            format!("{} 5", signed("ask 5")),
            "00 5\n".to_owned(),
            "5\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(question(&other, &code()), None, "{other}");
        }
    }

    #[test]
    fn an_answer_is_signed_and_its_stamps_are_in_order() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("an address");
        let asker = std::thread::spawn(move || {
            let stream = TcpStream::connect(here).expect("it listens");
            let mut lines = BufReader::new(&stream);
            let mut out = &stream;
            let mut answers = Vec::new();
            for id in [1, 2] {
                writeln!(out, "{} {id}", signed(&format!("ask {id}"))).expect("it is open");
                let mut line = String::new();
                lines.read_line(&mut line).expect("an answer");
                answers.push(line);
            }
            writeln!(out, "hello").expect("it is open");
            let mut end = String::new();
            lines.read_line(&mut end).expect("the end");
            (answers, end)
        });
        let before_ns = now_ns();
        answer(&listener.accept().expect("a peer").0, &code()).expect("it answers");
        let (answers, end) = asker.join().expect("it ends");
        assert_eq!(end, "");
        for (line, id) in answers.iter().zip(1_u64..) {
            let (code, text) = line.trim_end().split_once(' ').expect("two parts");
            assert_eq!(code, signed(&format!("say {text}")));
            let event: serde_json::Value = serde_json::from_str(text).expect("JSON");
            let stamp = |name: &str| event[name].as_u64().expect("a stamp");
            assert_eq!(
                (event["event"].as_str(), event["id"].as_u64()),
                (Some("clock"), Some(id))
            );
            assert!(before_ns <= stamp("t_ns") && stamp("t_ns") <= stamp("answered_ns"));
        }
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        let error = show(0, "00ff").expect_err("too short");
        assert!(error.contains("32 bytes"), "{error}");
    }
}

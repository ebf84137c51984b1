//! A request to the lab: a JSON line with the tool and its arguments, answered by one with its output.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Question<'a> {
    tool: &'a str,
    argv: &'a [String],
}

/// A tool's output and exit status.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub status: u8,
}

/// Ask the lab that listens at `socket` for the output of `tool` with `argv` (without the tool's own name).
pub fn ask(socket: &Path, tool: &str, argv: &[String]) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    let mut question = serde_json::to_vec(&Question { tool, argv })?;
    question.push(b'\n');
    stream.write_all(&question)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it hung up without an answer",
        ));
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::thread::{self, JoinHandle};

    use super::{ask, Answer};

    /// A lab that answers one request with `line`; joined, it returns the request.
    fn lab(name: &str, line: &'static str) -> (PathBuf, JoinHandle<String>) {
        let path = std::env::temp_dir().join(format!("hosttool-{}-{name}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let bound = path.clone();
        let answering = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).unwrap();
            (&stream).write_all(line.as_bytes()).unwrap();
            std::fs::remove_file(bound).unwrap();
            question
        });
        (path, answering)
    }

    #[test]
    fn the_question_is_one_line_and_its_answer_comes_back_whole() {
        let (path, lab) = lab(
            "whole",
            "{\"stdout\":\"a\\nb\\n\",\"stderr\":\"oh\\n\",\"status\":2}\n",
        );
        let answer = ask(&path, "nvme", &["list".into(), "-o \"json\"\n".into()]).unwrap();
        assert_eq!(
            lab.join().unwrap(),
            "{\"tool\":\"nvme\",\"argv\":[\"list\",\"-o \\\"json\\\"\\n\"]}\n"
        );
        assert_eq!(
            answer,
            Answer {
                stdout: "a\nb\n".into(),
                stderr: "oh\n".into(),
                status: 2
            }
        );
    }

    #[test]
    fn a_lab_that_hangs_up_is_an_error() {
        let (path, lab) = lab("silent", "");
        let error = ask(&path, "nvme", &[]).unwrap_err();
        lab.join().unwrap();
        assert_eq!(error.to_string(), "it hung up without an answer");
    }

    #[test]
    fn an_answer_that_is_none_is_an_error() {
        let (path, lab) = lab("nonsense", "{\"stdout\":\"\"}\n");
        let error = ask(&path, "nvme", &[]).unwrap_err();
        lab.join().unwrap();
        assert!(error.to_string().contains("missing field"), "{error}");
    }
}

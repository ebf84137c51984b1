//! A client that sends anything at all to a server: it must end, panic nowhere, and touch nothing beyond the export.
//!
//! An input that begins with an odd byte is what the client sends after it has chosen the export.

#![no_main]

use std::io::{copy, sink, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use libfuzzer_sys::fuzz_target;
use nbd::proto::{cmd, flag, opt, Request, MAX_REQUEST_BYTES, OPT_MAGIC};
use nbdserver::{refusal, serve_client, Bytes, Connection, Exports, Offer, Pending, Service};
use socket2::Socket;

const BYTES: u64 = 64 << 10;
const NAME: &str = "a";

/// Takes the far ends of connections and reads what the server says until it hangs up.
static READER: LazyLock<Mutex<Sender<UnixStream>>> = LazyLock::new(|| {
    let (sender, receiver) = channel::<UnixStream>();
    thread::spawn(move || {
        for mut client in receiver {
            let _ = copy(&mut client, &mut sink());
        }
    });
    Mutex::new(sender)
});

struct One;

impl Exports for One {
    type Export = ();

    fn names(&self) -> Vec<String> {
        vec![NAME.to_owned()]
    }

    fn find(&self, name: &str) -> Option<()> {
        (name == NAME).then_some(())
    }

    fn offer(&self, (): &()) -> Offer {
        Offer {
            bytes: BYTES,
            flags: flag::SEND_FLUSH | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES,
            minimum_block: 1,
            preferred_block: 4096,
            maximum_block: MAX_REQUEST_BYTES,
        }
    }
}

/// Memory that answers at once, and later to what has an odd cookie.
struct Memory {
    content: Vec<u8>,
    later: Vec<Pending<Request>>,
}

impl Memory {
    fn perform(content: &mut [u8], request: &Request, bytes: Bytes<'_>) {
        let start = request.offset as usize;
        let end = start.saturating_add(request.length as usize);
        match bytes {
            Bytes::Fill(data) => data.copy_from_slice(&content[start..end]),
            Bytes::Store(data) => content[start..end].copy_from_slice(data),
            Bytes::None if request.command == cmd::FLUSH => {}
            Bytes::None => content[start..end].fill(0),
        }
    }
}

impl Service for Memory {
    type Job = Request;

    fn job(&self, request: &Request) -> Result<Request, u32> {
        refusal(request, BYTES).map_or(Ok(*request), Err)
    }

    fn may_attempt(&self, job: &Request) -> bool {
        job.cookie % 4 != 3
    }

    fn attempt(&mut self, job: &Request, bytes: Bytes<'_>, _: u64) -> Option<Result<(), u32>> {
        if job.cookie % 2 == 1 {
            return None;
        }
        Self::perform(&mut self.content, job, bytes);
        Some(Ok(()))
    }

    fn submit(&mut self, pending: Pending<Request>) {
        self.later.push(pending);
    }

    fn before_wait(&mut self) {
        for mut pending in self.later.drain(..) {
            let job = pending.job;
            Self::perform(&mut self.content, &job, pending.bytes());
            pending.answer(Ok(()));
        }
    }

    fn forget(&mut self, _: &Arc<Connection>) {
        self.later.clear();
    }
}

/// The bytes by which a client chooses the export.
fn chosen() -> Vec<u8> {
    let mut sent = 3_u32.to_be_bytes().to_vec();
    let mut option = (NAME.len() as u32).to_be_bytes().to_vec();
    option.extend_from_slice(NAME.as_bytes());
    option.extend_from_slice(&[0, 0]);
    sent.extend_from_slice(&OPT_MAGIC.to_be_bytes());
    sent.extend_from_slice(&opt::GO.to_be_bytes());
    sent.extend_from_slice(&(option.len() as u32).to_be_bytes());
    sent.extend_from_slice(&option);
    sent
}

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else {
        return;
    };
    let (server, mut client) = UnixStream::pair().expect("two descriptors");
    let begin = if first % 2 == 1 { chosen() } else { Vec::new() };
    // Inputs are short: a socket holds them.
    client.write_all(&begin).expect("room");
    client.write_all(rest).expect("room");
    client.shutdown(Shutdown::Write).expect("a connection");
    let reader = READER.lock().expect("nothing panics while it is held");
    reader.send(client).expect("it reads for ever");
    drop(reader);
    let server = Socket::from(server);
    // Errors are the client's.
    let _ = serve_client(&server, &One, |()| {
        Ok(Memory {
            content: vec![0; BYTES as usize],
            later: Vec::new(),
        })
    });
});

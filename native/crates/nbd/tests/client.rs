//! The client against servers that say exactly what the test tells them to, good or bad.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use nbd::client::{Client, Command};
use nbd::proto::{self, chunk, errno, flag, handshake, info, opt, rep};
use nbd::uri::{Endpoint, NbdUri};
use nbd::{Error, Patience};

const LENGTH: u32 = 8;

static SOCKETS: AtomicU32 = AtomicU32::new(0);

/// A server that says `script` to its first client, whatever the client says, and then hangs up.
fn server(script: Vec<u8>) -> (NbdUri, JoinHandle<()>) {
    let number = SOCKETS.fetch_add(1, Ordering::Relaxed);
    let name = format!("nbd-client-{}-{number}.sock", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&path).expect("a new name in the temporary directory");
    let uri = NbdUri {
        endpoint: Endpoint::Unix(path.clone()),
        export: "x".to_owned(),
    };
    let thread = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        std::fs::remove_file(path).expect("the socket is still there");
        client.write_all(&script).expect("the client listens");
        client
            .shutdown(std::net::Shutdown::Write)
            .expect("a connection");
        // Until the client is done with it, or an early hang-up would take what it has not read yet.
        let _ = client.read_to_end(&mut Vec::new());
    });
    (uri, thread)
}

fn greeting() -> Vec<u8> {
    let mut out = proto::INIT_MAGIC.to_be_bytes().to_vec();
    out.extend(proto::OPT_MAGIC.to_be_bytes());
    out.extend((handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
    out
}

fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut out = proto::OPT_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
    out
}

fn handshake_done() -> Vec<u8> {
    let mut export = info::EXPORT.to_be_bytes().to_vec();
    export.extend(4096u64.to_be_bytes());
    export.extend(flag::HAS_FLAGS.to_be_bytes());
    let mut out = greeting();
    out.extend(option_reply(opt::STRUCTURED_REPLY, rep::ACK, &[]));
    out.extend(option_reply(opt::GO, rep::INFO, &export));
    out.extend(option_reply(opt::GO, rep::ACK, &[]));
    out
}

fn simple(cookie: u64, errno: u32, data: &[u8]) -> Vec<u8> {
    let mut out = proto::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(errno.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(data);
    out
}

fn structured(flags: u16, kind: u16, cookie: u64, data: &[&[u8]]) -> Vec<u8> {
    let data = data.concat();
    let mut out = proto::STRUCTURED_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend(flags.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
    out
}

/// The result and the buffer of a read of [`LENGTH`] bytes at offset 16 that is answered with `reply`.
fn read(reply: Vec<u8>) -> Result<(Result<(), u32>, Vec<u8>), Error> {
    let (uri, thread) = server([handshake_done(), reply].concat());
    let outcome = Client::connect(&uri).and_then(|mut client| {
        let buffer = vec![0xff; LENGTH as usize];
        let cookie = client.submit(Command::Read { offset: 16, buffer })?;
        let done = client
            .receive(Patience::WITHOUT_END)?
            .expect("patience without end");
        assert_eq!(done.cookie, cookie);
        Ok((done.result, done.buffer.expect("a read has a buffer")))
    });
    thread.join().expect("the server does not fail");
    outcome
}

#[test]
fn a_read_may_come_in_pieces_and_holes() {
    let hole = (LENGTH - 6).to_be_bytes();
    let reply = [
        structured(0, chunk::OFFSET_DATA, 0, &[&20u64.to_be_bytes(), b"CD"]),
        structured(0, chunk::OFFSET_HOLE, 0, &[&22u64.to_be_bytes(), &hole]),
        structured(0, chunk::OFFSET_DATA, 0, &[&16u64.to_be_bytes(), b"ABab"]),
        structured(chunk::FLAG_DONE, chunk::NONE, 0, &[]),
    ];
    let (result, data) = read(reply.concat()).expect("a good reply");
    assert_eq!((result, data.as_slice()), (Ok(()), &b"ABabCD\0\0"[..]));
}

#[test]
fn errors_of_a_request_are_its_result() {
    let message = [&errno::EIO.to_be_bytes()[..], &[0, 3], b"bad"].concat();
    for reply in [
        simple(0, errno::EIO, &[]),
        structured(chunk::FLAG_DONE, chunk::ERROR, 0, &[&message]),
        structured(
            chunk::FLAG_DONE,
            chunk::ERROR_OFFSET,
            0,
            &[&message, &16u64.to_be_bytes()],
        ),
    ] {
        assert_eq!(read(reply).expect("a good reply").0, Err(errno::EIO));
    }
}

#[test]
fn replies_that_break_the_protocol_break_the_connection() {
    let chunk_of = |flags: u16, offset: u64, bytes: &[u8]| {
        let data = [&offset.to_be_bytes(), bytes];
        structured(flags, chunk::OFFSET_DATA, 0, &data)
    };
    let piece = |offset: u64, bytes: &[u8]| chunk_of(0, offset, bytes);
    let data = |offset: u64, bytes: &[u8]| chunk_of(chunk::FLAG_DONE, offset, bytes);
    for reply in [
        b"no reply at all..".to_vec(),
        simple(1, 0, &[0; 8]),
        data(16, b"short"),
        data(8, b"too soon"),
        data(20, b"too late"),
        data(16, b"too much of it"),
        data(u64::MAX, b"far away"),
        [piece(16, b"ABCD"), data(18, b"CDEF")].concat(),
        [piece(20, b"EFGH"), piece(16, b"AB"), data(21, b"FG")].concat(),
        [piece(16, b"ABCDEFGH"), data(20, b"EFGH")].concat(),
        [piece(16, b"ABCDEFGH"), data(16, b"ABCDEFGH")].concat(),
        structured(chunk::FLAG_DONE, 77, 0, &[]),
        structured(chunk::FLAG_DONE, chunk::ERROR, 0, &[]),
    ] {
        let shown = format!("{reply:?}");
        assert!(matches!(read(reply), Err(Error::Protocol(_))), "{shown}");
    }
}

#[test]
fn a_connection_that_ends_is_said_to() {
    let cut = structured(
        0,
        chunk::OFFSET_DATA,
        0,
        &[&16u64.to_be_bytes(), b"12345678"],
    );
    for reply in [Vec::new(), cut[..20].to_vec(), cut] {
        let message = read(reply).expect_err("no whole reply").to_string();
        assert!(message.contains("closed the connection"), "{message}");
    }
}

#[test]
fn servers_of_another_kind_are_refused() {
    let unknown = option_reply(opt::GO, rep::ERR_UNKNOWN, b"no such export");
    let accepted = option_reply(opt::STRUCTURED_REPLY, rep::ERR_UNSUP, &[]);
    let sizeless = option_reply(opt::GO, rep::ACK, &[]);
    for (script, said) in [
        (b"SSH-2.0-OpenSSH_9.2p1".to_vec(), "did not greet"),
        ([&greeting()[..16], &[0, 0]].concat(), "fixed newstyle"),
        (
            [greeting(), accepted.clone(), unknown].concat(),
            "none of that name no such export",
        ),
        (
            [greeting(), accepted.clone(), sizeless].concat(),
            "gave no size",
        ),
        (
            [greeting(), b"twenty bytes or more".to_vec()].concat(),
            "bad answer",
        ),
    ] {
        let (uri, thread) = server(script);
        let message = Client::<Vec<u8>>::connect(&uri)
            .expect_err(said)
            .to_string();
        thread.join().expect("the server does not fail");
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn requests_are_sent_by_one_thread_and_answered_to_another_in_any_order() {
    let answers = [simple(1, 0, b"BBBBBBBB"), simple(0, 0, b"AAAAAAAA")];
    let (uri, thread) = server([handshake_done(), answers.concat()].concat());
    let (mut sender, mut receiver) = Client::connect(&uri).expect("a good server").split();
    let sending = std::thread::spawn(move || {
        for cookie in 0..2 {
            assert_eq!(sender.next_cookie(), cookie);
            let buffer = vec![0; LENGTH as usize];
            let offset = cookie * u64::from(LENGTH);
            let sent = sender.submit(Command::Read { offset, buffer });
            assert_eq!(sent.expect("the server reads"), cookie);
        }
        sender
    });
    // Both are in flight before the first answer is taken, which the script sends unasked.
    let sender = sending.join().expect("it does not fail");
    let mut take = || {
        receiver
            .receive(Patience::WITHOUT_END)
            .expect("an answer")
            .expect("patience")
    };
    let (first, second) = (take(), take());
    assert_eq!((first.cookie, second.cookie), (1, 0));
    assert_eq!(first.buffer.expect("a read has one"), b"BBBBBBBB");
    assert_eq!(second.buffer.expect("a read has one"), b"AAAAAAAA");
    drop((sender, receiver));
    thread.join().expect("the server does not fail");
}

#[test]
fn hanging_up_one_direction_ends_the_wait_of_the_other() {
    let (uri, thread) = server(handshake_done());
    let (sender, mut receiver) = Client::<Vec<u8>>::connect(&uri)
        .expect("a good server")
        .split();
    sender.hang_up();
    assert!(receiver.receive(Patience::WITHOUT_END).is_err());
    drop((sender, receiver));
    thread.join().expect("the server does not fail");
}

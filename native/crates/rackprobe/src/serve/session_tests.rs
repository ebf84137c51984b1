use std::io::Cursor;

use blockdev::testing::{Tree, BYTES, SERIAL};
use blockdev::{Device, Node};
use nbd::proto::{
    self, chunk, handshake, opt, rep, u32_at, u64_at, REQUEST_LEN, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC,
};
use rustix::io::Errno;

use super::*;

/// Everything that was said to a client.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unpoisoned(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A drive that answers everything with one error.
struct Failing {
    errno: Errno,
    is_gone: bool,
}

impl Medium for Failing {
    fn offer(&self) -> Offer {
        offer(flag::SEND_FLUSH)
    }

    fn read(&self, _offset: u64, _buffer: &mut [u8]) -> io::Result<()> {
        Err(self.errno.into())
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> io::Result<()> {
        Err(self.errno.into())
    }

    fn flush(&self) -> io::Result<()> {
        Err(self.errno.into())
    }

    fn trim(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(self.errno.into())
    }

    fn zero(&self, _offset: u64, _length: u64, _keeps_place: bool) -> io::Result<()> {
        Err(self.errno.into())
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}

fn offer(flags: u16) -> Offer {
    Offer {
        bytes: BYTES,
        flags,
        minimum_block: 512,
        preferred_block: 4096,
        maximum_block: proto::MAX_REQUEST_BYTES,
    }
}

fn device(tree: &Tree, may_write: bool) -> Box<dyn Medium> {
    let node = Node::look(&tree.roots(), &tree.node("sda")).unwrap();
    Box::new(Device::open(node, BYTES, may_write).unwrap())
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut out = proto::OPT_MAGIC.to_be_bytes().to_vec();
    out.extend(number.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
    out
}

/// The beginning of a client that goes for the export `name`.
fn hello(name: &str) -> Vec<u8> {
    let mut out = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES)
        .to_be_bytes()
        .to_vec();
    let mut go = (name.len() as u32).to_be_bytes().to_vec();
    go.extend(name.as_bytes());
    go.extend(0_u16.to_be_bytes());
    out.extend(option(opt::GO, &go));
    out
}

fn request(command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let request = Request {
        flags: 0,
        command,
        cookie,
        offset,
        length,
    };
    request.encode().to_vec()
}

/// The words of a session to a client that says all of `script`, and its end.
fn said(medium: Box<dyn Medium>, script: Vec<u8>) -> (Vec<u8>, io::Result<()>) {
    let said = Said::default();
    let ended = serve(Cursor::new(script), said.clone(), medium, SERIAL);
    let said = unpoisoned(&said.0).clone();
    (said, ended)
}

/// The replies after the negotiation, each with its cookie and error number, and the bytes behind them.
fn simple_replies(said: &[u8]) -> Vec<(u64, u32)> {
    let magic = SIMPLE_REPLY_MAGIC.to_be_bytes();
    let mut replies: Vec<(u64, u32)> = said
        .windows(16)
        .filter(|window| window.starts_with(&magic))
        .map(|reply| (u64_at(reply, 8), u32_at(reply, 4)))
        .collect();
    replies.sort_unstable();
    replies
}

#[test]
fn what_is_written_is_read_back_and_lies_where_it_was_put() {
    let tree = Tree::new();
    let mut script = hello(SERIAL);
    script.extend(request(cmd::WRITE, 1, 8192, 4096));
    script.extend([7; 4096]);
    script.extend(request(cmd::DISC, 0, 0, 0));
    let (answers, ended) = said(device(&tree, true), script);
    ended.unwrap();
    assert_eq!(simple_replies(&answers), [(1, 0)]);
    let mut script = hello(SERIAL);
    script.extend(request(cmd::READ, 2, 4096, 12288));
    let (answers, ended) = said(device(&tree, false), script);
    ended.unwrap();
    let data = &answers[answers.len() - 12288..];
    assert_eq!(simple_replies(&answers), [(2, 0)]);
    let expected = [[0; 4096], [7; 4096], [0; 4096]].concat();
    assert_eq!(data, expected);
}

#[test]
fn zeroes_trims_and_flushes_are_done() {
    let tree = Tree::new();
    let mut script = hello(SERIAL);
    script.extend(request(cmd::WRITE, 1, 0, 16384));
    script.extend([7; 16384]);
    script.extend(request(cmd::DISC, 0, 0, 0));
    said(device(&tree, true), script).1.unwrap();
    let mut script = hello(SERIAL);
    script.extend(request(cmd::WRITE_ZEROES, 2, 4096, 4096));
    script.extend(request(cmd::TRIM, 3, 12288, 4096));
    script.extend(request(cmd::FLUSH, 4, 0, 0));
    let (answers, _) = said(device(&tree, true), script);
    assert_eq!(simple_replies(&answers), [(2, 0), (3, 0), (4, 0)]);
    let mut script = hello(SERIAL);
    script.extend(request(cmd::READ, 5, 0, 12288));
    let (answers, _) = said(device(&tree, false), script);
    let expected = [[7; 4096], [0; 4096], [7; 4096]].concat();
    assert_eq!(&answers[answers.len() - 12288..], expected);
}

#[test]
fn without_permission_nothing_is_written() {
    let tree = Tree::new();
    let mut script = hello(SERIAL);
    script.extend(request(cmd::WRITE, 1, 0, 4096));
    script.extend([7; 4096]);
    script.extend(request(cmd::TRIM, 2, 0, 4096));
    script.extend(request(cmd::WRITE_ZEROES, 3, 0, 4096));
    script.extend(request(cmd::READ, 4, 0, 4096));
    let (answers, ended) = said(device(&tree, false), script);
    ended.unwrap();
    let denied = errno::EPERM;
    assert_eq!(
        simple_replies(&answers),
        [(1, denied), (2, denied), (3, denied), (4, 0)]
    );
    assert_eq!(&answers[answers.len() - 4096..], [0; 4096]);
}

#[test]
fn a_drive_goes_by_its_serial_and_no_other_name() {
    let tree = Tree::new();
    let (answers, ended) = said(device(&tree, false), hello("OTHER"));
    assert!(ended.is_err());
    assert_eq!(u32_at(&answers[18..], 12), rep::ERR_UNKNOWN);
    let (_, ended) = said(device(&tree, false), hello(""));
    ended.unwrap();
}

#[test]
fn what_does_not_lie_on_blocks_or_within_the_drive_is_refused_and_the_session_goes_on() {
    let tree = Tree::new();
    let mut script = hello(SERIAL);
    script.extend(request(cmd::READ, 1, 1, 512));
    script.extend(request(cmd::READ, 2, 0, 511));
    script.extend(request(cmd::READ, 3, BYTES, 512));
    script.extend(request(cmd::READ, 4, 0, u32::MAX));
    script.extend(request(cmd::WRITE, 5, BYTES - 512, 1024));
    script.extend([7; 1024]);
    script.extend(request(99, 6, 0, 0));
    script.extend(request(cmd::FLUSH, 7, 0, 0));
    let (answers, ended) = said(device(&tree, true), script);
    ended.unwrap();
    let refused = errno::EINVAL;
    assert_eq!(
        simple_replies(&answers),
        [
            (1, refused),
            (2, refused),
            (3, refused),
            (4, refused),
            (5, errno::ENOSPC),
            (6, refused),
            (7, 0)
        ]
    );
}

#[test]
fn a_frame_that_is_none_ends_the_session_and_nothing_behind_it_is_done() {
    let tree = Tree::new();
    let mut script = hello(SERIAL);
    script.extend([0xff; REQUEST_LEN]);
    script.extend(request(cmd::WRITE, 1, 0, 4096));
    script.extend([7; 4096]);
    let (answers, ended) = said(device(&tree, true), script);
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(simple_replies(&answers), []);
    assert!(is_blank(&tree));
}

#[test]
fn a_write_that_was_cut_is_not_begun() {
    for kept in [0, 1, 4095] {
        let tree = Tree::new();
        let mut script = hello(SERIAL);
        script.extend(request(cmd::WRITE, 1, 0, 4096));
        script.extend(vec![7; kept]);
        let (answers, ended) = said(device(&tree, true), script);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(simple_replies(&answers), []);
        assert!(is_blank(&tree));
    }
}

#[test]
fn a_client_that_hangs_up_at_any_byte_of_the_negotiation_ends_it() {
    let whole = hello(SERIAL);
    for kept in 0..whole.len() {
        let tree = Tree::new();
        let (_, ended) = said(device(&tree, true), whole[..kept].to_vec());
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn noise_is_no_client() {
    for noise in [
        vec![0xff; 64],
        vec![0; 64],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let tree = Tree::new();
        let (answers, _) = said(device(&tree, true), noise);
        // The greeting, and nothing else.
        assert_eq!(answers.len(), 18);
    }
}

#[test]
fn options_that_make_no_sense_are_refused_and_the_negotiation_goes_on() {
    let tree = Tree::new();
    let mut script = hello(SERIAL)[..4].to_vec();
    script.extend(option(4711, b"what"));
    script.extend(option(opt::GO, &[0xff; 5]));
    script.extend(option(opt::INFO, &vec![0; 65 << 10]));
    script.extend(option(opt::STRUCTURED_REPLY, &[]));
    script.extend(&hello(SERIAL)[4..]);
    script.extend(request(cmd::READ, 5, 0, 512));
    let (answers, ended) = said(device(&tree, true), script);
    ended.unwrap();
    let refusals: Vec<u32> = (0..3)
        .map(|n| u32_at(&answers[18 + 20 * n..], 12))
        .collect();
    assert_eq!(
        refusals,
        [rep::ERR_UNSUP, rep::ERR_INVALID, rep::ERR_TOO_BIG]
    );
    let reply = &answers[answers.len() - 512 - 28..];
    assert_eq!(u32_at(reply, 0), STRUCTURED_REPLY_MAGIC);
    assert_eq!(reply[6..8], chunk::OFFSET_DATA.to_be_bytes());
}

#[test]
fn errors_of_the_drive_are_told_apart_from_the_loss_of_it() {
    let cases = [
        (Errno::IO, false, errno::EIO),
        (Errno::NODATA, false, errno::EIO),
        (Errno::ILSEQ, false, errno::EIO),
        (Errno::NOSPC, false, errno::ENOSPC),
        (Errno::IO, true, errno::ESHUTDOWN),
        (Errno::NXIO, false, errno::ESHUTDOWN),
        (Errno::TIMEDOUT, false, errno::ESHUTDOWN),
    ];
    for (error, is_gone, expected) in cases {
        let mut script = hello(SERIAL);
        script.extend(request(cmd::READ, 1, 0, 4096));
        script.extend(request(cmd::FLUSH, 2, 0, 0));
        let medium = Failing {
            errno: error,
            is_gone,
        };
        let (answers, ended) = said(Box::new(medium), script);
        ended.unwrap();
        assert_eq!(simple_replies(&answers), [(1, expected), (2, expected)]);
    }
}

#[test]
fn a_drive_that_was_taken_out_is_gone() {
    let tree = Tree::new();
    let medium = device(&tree, false);
    assert!(!medium.is_gone());
    tree.file("sys/devices/sda/device/state", "offline\n");
    assert!(medium.is_gone());
    tree.file("sys/devices/sda/device/state", "running\n");
    assert!(!medium.is_gone());
    tree.remove_all("sys/devices/sda");
    assert!(medium.is_gone());
}

#[test]
fn many_requests_are_answered_each_with_its_own_data() {
    let tree = Tree::new();
    let mut script = hello(SERIAL);
    for number in 0..200_u64 {
        script.extend(request(cmd::WRITE, number, number * 4096, 4096));
        script.extend([number as u8; 4096]);
    }
    said(device(&tree, true), script).1.unwrap();
    let mut script = hello(SERIAL);
    for number in 0..200_u64 {
        script.extend(request(cmd::READ, number, number * 4096, 4096));
    }
    let (answers, ended) = said(device(&tree, false), script);
    ended.unwrap();
    let replies = &answers[answers.len() - 200 * (16 + 4096)..];
    for reply in replies.chunks(16 + 4096) {
        assert_eq!(u32_at(reply, 0), SIMPLE_REPLY_MAGIC);
        let number = u64_at(reply, 8) as u8;
        assert!(reply[16..].iter().all(|byte| *byte == number));
    }
}

fn is_blank(tree: &Tree) -> bool {
    let (answers, _) = said(
        device(tree, false),
        [hello(SERIAL), request(cmd::READ, 1, 0, 4096)].concat(),
    );
    answers[answers.len() - 4096..]
        .iter()
        .all(|byte| *byte == 0)
}

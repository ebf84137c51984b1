//! The truth log: one thread writes what happened to the file and to those who subscribed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use std::thread;

use device::Record;

use crate::control::LineWriter;
use crate::floor::DiesWithThread;

/// Records a subscriber may be behind before it is disconnected.
const SUBSCRIBER_LAG: usize = 100_000;

enum Message {
    Record(Record),
    /// A subscriber, and the line that tells it that it is one.
    Subscribe(SyncSender<Arc<[u8]>>, Arc<[u8]>),
    /// Answered once everything before it is in the file.
    Settle(Sender<()>),
}

/// A handle to the log; records of one thread keep their order.
#[derive(Clone)]
pub struct TruthLog {
    sender: Sender<Message>,
}

impl TruthLog {
    /// Start the thread that writes to `file`.
    pub fn start(file: File) -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let _alive = DiesWithThread("truth log");
            write_all(&receiver, BufWriter::new(file));
        });
        Self { sender }
    }

    /// Have a record written. Never waits.
    pub fn write(&self, record: Record) {
        self.send(Message::Record(record));
    }

    /// From now on records also go to `writer`, after the line `answer`; a client that falls far behind is
    /// disconnected.
    pub fn subscribe(&self, writer: Arc<LineWriter>, socket: UnixStream, answer: Vec<u8>) {
        let (sender, receiver) = sync_channel::<Arc<[u8]>>(SUBSCRIBER_LAG);
        thread::spawn(move || {
            for line in receiver {
                if writer.write(&line).is_err() {
                    break;
                }
            }
            // The peer is gone already where this fails.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        });
        self.send(Message::Subscribe(sender, answer.into()));
    }

    /// Return once every record written before is in the file.
    pub fn settle(&self) {
        let (sender, receiver) = channel();
        self.send(Message::Settle(sender));
        // The writing thread lives as long as the process.
        let _ = receiver.recv();
    }

    fn send(&self, message: Message) {
        // The writing thread lives as long as the process.
        let _ = self.sender.send(message);
    }
}

fn write_all(receiver: &Receiver<Message>, mut file: BufWriter<File>) {
    let mut subscribers: Vec<SyncSender<Arc<[u8]>>> = Vec::new();
    let mut complained = false;
    while let Ok(first) = receiver.recv() {
        let mut settled = Vec::new();
        for message in std::iter::once(first).chain(receiver.try_iter()) {
            match message {
                Message::Record(record) => {
                    let mut line = serde_json::to_vec(&record).expect("a record is JSON");
                    line.push(b'\n');
                    if let Err(error) = file.write_all(&line) {
                        complain(&mut complained, &error);
                    }
                    let line: Arc<[u8]> = line.into();
                    subscribers.retain(|subscriber| subscriber.try_send(line.clone()).is_ok());
                }
                Message::Subscribe(subscriber, answer) => {
                    if subscriber.try_send(answer).is_ok() {
                        subscribers.push(subscriber);
                    }
                }
                Message::Settle(done) => settled.push(done),
            }
        }
        if let Err(error) = file.flush() {
            complain(&mut complained, &error);
        }
        for done in settled {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
    }
}

fn complain(complained: &mut bool, error: &std::io::Error) {
    if !std::mem::replace(complained, true) {
        eprintln!("rackd: the truth log cannot be written: {error}; records are being lost");
    }
}

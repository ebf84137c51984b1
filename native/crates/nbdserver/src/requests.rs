//! The requests of a client, one after the other.

use std::borrow::Cow;
use std::io::{self, Read};

use nbd::proto::{cmd, Request, REQUEST_LEN};

use crate::inbox::Inbox;

/// The reader's side of requests: their checks, and its duties before it waits.
pub trait Intake {
    /// The result of a check.
    type Checked;

    /// Check a request before the data of a write has come; the error number of one that is refused.
    fn check(&mut self, request: &Request) -> Result<Self::Checked, u32>;

    /// The client is about to be waited for: what it was not told yet can be sent.
    ///
    /// # Errors
    /// As the connection has them; they end the session.
    fn before_wait(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A request that has come whole.
#[derive(Debug)]
pub struct Came<'a, C> {
    /// Its header.
    pub request: Request,
    /// The result of its check, or the error number with which it was refused.
    pub checked: Result<C, u32>,
    /// The data of a write that was not refused.
    pub payload: Cow<'a, [u8]>,
    /// Whether the client was waited for.
    pub waited: bool,
}

/// The requests that a client sends by `R`.
#[derive(Debug)]
pub struct Requests<R> {
    from: R,
    inbox: Inbox,
    has_said_goodbye: bool,
}

impl<R: Read> Requests<R> {
    /// The requests behind what negotiation has taken from this inbox.
    pub fn new(from: R, inbox: Inbox) -> Self {
        Self {
            from,
            inbox,
            has_said_goodbye: false,
        }
    }

    /// Whether the client has asked to be disconnected, and did not just go.
    #[must_use]
    pub fn has_said_goodbye(&self) -> bool {
        self.has_said_goodbye
    }

    /// The next request; `None` after the last one, where the client disconnects. The data of a refused write is dropped.
    ///
    /// # Errors
    /// `InvalidData` where the client breaks the protocol, `UnexpectedEof` where it leaves within a request, and as the
    /// connection and the intake have them.
    pub fn next<I: Intake>(&mut self, intake: &mut I) -> io::Result<Option<Came<'_, I::Checked>>> {
        let mut waited = false;
        if !self.inbox.has(REQUEST_LEN) {
            intake.before_wait()?;
            match self.inbox.fill(&mut self.from, REQUEST_LEN) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                filled => filled?,
            }
            waited = true;
        }
        let header = self.inbox.take(REQUEST_LEN).try_into();
        let Some(request) = Request::decode(header.expect("the length of a header")) else {
            let what = "what should be a request does not begin as one";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let payload = match request.command {
            cmd::DISC => {
                self.has_said_goodbye = true;
                return Ok(None);
            }
            cmd::WRITE => request.length as usize,
            _ => 0,
        };
        let checked = intake.check(&request);
        if !self.inbox.has(payload) {
            intake.before_wait()?;
            waited = true;
        }
        let payload = if checked.is_ok() {
            self.inbox.data(&mut self.from, payload)?
        } else {
            self.inbox.discard(&mut self.from, payload as u64)?;
            Cow::default()
        };
        Ok(Some(Came {
            request,
            checked,
            payload,
            waited,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes requests unless they are writes that it refuses, and counts its waits.
    #[derive(Default)]
    struct Counted {
        refuses_writes: bool,
        waits: usize,
    }

    impl Intake for Counted {
        type Checked = u16;

        fn check(&mut self, request: &Request) -> Result<u16, u32> {
            match request.command {
                cmd::WRITE if self.refuses_writes => Err(22),
                command => Ok(command),
            }
        }

        fn before_wait(&mut self) -> io::Result<()> {
            self.waits += 1;
            Ok(())
        }
    }

    fn request(command: u16, length: u32) -> Vec<u8> {
        let request = Request {
            flags: 0,
            command,
            cookie: 1,
            offset: 0,
            length,
        };
        request.encode().to_vec()
    }

    /// A checked request, its payload, and a wait for the client before it.
    type Read = (Result<u16, u32>, Vec<u8>, bool);

    /// Every request until the client left.
    fn read(sent: &[u8], intake: &mut Counted) -> io::Result<Vec<Read>> {
        let mut requests = Requests::new(sent, Inbox::default());
        let mut all = Vec::new();
        while let Some(came) = requests.next(intake)? {
            all.push((came.checked, came.payload.to_vec(), came.waited));
        }
        Ok(all)
    }

    #[test]
    fn requests_come_in_order_and_a_disconnection_is_the_last() {
        let sent = [
            request(cmd::WRITE, 3),
            b"abc".to_vec(),
            request(cmd::READ, 9),
            request(cmd::DISC, 0),
            b"anything".to_vec(),
        ];
        let mut intake = Counted::default();
        let all = read(&sent.concat(), &mut intake).unwrap();
        let write = (Ok(cmd::WRITE), b"abc".to_vec(), true);
        assert_eq!(all, [write, (Ok(cmd::READ), vec![], false)]);
        assert_eq!(intake.waits, 1);
    }

    #[test]
    fn a_client_that_goes_says_no_goodbye() {
        for (sent, says_goodbye) in [(request(cmd::DISC, 0), true), (vec![], false)] {
            let mut requests = Requests::new(&sent[..], Inbox::default());
            assert!(requests.next(&mut Counted::default()).unwrap().is_none());
            assert_eq!(requests.has_said_goodbye(), says_goodbye);
        }
    }

    #[test]
    fn the_data_of_a_refused_write_is_dropped() {
        let sent = [
            request(cmd::WRITE, 3),
            b"abc".to_vec(),
            request(cmd::READ, 9),
        ];
        let mut intake = Counted {
            refuses_writes: true,
            waits: 0,
        };
        let all = read(&sent.concat(), &mut intake).unwrap();
        assert_eq!(
            all,
            [(Err(22), vec![], true), (Ok(cmd::READ), vec![], false)]
        );
    }

    #[test]
    fn anything_else_than_requests_is_an_error() {
        let kind = |sent: &[u8]| read(sent, &mut Counted::default()).unwrap_err().kind();
        assert_eq!(kind(&[0; REQUEST_LEN]), io::ErrorKind::InvalidData);
        let cut = request(cmd::WRITE, 9);
        assert_eq!(kind(&cut), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(&cut[..9], &mut Counted::default()).unwrap(), []);
    }
}

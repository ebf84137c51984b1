//! The host port: command decoding, the command queue and the data link.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use super::HddParameters;
use crate::{Completion, Kind, Request, Ticket};

/// Incoming commands, outgoing completions, and the data link.
///
/// Commands are decoded one after the other, as many as the queue depth at a time. A flush is a barrier, as ATA's
/// non-queued FLUSH CACHE is: it is decoded once all before it is complete, and nothing else until it is complete.
#[derive(Debug, Clone)]
pub(super) struct HostPort {
    depth: u32,
    overhead_ns: u64,
    mb_s: f64,
    /// Beyond the queue depth, or behind a flush.
    waiting: VecDeque<Request>,
    /// Accepted and not completed.
    known: u32,
    has_flush: bool,
    decoding: VecDeque<(u64, Request)>,
    decoder_free_ns: u64,
    link_free_ns: u64,
    completing: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    completed: Vec<Completion>,
}

/// A future completion, ordered by delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    sequence: u64,
    ticket: Ticket,
    failed_at: Option<u64>,
}

impl HostPort {
    pub(super) fn new(parameters: &HddParameters) -> Self {
        Self {
            depth: parameters.queue_depth,
            overhead_ns: (parameters.command_overhead_us * 1e3).round() as u64,
            mb_s: parameters.interface_mb_s,
            waiting: VecDeque::new(),
            known: 0,
            has_flush: false,
            decoding: VecDeque::new(),
            decoder_free_ns: 0,
            link_free_ns: 0,
            completing: BinaryHeap::new(),
            sequence: 0,
            completed: Vec::new(),
        }
    }

    /// Accept a command.
    pub(super) fn submit(&mut self, request: &Request, now_ns: u64) {
        self.waiting.push_back(*request);
        self.admit(now_ns);
    }

    fn admit(&mut self, now_ns: u64) {
        while self.known < self.depth && !self.has_flush {
            let is_flush = |request: &Request| request.io.kind == Kind::Flush;
            let next_is_flush = self.waiting.front().is_some_and(is_flush);
            if next_is_flush && self.known > 0 {
                return;
            }
            let Some(request) = self.waiting.pop_front() else {
                return;
            };
            self.has_flush = next_is_flush;
            self.known += 1;
            self.decoder_free_ns = self.decoder_free_ns.max(now_ns) + self.overhead_ns;
            self.decoding.push_back((self.decoder_free_ns, request));
        }
    }

    /// The time of the next decoded command or completion.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let decoded = self.decoding.front().map(|&(at_ns, _)| at_ns);
        self.due_ns().into_iter().chain(decoded).min()
    }

    fn due_ns(&self) -> Option<u64> {
        self.completing.peek().map(|Reverse(due)| due.at_ns)
    }

    /// Deliver the completion that is due now, if any.
    pub(super) fn hand_out(&mut self, now_ns: u64) -> bool {
        if self.due_ns() != Some(now_ns) {
            return false;
        }
        if let Some(Reverse(due)) = self.completing.pop() {
            self.completed.push(Completion {
                ticket: due.ticket,
                at_ns: due.at_ns,
                failed_at: due.failed_at,
            });
            self.known -= 1;
            self.has_flush &= self.known > 0;
            self.admit(now_ns);
        }
        true
    }

    /// The command that has been decoded now, if any.
    pub(super) fn decoded(&mut self, now_ns: u64) -> Option<Request> {
        let is_decoded = |(at_ns, _): &(u64, Request)| *at_ns == now_ns;
        self.decoding
            .front()
            .is_some_and(is_decoded)
            .then(|| self.decoding.pop_front())
            .flatten()
            .map(|(_, request)| request)
    }

    /// Move bytes that are available from `from_ns` on over the link; returns their arrival time.
    pub(super) fn carry(&mut self, from_ns: u64, bytes: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(from_ns) + self.time_ns(bytes);
        self.link_free_ns
    }

    /// Move bytes that followed the head and are complete at `end_ns` over the link; returns their arrival time.
    pub(super) fn trail(&mut self, end_ns: u64, bytes: u64) -> u64 {
        self.carry(end_ns.saturating_sub(self.time_ns(bytes)), bytes)
            .max(end_ns)
    }

    fn time_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * 1e3 / self.mb_s).round() as u64
    }

    /// Schedule a request's completion.
    pub(super) fn complete(&mut self, ticket: Ticket, at_ns: u64, failed_at: Option<u64>) {
        self.sequence += 1;
        self.completing.push(Reverse(Due {
            at_ns,
            sequence: self.sequence,
            ticket,
            failed_at,
        }));
    }

    /// The due time of the first delivered completion.
    pub(super) fn completed_ns(&self) -> Option<u64> {
        self.completed.first().map(|completion| completion.at_ns)
    }

    /// Append the delivered completions.
    pub(super) fn give(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.completed);
    }

    /// Abort commands; `freed` of them were accepted and decoded, and will not be
    /// completed.
    pub(super) fn abort(&mut self, gone: &BTreeSet<Ticket>, freed: u32, now_ns: u64) {
        let stays = |request: &Request| !gone.contains(&request.ticket);
        self.waiting.retain(stays);
        let decoding = self.decoding.len();
        self.decoding.retain(|(_, request)| stays(request));
        self.known -= freed + (decoding - self.decoding.len()) as u32;
        self.has_flush &= self.known > 0;
        self.admit(now_ns);
    }

    /// Lose every command and every completion.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.known = 0;
        self.has_flush = false;
        self.decoding.clear();
        self.completing.clear();
        self.completed.clear();
    }
}

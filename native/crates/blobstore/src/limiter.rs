//! The rate limiter of a drive: requests outstanding there stay within the credit that its switch gives.

use std::collections::VecDeque;

/// The credit of a drive, the requests outstanding there, and those that wait for it.
#[derive(Debug, Clone)]
pub struct Limiter<T> {
    /// `None`: the switch gives none, and nothing is limited.
    credit: Option<u32>,
    is_limiting: bool,
    outstanding: u32,
    waiting: VecDeque<T>,
}

impl<T> Limiter<T> {
    /// A drive of which nothing is known yet. One that does not limit only keeps account.
    #[must_use]
    pub fn new(is_limiting: bool) -> Self {
        Self {
            credit: None,
            is_limiting,
            outstanding: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Take note of a credit. With 0 one request may go all the same: no completion could tell a larger one otherwise.
    pub fn set_credit(&mut self, credit: u32) {
        self.credit = Some(credit.max(1));
    }

    /// The credit, where there is one.
    #[must_use]
    pub fn credit(&self) -> Option<u32> {
        self.credit
    }

    /// Requests at the drive.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Requests that wait for credit.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no request is outstanding and none waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.waiting.is_empty()
    }

    /// Credit that neither an outstanding nor a waiting request uses; below 0 where more wait than may go.
    #[must_use]
    pub fn unused(&self) -> Option<i64> {
        let used = i64::from(self.outstanding) + self.waiting.len() as i64;
        self.credit.map(|credit| i64::from(credit) - used)
    }

    /// Queue a request.
    pub fn enter(&mut self, request: T) {
        self.waiting.push_back(request);
    }

    /// Take the next request that may go now, in order of arrival; it is outstanding then.
    pub fn pop(&mut self) -> Option<T> {
        let has_room = self
            .credit
            .is_none_or(|credit| !self.is_limiting || self.outstanding < credit);
        let request = if has_room {
            self.waiting.pop_front()
        } else {
            None
        };
        self.outstanding += u32::from(request.is_some());
        request
    }

    /// Take note that a request has completed.
    pub fn complete(&mut self) {
        self.outstanding -= 1;
    }

    /// Withdraw all that wait.
    pub fn withdraw(&mut self) -> Vec<T> {
        self.waiting.drain(..).collect()
    }
}

//! A tenant's view of its share of a drive, and clients that are told of its changes.

use parking_lot::{Condvar, Mutex};
use schedulers::View;
use serde::Serialize;

/// A tenant's share at one time, as its scheduler tells it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Share {
    pub connected: bool,
    /// Requests that it should have outstanding at most, where the scheduler says so.
    pub credit: Option<u32>,
    pub view: Option<View>,
}

/// A share since a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Told {
    pub t_ns: u64,
    pub share: Share,
}

/// The changes of one tenant's share for one client. A change that was not taken is replaced by the next.
#[derive(Default)]
pub struct Watch {
    news: Mutex<News>,
    came: Condvar,
}

#[derive(Default)]
struct News {
    newest: Option<Told>,
    is_over: bool,
}

impl Watch {
    pub fn put(&self, told: Told) {
        self.news.lock().newest = Some(told);
        self.came.notify_one();
    }

    /// Wait for a change; `None` once the watch has ended.
    pub fn take(&self) -> Option<Told> {
        let mut news = self.news.lock();
        loop {
            if news.is_over {
                return None;
            }
            match news.newest.take() {
                Some(told) => return Some(told),
                None => self.came.wait(&mut news),
            }
        }
    }

    pub fn end(&self) {
        self.news.lock().is_over = true;
        self.came.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(t_ns: u64, credit: u32) -> Told {
        let credit = Some(credit);
        let share = Share {
            connected: true,
            credit,
            view: None,
        };
        Told { t_ns, share }
    }

    #[test]
    fn the_newest_change_replaces_those_that_were_not_taken() {
        let watch = Watch::default();
        watch.put(told(1, 8));
        watch.put(told(2, 16));
        assert_eq!(watch.take(), Some(told(2, 16)));
        watch.put(told(3, 4));
        watch.end();
        assert_eq!(watch.take(), None);
    }
}

//! The sector layout of a file with a local erasure code, relative to the file's start.

use std::ops::Range;

/// The unit of failure, erasure and decoding.
pub const SECTOR_BYTES: u64 = 4096;

/// A file of groups: `k` user sectors, then `m` redundancy sectors; the last group may be a shortened one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    k: u64,
    m: u64,
    /// User sectors of the file.
    user: u64,
}

impl Layout {
    /// A file of `user` sectors; without a code it is one group that has no redundancy.
    pub fn new(code: Option<(u64, u64)>, user: u64) -> Self {
        let (k, m) = code.unwrap_or((user, 0));
        Self { k, m, user }
    }

    /// All sectors of the file.
    pub fn sectors(&self) -> u64 {
        self.user + self.user.div_ceil(self.k) * self.m
    }

    /// The group that a user sector is in.
    pub fn group_of(&self, user: u64) -> u64 {
        user / self.k
    }

    /// All sectors of a group.
    pub fn group(&self, group: u64) -> Range<u64> {
        let start = group * (self.k + self.m);
        start..start + self.k.min(self.user - group * self.k) + self.m
    }

    /// The file sectors of this group's part of the user sectors from `first` up to `end`.
    pub fn on_drive(&self, group: u64, first: u64, end: u64) -> Range<u64> {
        let before = group * self.m;
        let (low, high) = (group * self.k, (group + 1) * self.k);
        first.max(low) + before..end.min(high) + before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_and_the_last_is_shortened() {
        let layout = Layout::new(Some((4, 2)), 10);
        assert_eq!(layout.sectors(), 16);
        assert_eq!(
            (0..3).map(|group| layout.group(group)).collect::<Vec<_>>(),
            [0..6, 6..12, 12..16]
        );
        assert_eq!(layout.on_drive(1, 3, 9), 6..10);
        assert_eq!(layout.on_drive(0, 3, 9), 3..4);
        assert_eq!(layout.on_drive(2, 3, 9), 12..13);
    }

    #[test]
    fn without_a_code_sectors_lie_as_they_are_numbered() {
        let layout = Layout::new(None, 10);
        assert_eq!(layout.sectors(), 10);
        assert_eq!(layout.group(0), 0..10);
        assert_eq!(layout.on_drive(0, 3, 9), 3..9);
    }
}

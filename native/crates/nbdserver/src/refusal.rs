//! Checks of requests before anything is done for them.

use nbd::proto::{cmd, errno, Request, MAX_REQUEST_BYTES};

/// The error number of a request that no export of `bytes` takes: of an unknown command, with a flag that is not the
/// command's, too long, or beyond the end.
#[must_use]
pub fn refusal(request: &Request, bytes: u64) -> Option<u32> {
    let flags = match request.command {
        cmd::READ => cmd::FLAG_FUA | cmd::FLAG_DF,
        cmd::WRITE | cmd::FLUSH | cmd::TRIM => cmd::FLAG_FUA,
        cmd::WRITE_ZEROES => cmd::FLAG_FUA | cmd::FLAG_NO_HOLE,
        _ => return Some(errno::EINVAL),
    };
    let carries_data = matches!(request.command, cmd::READ | cmd::WRITE);
    if request.flags & !flags != 0 || (carries_data && request.length > MAX_REQUEST_BYTES) {
        return Some(errno::EINVAL);
    }
    let end = request.offset.checked_add(u64::from(request.length));
    let is_inside = request.command == cmd::FLUSH || end.is_some_and(|end| end <= bytes);
    (!is_inside).then_some(match request.command {
        cmd::WRITE | cmd::WRITE_ZEROES => errno::ENOSPC,
        _ => errno::EINVAL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: u16, flags: u16, offset: u64, length: u32) -> Option<u32> {
        let request = Request {
            flags,
            command,
            cookie: 1,
            offset,
            length,
        };
        refusal(&request, 8192)
    }

    #[test]
    fn what_fits_is_taken() {
        assert_eq!(refused(cmd::READ, cmd::FLAG_DF, 4096, 4096), None);
        assert_eq!(refused(cmd::WRITE, cmd::FLAG_FUA, 0, 8192), None);
        assert_eq!(refused(cmd::FLUSH, 0, u64::MAX, 7), None);
        assert_eq!(refused(cmd::WRITE_ZEROES, cmd::FLAG_NO_HOLE, 8192, 0), None);
    }

    #[test]
    fn what_goes_beyond_the_end_is_refused() {
        assert_eq!(refused(cmd::READ, 0, 4096, 4097), Some(errno::EINVAL));
        assert_eq!(refused(cmd::TRIM, 0, u64::MAX, 4096), Some(errno::EINVAL));
        assert_eq!(refused(cmd::WRITE, 0, 8192, 1), Some(errno::ENOSPC));
        assert_eq!(refused(cmd::WRITE_ZEROES, 0, 0, 8193), Some(errno::ENOSPC));
    }

    #[test]
    fn unknown_commands_and_flags_and_longer_requests_are_refused() {
        assert_eq!(refused(5, 0, 0, 0), Some(errno::EINVAL));
        assert_eq!(refused(cmd::READ, 1 << 5, 0, 512), Some(errno::EINVAL));
        assert_eq!(
            refused(cmd::TRIM, cmd::FLAG_NO_HOLE, 0, 512),
            Some(errno::EINVAL)
        );
        let request = Request {
            flags: 0,
            command: cmd::READ,
            cookie: 1,
            offset: 0,
            length: MAX_REQUEST_BYTES + 1,
        };
        assert_eq!(refusal(&request, u64::MAX), Some(errno::EINVAL));
    }
}

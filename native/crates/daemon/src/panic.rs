//! Aborting the process when a thread panics.

use std::panic;

/// From now on a panic in any thread ends the process with SIGABRT, since the thread may have left
/// an inconsistent state. The `program` says so on standard error.
pub fn abort_on_panic(program: &'static str) {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |found| {
        tell(found);
        eprintln!("{program}: it ends because one of its threads failed; see above");
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    /// Environment variable of the process that panics.
    const ROLE: &str = "DAEMON_TEST_PANICS";

    #[test]
    fn a_thread_that_panics_ends_the_process() {
        if std::env::var_os(ROLE).is_some() {
            super::abort_on_panic("rackd");
            let failed = thread::spawn(|| panic!("of its own")).join();
            unreachable!("the process outlived its thread: {failed:?}");
        }
        let name = "panic::tests::a_thread_that_panics_ends_the_process";
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ROLE, "1")
            .output()
            .unwrap();
        assert_eq!(ended.status.signal(), Some(6));
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("of its own") && said.contains("it ends because"));
    }
}

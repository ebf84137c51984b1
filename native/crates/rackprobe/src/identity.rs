//! The identity of this machine's clock, for another that relates its own to it: whose it is, and how it is steered.

use std::sync::OnceLock;

use serde_json::{json, Value};

use crate::steering::steering;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const TIME_NAMESPACE: &str = "/proc/self/ns/time";
/// The boot id of the kernel whose clock this is, where the one under /proc is that of a simulated server.
const KERNEL_VARIABLE: &str = "RACKLOOP_KERNEL";

/// The clock that stamps here; none of it changes while a process lives.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// The machine's boot, as it tells it.
    boot_id: Option<String>,
    /// The kernel's boot and the time namespace: equal for two processes that read the same clock.
    clock_id: Option<String>,
}

impl Identity {
    fn new(boot_id: Option<String>, kernel: Option<String>, namespace: Option<String>) -> Self {
        let kernel = kernel
            .filter(|boot| !boot.is_empty())
            .or_else(|| boot_id.clone());
        Self {
            boot_id,
            clock_id: kernel.map(|boot| format!("{boot} {}", namespace.unwrap_or_default())),
        }
    }

    fn here() -> Self {
        let boot_id = std::fs::read_to_string(BOOT_ID).ok();
        let namespace = std::fs::read_link(TIME_NAMESPACE).ok();
        Self::new(
            boot_id.map(|text| text.trim().to_owned()),
            std::env::var(KERNEL_VARIABLE).ok(),
            namespace.map(|link| link.to_string_lossy().into_owned()),
        )
    }
}

fn here() -> &'static Identity {
    static HERE: OnceLock<Identity> = OnceLock::new();
    HERE.get_or_init(Identity::here)
}

/// An event that carries a stamp, with what says of which clock it is, and how that is steered.
pub fn identified(mut event: Value) -> Value {
    event["boot_id"] = json!(here().boot_id);
    event["clock_id"] = json!(here().clock_id);
    event["steering"] = json!(steering());
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_clock_is_told_by_the_kernels_boot_and_the_time_namespace() {
        let real = Identity::new(some("b1"), None, some("time:[1]"));
        assert_eq!(real.clock_id, some("b1 time:[1]"));
        let elsewhere = Identity::new(some("b1"), None, some("time:[2]"));
        assert_ne!(real.clock_id, elsewhere.clock_id);
    }

    #[test]
    fn a_simulated_server_has_a_boot_of_its_own_and_its_kernels_clock() {
        let simulated = Identity::new(some("s1"), some("b1"), some("time:[1]"));
        assert_eq!(simulated.boot_id, some("s1"));
        assert_eq!(simulated.clock_id, some("b1 time:[1]"));
    }

    #[test]
    fn a_machine_that_does_not_tell_its_boot_has_no_clock_in_common() {
        assert_eq!(Identity::new(None, None, some("time:[1]")).clock_id, None);
    }
}

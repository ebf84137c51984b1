//! The kernel's steering of its monotonic clock: where that stays the same, so does the clock's rate.

/// The frequency that the kernel is told, in 2^-16 parts per million, and its tick, in microseconds; None while it slews
/// an offset away besides, at a rate that it does not tell.
pub fn steering() -> Option<String> {
    let all = adjtimex(0)?;
    let adjusted = adjtimex(libc::ADJ_OFFSET_SS_READ)?;
    (all.offset == 0 && adjusted.offset == 0).then(|| format!("{} {}", all.freq, all.tick))
}

/// The answer of adjtimex(2) in a mode that changes nothing.
fn adjtimex(modes: libc::c_uint) -> Option<libc::timex> {
    // SAFETY: a timex is integers throughout, of which all bits may be zero.
    let mut said: libc::timex = unsafe { std::mem::zeroed() };
    said.modes = modes;
    // SAFETY: the kernel fills in the one struct that it is given, which lives on; neither mode needs a privilege.
    let state = unsafe { libc::adjtimex(&raw mut said) };
    (state >= 0).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_says_its_frequency_and_tick() {
        let said = adjtimex(0).expect("every kernel answers");
        assert!((9_000..=11_000).contains(&said.tick));
        if let Some(steering) = steering() {
            assert!(steering.ends_with(&format!(" {}", said.tick)));
        }
    }
}

//! The permission of the destructive guard to write to real drives.

use blockdev::Use;

/// The drives that may be written, as the command line names them.
#[derive(Debug, Default)]
pub struct Permission {
    /// The serials of `--allow-write`.
    pub serials: Vec<String>,
    /// The caller holds these drives exclusively until this process ends.
    pub claimed: bool,
}

impl Permission {
    /// The use of the drive with this serial.
    pub fn of(&self, serial: &str) -> Use {
        match (self.serials.iter().any(|one| one == serial), self.claimed) {
            (false, _) => Use::Read,
            (true, false) => Use::Write,
            (true, true) => Use::WriteClaimed,
        }
    }

    /// Refuse a permission for a drive that is not in the configuration, whose drives have these serials.
    pub fn check(&self, serials: &[&str]) -> Result<(), String> {
        if let Some(other) = self
            .serials
            .iter()
            .find(|one| !serials.contains(&one.as_str()))
        {
            let known = match serials {
                [] => "it has none by serial".to_owned(),
                _ => format!("its drives are {}", serials.join(", ")),
            };
            return Err(format!(
                "--allow-write is for drive {other}, which the configuration does not have ({known}): nothing is written"
            ));
        }
        if self.claimed && self.serials.is_empty() {
            return Err("--claimed says nothing without --allow-write".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_written_by_its_own_permission_alone() {
        let permission = Permission {
            serials: vec!["A".into()],
            claimed: true,
        };
        assert_eq!(permission.of("A"), Use::WriteClaimed);
        assert_eq!(permission.of("B"), Use::Read);
        let unclaimed = Permission {
            claimed: false,
            ..permission
        };
        assert_eq!(unclaimed.of("A"), Use::Write);
        assert_eq!(Permission::default().of("A"), Use::Read);
    }

    #[test]
    fn a_permission_that_fits_no_drive_is_refused() {
        let permission = |serials: &[&str], claimed| Permission {
            serials: serials.iter().map(|&one| one.to_owned()).collect(),
            claimed,
        };
        assert_eq!(permission(&["A"], true).check(&["A", "B"]), Ok(()));
        for (wrong, serials, part) in [
            (permission(&["C"], true), &["A"][..], "for drive C"),
            (permission(&["C"], true), &[], "none by serial"),
            (permission(&[], true), &["A"], "without --allow-write"),
        ] {
            let said = wrong.check(serials).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}

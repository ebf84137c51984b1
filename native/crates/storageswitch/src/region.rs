//! The regions of a drive that its tenants have.

use serde::{Deserialize, Serialize};

/// Regions begin and end at multiples of this.
const BLOCK: u64 = 4096;

/// A range of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    pub offset: u64,
    pub bytes: u64,
}

/// The regions of tenants, by their names, on a drive of `bytes`: those that are given, or equal shares where none is.
/// The error names the tenant, and says what to change.
pub fn regions(tenants: &[(&str, Option<Region>)], bytes: u64) -> Result<Vec<Region>, String> {
    let given = tenants
        .iter()
        .filter(|(_, region)| region.is_some())
        .count();
    if given != 0 && given != tenants.len() {
        let (name, _) = tenants
            .iter()
            .find(|(_, region)| region.is_none())
            .expect("not all are given");
        return Err(format!(
            "tenant {name:?} has no region and others have: give each one, or none"
        ));
    }
    let share = bytes / tenants.len() as u64 / BLOCK * BLOCK;
    if given == 0 && share == 0 {
        return Err(format!(
            "the drive has {bytes} bytes, less than {} for each of its {} tenants: give a larger one",
            BLOCK,
            tenants.len()
        ));
    }
    let regions: Vec<Region> = (0..)
        .zip(tenants)
        .map(|(number, (_, region))| {
            region.unwrap_or(Region {
                offset: number * share,
                bytes: share,
            })
        })
        .collect();
    for ((name, _), region) in tenants.iter().zip(&regions) {
        check(*region, bytes).map_err(|what| format!("tenant {name:?}: region: {what}"))?;
    }
    let mut sorted: Vec<_> = tenants
        .iter()
        .zip(&regions)
        .map(|((name, _), region)| (region, name))
        .collect();
    sorted.sort_by_key(|(region, _)| region.offset);
    for pair in sorted.windows(2) {
        let [(low, one), (high, other)] = pair else {
            continue;
        };
        if low.offset + low.bytes > high.offset {
            return Err(format!(
                "the regions of the tenants {one:?} and {other:?} overlap at byte {}: move one of them",
                high.offset
            ));
        }
    }
    Ok(regions)
}

/// Check that the regions of tenants, by their names, begin and end between the blocks of the drive.
pub fn on_blocks(
    tenants: &[(&str, Option<Region>)],
    regions: &[Region],
    block: u32,
) -> Result<(), String> {
    let block = u64::from(block);
    let is_off = |region: &Region| region.offset % block != 0 || region.bytes % block != 0;
    match tenants.iter().zip(regions).find(|(_, one)| is_off(one)) {
        None => Ok(()),
        Some(((name, _), Region { offset, bytes })) => Err(format!(
            "tenant {name:?}: region: offset {offset} and bytes {bytes} must be multiples of {block}, the blocks of the \
             drive: give every tenant such a region"
        )),
    }
}

fn check(region: Region, bytes: u64) -> Result<(), String> {
    if region.bytes == 0 || region.offset % BLOCK != 0 || region.bytes % BLOCK != 0 {
        return Err(format!(
            "offset {} and bytes {} must be multiples of {BLOCK}, bytes above 0",
            region.offset, region.bytes
        ));
    }
    match region.offset.checked_add(region.bytes) {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(format!("it ends beyond the drive, which has {bytes} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn region(offset: u64, bytes: u64) -> Option<Region> {
        Some(Region { offset, bytes })
    }

    #[test]
    fn shares_are_equal_and_of_whole_blocks() {
        let found = regions(&[("a", None), ("b", None), ("c", None)], 40 * KIB).unwrap();
        let expected = [0, 12 * KIB, 24 * KIB].map(|offset| Region {
            offset,
            bytes: 12 * KIB,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn regions_lie_on_the_blocks_of_the_drive() {
        let tenants = [("a", None), ("b", None)];
        let shares = regions(&tenants, 24 * KIB).unwrap();
        assert_eq!(on_blocks(&tenants, &shares, 4096), Ok(()));
        let said = on_blocks(&tenants, &shares, 8192).unwrap_err();
        assert!(said
            .contains("tenant \"a\": region: offset 0 and bytes 12288 must be multiples of 8192"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let all = [
            (vec![("a", None), ("b", None)], "less than 4096 for each"),
            (
                vec![("a", region(0, 4 * KIB)), ("b", None)],
                "tenant \"b\" has no region",
            ),
            (vec![("a", region(0, 12 * KIB))], "beyond the drive"),
            (vec![("a", region(u64::MAX - 4095, 4 * KIB))], "beyond"),
            (vec![("a", region(512, 4 * KIB))], "multiples of 4096"),
            (vec![("a", region(0, 0))], "bytes above 0"),
            (
                vec![("a", region(0, 4 * KIB)), ("b", region(0, 4 * KIB))],
                "overlap at byte 0",
            ),
        ];
        for (tenants, part) in all {
            let said = regions(&tenants, 7 * KIB).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}

//! Names under `/dev/disk/by-path`, which are there only while a drive is.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/dev/disk/by-path/";
const SUBSYSTEMS: &str = "devices/virtual/nvme-subsystem";

/// The path of what is at `path` now: of a port's beginning of names, the name of the one disk there, else `path`.
///
/// A port without a drive has no name, and with the next one it may have another: it is looked for at each opening.
pub fn present(path: &str) -> Cow<'_, str> {
    found_in(Path::new(FOLDER), path)
}

fn found_in<'a>(folder: &Path, path: &'a str) -> Cow<'a, str> {
    let port = match path.strip_prefix(FOLDER) {
        Some(port) if !folder.join(port).exists() => port,
        _ => return path.into(),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return path.into();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut disks: Vec<_> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| begins(name, port) && !is_partition(name))
        .collect();
    // An ATA disk has two names, of which the shorter one was there first. Of several namespaces it is the first one,
    // at each opening.
    disks.sort_unstable_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    match disks.first() {
        Some(name) => folder.join(name).to_string_lossy().into_owned().into(),
        None => path.into(),
    }
}

/// Whether the block device with the number `device` is at the port that `path` names.
///
/// A link under `/dev/disk/by-path` outlives its drive until udev removes it. A drive of another port that has come in
/// between may have the kernel's name of the one that went, and the link then leads there. Names that are no port's,
/// and those of ports that sysfs names otherwise (ATA, SAS), are taken as right.
pub fn is_of_port(path: &str, device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let entry = format!("/sys/dev/block/{major}:{minor}");
    match (path.strip_prefix(FOLDER), std::fs::canonicalize(entry)) {
        (Some(port), Ok(place)) => ways_to(place).iter().any(|way| is_in_sysfs_at(port, way)),
        _ => true,
    }
}

/// The places in sysfs that tell the ports of the block device at `place`.
///
/// That is its own, but where an NVMe drive may have several controllers, it is at none of them but at their subsystem,
/// whose folder has a link to each.
fn ways_to(place: PathBuf) -> Vec<PathBuf> {
    let is_subsystem = |folder: &&Path| folder.parent().is_some_and(|up| up.ends_with(SUBSYSTEMS));
    let Some(subsystem) = place.ancestors().find(is_subsystem) else {
        return vec![place];
    };
    let entries = std::fs::read_dir(subsystem).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("nvme"))
        .filter_map(|entry| entry.path().canonicalize().ok())
        .collect()
}

/// Whether a device with this path in sysfs can have the by-path name `port`: by PCI address and SCSI address.
fn is_in_sysfs_at(port: &str, place: &Path) -> bool {
    let has =
        |fits: &dyn Fn(&str) -> bool| place.iter().filter_map(std::ffi::OsStr::to_str).any(fits);
    let words: Vec<_> = port.split('-').collect();
    words.windows(2).all(|pair| match pair {
        ["pci", address] => has(&|part| part == *address),
        // The host's number counts from the controller's first in the name, from the machine's first in sysfs.
        ["scsi", address] => match address.split_once(':') {
            Some((_, unit)) => has(&|part| part.split_once(':').is_some_and(|(_, at)| at == unit)),
            None => true,
        },
        _ => true,
    })
}

/// Whether `name` begins with `port` as a whole: `ata-1` begins `ata-1.0`, not `ata-10`.
fn begins(name: &str, port: &str) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    name.strip_prefix(port)
        .is_some_and(|rest| !(is_word(rest.chars().next()) && is_word(port.chars().last())))
}

fn is_partition(name: &str) -> bool {
    let number = name.rsplit_once("-part").map(|(_, number)| number);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name that is found at a port where a folder has these names.
    fn found(port: &str, names: &[&str]) -> String {
        let folder = std::env::temp_dir().join(format!(
            "rackprobe-by-path-{}-{port}-{}",
            std::process::id(),
            names.len()
        ));
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in names {
            std::fs::write(folder.join(name), "").expect("a name");
        }
        let path = format!("{FOLDER}{port}");
        let found = found_in(&folder, &path).into_owned();
        std::fs::remove_dir_all(&folder).expect("it is there");
        found.rsplit_once('/').expect("a path").1.to_owned()
    }

    #[test]
    fn a_port_is_found_once_a_disk_has_its_name() {
        let names = ["pci-0000:01:00.0-nvme-1", "pci-0000:01:00.0-nvme-1-part1"];
        assert_eq!(found("pci-0000:01:00.0", &names), names[0]);
        assert_eq!(found("pci-0000:01:00.0", &[]), "pci-0000:01:00.0");
        assert_eq!(found("pci-0000:01:00.0", &names[1..]), "pci-0000:01:00.0");
    }

    #[test]
    fn no_other_port_is_taken_for_it() {
        let names = ["pci-0000:00:1f.2-ata-1", "pci-0000:00:1f.2-ata-1.0"];
        assert_eq!(found("pci-0000:00:1f.2-ata-1", &names), names[0]);
        assert_eq!(
            found("pci-0000:00:1f.2-ata-1", &["pci-0000:00:1f.2-ata-10"]),
            "pci-0000:00:1f.2-ata-1"
        );
    }

    #[test]
    fn of_several_namespaces_the_first_is_found_however_the_folder_lists_them() {
        let names: Vec<_> = (1..=9)
            .map(|number| format!("pci-0000:02:00.0-nvme-{number}"))
            .collect();
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        for _ in 0..names.len() {
            assert_eq!(found("pci-0000:02:00.0", &names), "pci-0000:02:00.0-nvme-1");
            names.rotate_left(1);
        }
    }

    #[test]
    fn a_device_is_of_the_port_that_sysfs_has_it_at() {
        let nvme =
            Path::new("/sys/devices/pci0000:00/0000:00:04.0/0000:02:00.0/nvme/nvme1/nvme1n1");
        assert!(is_in_sysfs_at("pci-0000:02:00.0-nvme-1", nvme));
        assert!(is_in_sysfs_at("pci-0000:02:00.0", nvme));
        assert!(!is_in_sysfs_at("pci-0000:01:00.0-nvme-1", nvme));
        assert!(!is_in_sysfs_at("pci-0000:01:00.0", nvme));
        let disk = Path::new(
            "/sys/devices/pci0000:00/0000:00:05.0/virtio3/host2/target2:0:1/2:0:1:0/block/sda",
        );
        assert!(is_in_sysfs_at("pci-0000:00:05.0-scsi-0:0:1:0", disk));
        assert!(!is_in_sysfs_at("pci-0000:00:05.0-scsi-0:0:2:0", disk));
    }

    #[test]
    fn a_drive_of_several_controllers_is_of_the_port_of_each() {
        let sys = std::env::temp_dir().join(format!("rackprobe-sys-{}", std::process::id()));
        let subsystem = sys.join(SUBSYSTEMS).join("nvme-subsys0");
        let partition = subsystem.join("nvme0n1/nvme0n1p1");
        std::fs::create_dir_all(&partition).expect("a partition");
        for (number, address) in ["0000:3c:00.0", "0000:3d:00.0"].iter().enumerate() {
            let controller = sys.join(format!("devices/pci0000:3a/{address}/nvme/nvme{number}"));
            std::fs::create_dir_all(&controller).expect("a controller");
            std::os::unix::fs::symlink(&controller, subsystem.join(format!("nvme{number}")))
                .expect("a link");
        }
        let has = |port: &str, place: &Path| {
            let mut ways = ways_to(place.to_path_buf()).into_iter();
            ways.any(|way| is_in_sysfs_at(port, &way))
        };
        let drive = subsystem.join("nvme0n1");
        let found = [&drive, &partition].map(|place| {
            ["0000:3c:00.0", "0000:3d:00.0", "0000:3e:00.0"]
                .map(|address| has(&format!("pci-{address}-nvme-1"), place))
        });
        std::fs::remove_dir_all(&sys).expect("it is there");
        assert_eq!(found, [[true, true, false]; 2]);
    }

    #[test]
    fn names_that_sysfs_does_not_have_are_taken_as_right() {
        let disk = Path::new(
            "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sda",
        );
        assert!(is_in_sysfs_at("pci-0000:00:1f.2-ata-1", disk));
        assert!(is_of_port("/dev/null", 0));
    }

    #[test]
    fn another_path_is_as_it_is() {
        assert_eq!(present("/dev/null"), "/dev/null");
        assert_eq!(present("/nowhere/sda"), "/nowhere/sda");
    }
}

//! An open block device, claimed or not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, major, minor, FlockOperation, OFlags};

/// The mount points of sysfs, procfs and devtmpfs, and where programs keep their state until the next boot.
#[derive(Debug, Clone)]
pub struct Roots {
    /// The mount point of sysfs.
    pub sys: PathBuf,
    /// The mount point of procfs.
    pub proc: PathBuf,
    /// The mount point of devtmpfs.
    pub dev: PathBuf,
    /// The folder of programs' state.
    pub run: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            dev: "/dev".into(),
            run: "/run".into(),
        }
    }
}

impl Roots {
    /// The path of a name below `/dev`.
    #[must_use]
    pub fn node(&self, name: &str) -> PathBuf {
        name.strip_prefix("/dev/")
            .map_or_else(|| PathBuf::from(name), |name| self.dev.join(name))
    }
}

/// An open block device by its descriptor, independent of what is at its path later.
#[derive(Debug)]
pub struct Node {
    /// Open for reading.
    pub file: File,
    /// A regular file stands for the node where the server is simulated, and is locked instead of claimed.
    pub is_block: bool,
    /// The kernel's name of it, such as `sda`.
    pub kernel_name: String,
    /// `major:minor`.
    pub number: String,
    /// Its folder in sysfs.
    pub folder: PathBuf,
}

impl Node {
    /// Open the node O_EXCL, which the kernel refuses while a mount, swap or holder uses it or one of its partitions.
    ///
    /// # Errors
    /// The reason why it cannot be opened or claimed.
    pub fn claim(roots: &Roots, path: &str) -> Result<Self, String> {
        Self::open(roots, path, true)
    }

    /// Open the node without a claim.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn look(roots: &Roots, path: &str) -> Result<Self, String> {
        Self::open(roots, path, false)
    }

    fn open(roots: &Roots, path: &str, claims: bool) -> Result<Self, String> {
        let path = roots.node(path);
        let said = |error: io::Error| format!("it cannot be opened: {error}; is it plugged in?");
        let is_block = fs::metadata(&path)
            .map_err(said)?
            .file_type()
            .is_block_device();
        let mut flags = OFlags::CLOEXEC;
        if is_block && claims {
            flags |= OFlags::EXCL;
        }
        // Reading is enough to claim it, and closing what was not open for writing sends udev no event.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits() as i32);
        let file = options.open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => {
                "it is in use (a mount, swap, RAID or another writer)".to_owned()
            }
            _ => said(error),
        })?;
        let found = file.metadata().map_err(said)?;
        if found.file_type().is_block_device() != is_block || !(is_block || found.is_file()) {
            return Err("it is no block device".into());
        }
        if claims && !is_block && flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err("it is in use (another process has its lock)".into());
        }
        let number = if is_block {
            format!("{}:{}", major(found.rdev()), minor(found.rdev()))
        } else {
            number_by_name(roots, &path)?
        };
        let link = roots.sys.join("dev/block").join(&number);
        let folder = link
            .canonicalize()
            .map_err(|error| format!("the kernel knows no block device {number}: {error}"))?;
        let kernel_name = name_of(&folder);
        Ok(Self {
            file,
            is_block,
            kernel_name,
            number,
            folder,
        })
    }

    /// Whether a name resolves to this device now.
    #[must_use]
    pub fn is_behind(&self, roots: &Roots, name: &str) -> bool {
        let (Ok(there), Ok(here)) = (fs::metadata(roots.node(name)), self.file.metadata()) else {
            return false;
        };
        if self.is_block {
            there.file_type().is_block_device() && there.rdev() == here.rdev()
        } else {
            (there.dev(), there.ino()) == (here.dev(), here.ino())
        }
    }

    /// An attribute of its folder in sysfs, empty where it has none.
    #[must_use]
    pub fn attribute(&self, name: &str) -> String {
        text(&self.folder.join(name))
    }
}

/// The content of a file of sysfs or procfs without space at its ends; empty where there is none.
pub fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

pub fn name_of(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The number of the block device that a regular file stands for, which has the file's name.
fn number_by_name(roots: &Roots, path: &Path) -> Result<String, String> {
    let real = path
        .canonicalize()
        .map_err(|error| format!("it cannot be opened: {error}"))?;
    let number = text(
        &roots
            .sys
            .join("class/block")
            .join(name_of(&real))
            .join("dev"),
    );
    if number.is_empty() {
        return Err("it is neither a block device nor stands for one".into());
    }
    Ok(number)
}

/// The kernel's name of a node below `/dev`, or of a link to one.
pub fn node_name(roots: &Roots, source: &str) -> Option<String> {
    source.strip_prefix("/dev/")?;
    let path = roots.node(source);
    Some(name_of(&path.canonicalize().unwrap_or(path)))
}

/// The entries of a folder, sorted; empty if it does not exist.
pub fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
